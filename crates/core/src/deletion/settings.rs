//! Settings of deletions, per project and kind. Each field is taken from the most specific
//! setting that says something about it: that of the project and kind, of the project, of
//! the kind, of everything; then from the settings of the process. A deletion keeps what
//! held when it was requested.

use std::time::Duration;

use serde_json::json;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::access::audit::{About, Actor, AuditEntry};
use crate::commit::{Commit, Write};
use crate::deletion::DeletionWrite;
use crate::deletion::door::{Defaults, GRACE_MAX};
use crate::error::Refusal;
use crate::event::derive_id;
use crate::ids::{AuditEntryId, InstallationId, ProjectId, Revision};
use crate::subject::SubjectKind;
use crate::text::Reason;
use crate::time::Timestamp;

/// The longest time that something deleted may be kept: ten years.
pub const RETENTION_MAX: Duration = Duration::from_secs(3_650 * 86_400);

/// The kinds that can be deleted, and so have settings.
pub const KINDS: [SubjectKind; 14] = [
    SubjectKind::Project,
    SubjectKind::Cloud,
    SubjectKind::Credential,
    SubjectKind::Cluster,
    SubjectKind::Blueprint,
    SubjectKind::Label,
    SubjectKind::Resource,
    SubjectKind::Generator,
    SubjectKind::Stack,
    SubjectKind::Template,
    SubjectKind::Agent,
    SubjectKind::TenantProfile,
    SubjectKind::Tenant,
    SubjectKind::Workspace,
];

/// What a setting is for; `None` means every project, every kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SettingScope {
    pub project: Option<ProjectId>,
    pub kind: Option<SubjectKind>,
}

impl SettingScope {
    /// The id of its row: one setting for each scope.
    pub fn id(self) -> Uuid {
        let project = self.project.map(|project| project.to_string()).unwrap_or_default();
        let kind = self.kind.map_or("", SubjectKind::as_str);
        let digest = Sha256::digest(format!("deletion_settings/{project}/{kind}"));
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        uuid::Builder::from_custom_bytes(bytes).into_uuid()
    }

    /// Whether it is about a thing of this project and kind.
    fn covers(self, project: Option<ProjectId>, kind: SubjectKind) -> bool {
        (self.project.is_none() || self.project == project)
            && self.kind.is_none_or(|own| own == kind)
    }

    /// The more specific one is greater: a project before a kind.
    const fn rank(self) -> (bool, bool) {
        (self.project.is_some(), self.kind.is_some())
    }
}

/// The values of a setting; `None` leaves a field to the next setting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Values {
    pub grace: Option<Duration>,
    pub retention: Option<Duration>,
    /// Deletions of more resources than this need an approval.
    pub approve_above: Option<i64>,
    /// Whether nobody may purge before the retention ends.
    pub purge_protected: Option<bool>,
}

impl Values {
    pub fn check(&self) -> Result<(), Refusal> {
        if *self == Self::default() {
            return Err(Refusal::invalid(
                "grace",
                "say at least one of grace, retention, approve_above, purge_protected",
            ));
        }
        if self.grace.is_some_and(|grace| grace > GRACE_MAX) {
            return Err(Refusal::invalid("grace", "must be at most 365d"));
        }
        if self.retention.is_some_and(|retention| retention > RETENTION_MAX) {
            return Err(Refusal::invalid("retention", "must be at most 3650d, which is ten years"));
        }
        if self.approve_above.is_some_and(|count| !(0..=1_000_000).contains(&count)) {
            return Err(Refusal::invalid("approve_above", "must be between 0 and 1000000"));
        }
        Ok(())
    }
}

/// One setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletionSetting {
    pub id: Uuid,
    pub scope: SettingScope,
    pub revision: Revision,
    pub values: Values,
    pub set_by: String,
    pub reason: String,
    pub set_at: Timestamp,
}

/// What holds for a deletion of something of this kind in this project.
pub fn resolve(
    settings: &[DeletionSetting],
    project: Option<ProjectId>,
    kind: SubjectKind,
    process: Defaults,
) -> Defaults {
    let mut covering: Vec<&DeletionSetting> =
        settings.iter().filter(|setting| setting.scope.covers(project, kind)).collect();
    covering.sort_by_key(|setting| std::cmp::Reverse(setting.scope.rank()));
    fn first<T>(covering: &[&DeletionSetting], field: impl Fn(&Values) -> Option<T>) -> Option<T> {
        covering.iter().find_map(|setting| field(&setting.values))
    }
    Defaults {
        grace: first(&covering, |values| values.grace).unwrap_or(process.grace),
        retention: first(&covering, |values| values.retention).unwrap_or(process.retention),
        approve_above: first(&covering, |values| values.approve_above).or(process.approve_above),
        purge_protected: first(&covering, |values| values.purge_protected)
            .unwrap_or(process.purge_protected),
    }
}

/// A scope with its setting, the row of its project locked.
#[derive(Debug, Clone)]
pub struct SettingSnapshot {
    pub now: Timestamp,
    pub installation: InstallationId,
    pub setting: Option<DeletionSetting>,
}

/// Sets the values of a scope, whatever they were. Repeated, it changes nothing.
pub fn set(
    snapshot: &SettingSnapshot,
    scope: SettingScope,
    values: Values,
    reason: &Reason,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    values.check()?;
    let before = snapshot.setting.as_ref();
    if before.is_some_and(|before| before.values == values) {
        return Ok(Commit::default());
    }
    let setting = DeletionSetting {
        id: scope.id(),
        scope,
        revision: before.map_or(Revision::FIRST, |before| before.revision),
        values,
        set_by: actor.name.clone(),
        reason: reason.as_str().to_owned(),
        set_at: snapshot.now,
    };
    let details = json!({
        "kind": scope.kind,
        "before": before.map(|before| shown(&before.values)),
        "after": shown(&values),
    });
    let write = match before {
        Some(_) => DeletionWrite::SettingUpdate(setting),
        None => DeletionWrite::SettingInsert(setting),
    };
    Ok(Commit {
        writes: vec![Write::Deletion(write)],
        audit: vec![
            audit("deletion_settings.set", snapshot, scope, actor)
                .because(reason.as_str())
                .with(details),
        ],
        ..Commit::default()
    })
}

/// Takes the setting of a scope away. Repeated, it changes nothing.
pub fn remove(
    snapshot: &SettingSnapshot,
    scope: SettingScope,
    reason: &Reason,
    actor: &Actor,
) -> Commit {
    let Some(before) = &snapshot.setting else { return Commit::default() };
    let details = json!({ "kind": scope.kind, "before": shown(&before.values) });
    Commit {
        writes: vec![Write::Deletion(DeletionWrite::SettingRemove(before.id))],
        audit: vec![
            audit("deletion_settings.remove", snapshot, scope, actor)
                .because(reason.as_str())
                .with(details),
        ],
        ..Commit::default()
    }
}

fn audit(
    verb: &'static str,
    snapshot: &SettingSnapshot,
    scope: SettingScope,
    actor: &Actor,
) -> AuditEntry {
    let about = match scope.project {
        Some(project) => About::new(project).of(project),
        None => About::new(snapshot.installation),
    };
    // Settings of several kinds may change at one moment.
    let now = snapshot.now;
    let revision = snapshot.setting.as_ref().map_or(0, |setting| setting.revision.0);
    let (revision, moment) = (revision.to_be_bytes(), now.as_micros().to_be_bytes());
    let key = scope.id();
    let parts: [&[u8]; 5] = [b"audit", verb.as_bytes(), key.as_bytes(), &revision, &moment];
    let id = AuditEntryId::new(derive_id(now, &parts));
    AuditEntry { id, ..AuditEntry::new(verb, actor, about, now) }
}

fn shown(values: &Values) -> serde_json::Value {
    json!({
        "grace_seconds": values.grace.map(|grace| grace.as_secs()),
        "retention_seconds": values.retention.map(|retention| retention.as_secs()),
        "approve_above": values.approve_above,
        "purge_protected": values.purge_protected,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fixtures::at;

    const PROCESS: Defaults = Defaults {
        grace: Duration::ZERO,
        retention: Duration::from_secs(30 * 86_400),
        approve_above: None,
        purge_protected: false,
    };

    fn setting(
        project: Option<u128>,
        kind: Option<SubjectKind>,
        values: Values,
    ) -> DeletionSetting {
        let scope =
            SettingScope { project: project.map(|id| ProjectId::new(Uuid::from_u128(id))), kind };
        DeletionSetting {
            id: scope.id(),
            scope,
            revision: Revision::FIRST,
            values,
            set_by: "key:test".to_owned(),
            reason: "test".to_owned(),
            set_at: at(1),
        }
    }

    fn values() -> impl Strategy<Value = Values> {
        let seconds = || prop::option::of((0..100_u64).prop_map(Duration::from_secs));
        (seconds(), seconds(), prop::option::of(0..50_i64), prop::option::of(any::<bool>()))
            .prop_map(|(grace, retention, approve_above, purge_protected)| Values {
                grace,
                retention,
                approve_above,
                purge_protected,
            })
    }

    proptest! {
        /// Field by field, the first of (project, kind), (project, any), (any, kind),
        /// (any, any) that says something, in whatever order they are stored; what is set
        /// for others changes nothing.
        #[test]
        fn the_most_specific_setting_wins_field_by_field(
            four in prop::collection::vec(prop::option::of(values()), 4),
            other in values(),
            turned in 0..6_usize,
        ) {
            let (project, kind) = (Some(7), Some(SubjectKind::Resource));
            let scopes = [(project, kind), (project, None), (None, kind), (None, None)];
            let present: Vec<(usize, Values)> =
                four.iter().enumerate().filter_map(|(index, one)| one.map(|v| (index, v))).collect();
            let mut settings: Vec<_> = present
                .iter()
                .map(|(index, values)| setting(scopes[*index].0, scopes[*index].1, *values))
                .collect();
            settings.push(setting(Some(8), kind, other));
            settings.push(setting(project, Some(SubjectKind::Cloud), other));
            let length = settings.len();
            settings.rotate_left(turned % length);

            let found =
                resolve(&settings, Some(ProjectId::new(Uuid::from_u128(7))), SubjectKind::Resource, PROCESS);
            let first = |field: fn(&Values) -> Option<Duration>| {
                present.iter().find_map(|(_, values)| field(values))
            };
            prop_assert_eq!(found.grace, first(|v| v.grace).unwrap_or(PROCESS.grace));
            prop_assert_eq!(found.retention, first(|v| v.retention).unwrap_or(PROCESS.retention));
            let approve = present.iter().find_map(|(_, values)| values.approve_above);
            prop_assert_eq!(found.approve_above, approve);
            let protected = present.iter().find_map(|(_, values)| values.purge_protected);
            prop_assert_eq!(found.purge_protected, protected.unwrap_or(false));
        }
    }

    #[test]
    fn the_settings_of_a_project_are_not_those_of_what_belongs_to_none() {
        let own = Values { grace: Some(Duration::from_secs(5)), ..Values::default() };
        let settings = [setting(Some(7), None, own)];
        assert_eq!(resolve(&settings, None, SubjectKind::Cloud, PROCESS), PROCESS);
    }

    #[test]
    fn values_have_bounds() {
        let day = Duration::from_secs(86_400);
        let refused = |values: Values| values.check().expect_err("refused").field;
        assert_eq!(refused(Values::default()).as_deref(), Some("grace"));
        let long = Values { grace: Some(366 * day), ..Values::default() };
        assert_eq!(refused(long).as_deref(), Some("grace"));
        let long = Values { retention: Some(3_651 * day), ..Values::default() };
        assert_eq!(refused(long).as_deref(), Some("retention"));
        let negative = Values { approve_above: Some(-1), ..Values::default() };
        assert_eq!(refused(negative).as_deref(), Some("approve_above"));
        let most = Values {
            grace: Some(365 * day),
            retention: Some(3_650 * day),
            approve_above: Some(0),
            purge_protected: Some(true),
        };
        assert_eq!(most.check(), Ok(()));
    }
}
