//! Creating, moving and deleting the reference to a credential.

use serde_json::json;

use crate::access::audit::Actor;
use crate::catalog::credential::{Coordinates, Credential};
use crate::catalog::rules::common::{About, Removal, audited, name_taken, removed, unknown};
use crate::catalog::snapshot::CredentialSnapshot;
use crate::catalog::{CatalogWrite, Name};
use crate::commit::Commit;
use crate::error::{ErrorKind, Refusal};
use crate::ids::{CloudCredentialId, Revision};
use crate::precondition::Expected;

#[derive(Debug, Clone)]
pub struct NewCredential {
    pub id: CloudCredentialId,
    pub name: Name,
    pub kv_mount: Option<String>,
    pub kv_path: Option<String>,
}

pub fn create(
    snapshot: &CredentialSnapshot,
    new: &NewCredential,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let Some(cloud) = &snapshot.cloud else {
        return Err(unknown(ErrorKind::CloudNotFound, "cloud").at("cloud"));
    };
    if let Some(holder) = &snapshot.credential {
        return Err(name_taken("name", "credential", new.name.as_str(), holder.id.as_uuid()));
    }
    let coordinates =
        Coordinates::new(new.kv_mount.as_deref(), new.kv_path.as_deref(), cloud.id, new.id)?;
    let credential = Credential {
        id: new.id,
        cloud_id: cloud.id,
        name: new.name.clone(),
        coordinates,
        revision: Revision::FIRST,
        deletion_id: None,
        deleted_at: None,
        created_at: snapshot.now,
        updated_at: snapshot.now,
    };
    let details = json!({ "name": credential.name, "cloud_id": cloud.id });
    let write = CatalogWrite::CredentialInsert(credential);
    Ok(audited(write, "credential.create", about(new.id), actor, snapshot.now, details))
}

/// Changes where the reference points. `None` leaves a part unchanged.
pub fn update(
    snapshot: &CredentialSnapshot,
    kv_mount: Option<&str>,
    kv_path: Option<&str>,
    expected: Expected,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let credential = existing(snapshot)?;
    expected.check("credential", credential.revision)?;
    let before = &credential.coordinates;
    let coordinates = Coordinates::new(
        Some(kv_mount.unwrap_or(&before.kv_mount)),
        Some(kv_path.unwrap_or(&before.kv_path)),
        credential.cloud_id,
        credential.id,
    )?;
    let details = json!({
        "before": { "kv_mount": before.kv_mount, "kv_path": before.kv_path },
        "after": { "kv_mount": coordinates.kv_mount, "kv_path": coordinates.kv_path },
    });
    let write = CatalogWrite::CredentialUpdate(Credential { coordinates, ..credential.clone() });
    Ok(audited(write, "credential.update", about(credential.id), actor, snapshot.now, details))
}

pub fn delete(
    snapshot: &CredentialSnapshot,
    removal: &Removal,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let credential = existing(snapshot)?;
    removal.expected.check("credential", credential.revision)?;
    if snapshot.projects > 0 || snapshot.resources > 0 {
        return Err(Refusal::new(
            ErrorKind::CredentialInUse,
            format!(
                "credential `{}` is assigned to {} project(s) and {} resource(s) are made with it; delete those and withdraw it first",
                credential.name, snapshot.projects, snapshot.resources
            ),
        )
        .with(json!({ "projects": snapshot.projects, "resources": snapshot.resources })));
    }
    let write = CatalogWrite::CredentialUpdate(Credential {
        deletion_id: Some(removal.deletion_id),
        deleted_at: Some(snapshot.now),
        ..credential.clone()
    });
    Ok(removed(write, "credential.delete", about(credential.id), actor, snapshot.now, removal))
}

fn existing(snapshot: &CredentialSnapshot) -> Result<&Credential, Refusal> {
    snapshot.credential.as_ref().ok_or_else(|| unknown(ErrorKind::CredentialNotFound, "credential"))
}

fn about(id: CloudCredentialId) -> About {
    About::new(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commit::Write;
    use crate::fixtures::catalog::{mk_cloud, mk_credential, mk_removal};
    use crate::fixtures::{at, mk_actor};

    fn snapshot() -> CredentialSnapshot {
        CredentialSnapshot {
            now: at(1_000),
            cloud: Some(mk_cloud()),
            credential: Some(mk_credential()),
            projects: 0,
            resources: 0,
        }
    }

    #[test]
    fn a_credential_in_use_stays() {
        for (projects, resources) in [(1, 0), (0, 1)] {
            let used = CredentialSnapshot { projects, resources, ..snapshot() };
            let refusal = delete(&used, &mk_removal(), &mk_actor()).unwrap_err();
            assert_eq!(refusal.kind, ErrorKind::CredentialInUse);
        }
        assert!(delete(&snapshot(), &mk_removal(), &mk_actor()).is_ok());
    }

    #[test]
    fn an_update_keeps_what_it_does_not_name() {
        let commit = update(&snapshot(), None, Some("a/b"), Expected::Any, &mk_actor()).unwrap();
        let Write::Catalog(write) = &commit.writes[0] else { panic!("{commit:?}") };
        let CatalogWrite::CredentialUpdate(updated) = &**write else { panic!("{write:?}") };
        assert_eq!(updated.coordinates.kv_mount, mk_credential().coordinates.kv_mount);
        assert_eq!(updated.coordinates.kv_path, "a/b");
    }

    #[test]
    fn without_its_cloud_there_is_no_credential() {
        let new = NewCredential {
            id: mk_credential().id,
            name: mk_credential().name,
            kv_mount: None,
            kv_path: None,
        };
        let orphan = CredentialSnapshot { cloud: None, credential: None, ..snapshot() };
        let refusal = create(&orphan, &new, &mk_actor()).unwrap_err();
        assert_eq!(refusal.field.as_deref(), Some("cloud"));
    }
}
