//! A tenant profile: where the tenants of many projects live, and how they are made. Its
//! settings refer to secrets and never have one; whoever is no admin does not see them.

use serde_json::{Value, json};

use crate::access::audit::Actor;
use crate::catalog::Name;
use crate::commit::Commit;
use crate::deletion::request::Deletable;
use crate::error::{ErrorKind, Refusal};
use crate::ids::{DeletionId, Revision, TenantProfileId};
use crate::kind::{about, audited, existing, free, kind};
use crate::precondition::Expected;
use crate::tenants::TenantsWrite;
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq)]
pub struct TenantProfile {
    pub id: TenantProfileId,
    pub name: Name,
    pub description: String,
    /// As the library reads them; `null` for a caller who may not see them.
    pub settings: Value,
    pub revision: Revision,
    pub deletion_id: Option<DeletionId>,
    pub deleted_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

kind!(TenantProfile, TenantProfileId, TenantProfileNotFound);

impl TenantProfile {
    /// The kind of database, which everybody may know.
    pub fn engine(&self) -> &str {
        self.settings["engine"].as_str().unwrap_or_default()
    }
}

/// A profile, its row locked.
#[derive(Debug, Clone)]
pub struct ProfileSnapshot {
    pub now: Timestamp,
    pub profile: Option<TenantProfile>,
    /// Its tenants that are not purged.
    pub tenants: i64,
}

#[derive(Debug, Clone)]
pub struct NewProfile {
    pub id: TenantProfileId,
    pub name: Name,
    pub description: String,
    pub settings: Value,
}

pub fn create(
    snapshot: &ProfileSnapshot,
    new: &NewProfile,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    free(&snapshot.profile, "name", new.name.as_str())?;
    let profile = TenantProfile {
        id: new.id,
        name: new.name.clone(),
        description: new.description.clone(),
        settings: new.settings.clone(),
        revision: Revision::FIRST,
        deletion_id: None,
        deleted_at: None,
        created_at: snapshot.now,
        updated_at: snapshot.now,
    };
    let details = json!({ "name": profile.name, "engine": profile.engine() });
    let (about, write) = (about(&profile), TenantsWrite::ProfileInsert(profile));
    Ok(audited(write, "tenant_profile.create", about, actor, snapshot.now, details))
}

/// A profile that has tenants keeps where they are: their databases would be searched for
/// elsewhere, and not found.
pub fn update(
    snapshot: &ProfileSnapshot,
    description: Option<&str>,
    settings: Option<&Value>,
    expected: Expected,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let before = existing(&snapshot.profile, expected)?;
    let after = TenantProfile {
        description: description.unwrap_or(&before.description).to_owned(),
        settings: settings.unwrap_or(&before.settings).clone(),
        ..before.clone()
    };
    if after == *before {
        return Ok(Commit::default());
    }
    for field in FIXED {
        let changes = after.settings[field] != before.settings[field];
        if changes && snapshot.tenants > 0 {
            let message = format!(
                "profile `{}` has {} tenants, which are found by `{field}`; make another profile, or purge them first",
                before.name, snapshot.tenants
            );
            let refusal = Refusal::new(ErrorKind::TenantProfileInUse, message);
            return Err(refusal.at(format!("settings.{field}")));
        }
    }
    // The settings name files and secrets; the audit says which of them changed.
    let changed: Vec<&String> = [&before.settings, &after.settings]
        .into_iter()
        .filter_map(Value::as_object)
        .flat_map(|settings| settings.keys())
        .filter(|key| after.settings[key.as_str()] != before.settings[key.as_str()])
        .collect();
    let details = json!({ "name": before.name, "changed": changed });
    let write = TenantsWrite::ProfileUpdate(after);
    let about = about(before).at(before.revision.next());
    Ok(audited(write, "tenant_profile.update", about, actor, snapshot.now, details))
}

/// The settings by which the databases of tenants are found.
const FIXED: [&str; 2] = ["engine", "prefix"];

impl Deletable for TenantProfile {
    type Snapshot = ProfileSnapshot;
    const DELETE: &'static str = "tenant_profile.delete";

    fn found(snapshot: &ProfileSnapshot) -> (&Option<Self>, Timestamp) {
        (&snapshot.profile, snapshot.now)
    }

    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn free(&self, snapshot: &ProfileSnapshot, _cascade: bool) -> Result<(), Refusal> {
        if snapshot.tenants == 0 {
            return Ok(());
        }
        let message = format!(
            "profile `{}` has {} tenants; decommission and purge them first (`slipway tenant list --profile {}`)",
            self.name, snapshot.tenants, self.name
        );
        Err(Refusal::new(ErrorKind::TenantProfileInUse, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::tenants::mk_profile;
    use crate::fixtures::{at, mk_actor};

    #[test]
    fn a_profile_with_tenants_stays_where_it_is_and_cannot_go() {
        let there = ProfileSnapshot { now: at(1_000), profile: Some(mk_profile()), tenants: 2 };
        let moved = json!({ "engine": "sqlite", "prefix": "other_" });
        let refused = |settings: &Value, snapshot: &ProfileSnapshot| {
            update(snapshot, None, Some(settings), Expected::Any, &mk_actor())
        };
        let refusal = refused(&moved, &there).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::TenantProfileInUse);
        assert_eq!(refusal.field.as_deref(), Some("settings.prefix"));
        let mut other = mk_profile().settings;
        other["migrations"] = json!("/other");
        let commit = refused(&other, &there).unwrap();
        assert_eq!(commit.audit[0].details["changed"], json!(["migrations"]));
        let free = |snapshot: &ProfileSnapshot| mk_profile().free(snapshot, false);
        assert_eq!(free(&there).unwrap_err().kind, ErrorKind::TenantProfileInUse);
        let empty = ProfileSnapshot { tenants: 0, ..there };
        assert!(free(&empty).is_ok());
        assert!(refused(&moved, &empty).is_ok());
    }
}
