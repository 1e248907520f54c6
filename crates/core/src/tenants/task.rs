//! Tasks: what a finished tenant needs on its target. Which one follows from the row alone, so
//! a task that was interrupted, or overtaken by a restore, is simply decided anew.

use serde_json::json;

use crate::access::audit::Actor;
use crate::closed_set::closed_set;
use crate::commit::{Commit, Write};
use crate::deletion::write::DeletionWrite;
use crate::error::{ErrorKind, Refusal};
use crate::kind::{audited, existing};
use crate::precondition::Expected;
use crate::rollouts::next::Health;
use crate::tenants::TenantsWrite;
use crate::tenants::event::{
    TENANT_CLOSED, TENANT_DESTROYED, TENANT_MIGRATED, TENANT_REOPENED, TENANT_REPAIRED, announce,
};
use crate::tenants::job::JobState;
use crate::tenants::tenant::{Tenant, TenantSnapshot};
use crate::time::Timestamp;

closed_set!(
    Task {
        /// Nobody can log in any more; the data stays.
        Close => "close",
        /// As it was before it was closed.
        Reopen => "reopen",
        /// Its objects go, and are proven gone.
        Destroy => "destroy",
        Migrate => "migrate",
        /// Its ledger gets what a person found out about a migration.
        Repair => "repair",
    }
);

closed_set!(
    /// What became of a migration whose state was unknown, or whose file was changed.
    Found {
        /// All of the file as it is now was applied.
        Applied => "applied",
        /// Nothing of it was applied; the next migration runs it.
        NotApplied => "not_applied",
    }
);

/// What a person found out about one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    pub version: String,
    pub found: Found,
}

/// Of a version, in characters.
const LONGEST_VERSION: usize = 50;

impl Repair {
    pub fn parse(version: &str, found: &str) -> Result<Self, Refusal> {
        let is_version = version.starts_with(|c: char| c.is_ascii_digit())
            && version.len() <= LONGEST_VERSION
            && version.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '_'));
        if !is_version {
            let problem = "is the version of a migration, such as `7` or `2.1`";
            return Err(Refusal::invalid("version", problem));
        }
        let found = Found::parse_field("found", found)?;
        Ok(Self { version: version.to_owned(), found })
    }

    /// As it is stored.
    pub fn text(&self) -> String {
        format!("{} {}", self.version, self.found)
    }

    pub fn from_stored(text: &str) -> Option<Self> {
        let (version, found) = text.split_once(' ')?;
        Self::parse(version, found).ok()
    }
}

/// What the tenant needs now.
pub const fn needed(tenant: &Tenant) -> Option<Task> {
    if !tenant.state.is_over() {
        return None;
    }
    match (tenant.deleted_at.is_some(), tenant.present, tenant.closed) {
        (true, true, _) if tenant.purging => Some(Task::Destroy),
        (true, true, false) => Some(Task::Close),
        (false, true, true) => Some(Task::Reopen),
        (false, true, false) if tenant.repair.is_some() => Some(Task::Repair),
        (false, true, false) if tenant.migrating && matches!(tenant.state, JobState::Ready) => {
            Some(Task::Migrate)
        }
        _ => None,
    }
}

/// The commit of a task that succeeded, for the row as it is now. What the row is does not
/// matter: the target is as the task left it.
pub fn done(
    tenant: &Tenant,
    task: Task,
    version: Option<String>,
    actor: &Actor,
    now: Timestamp,
) -> Commit {
    let mut after = Tenant {
        failures: 0,
        last_error: None,
        waiting_reason: None,
        lost: None,
        ..tenant.clone()
    };
    let (verb, event) = match task {
        Task::Close => {
            after.closed = true;
            ("tenant.close", TENANT_CLOSED)
        }
        Task::Reopen => {
            after.closed = false;
            ("tenant.reopen", TENANT_REOPENED)
        }
        Task::Destroy => {
            (after.present, after.closed, after.leaks) = (false, false, 0);
            ("tenant.destroy", TENANT_DESTROYED)
        }
        Task::Migrate => {
            after.migrating = false;
            after.version = version.or(after.version);
            ("tenant.migrate", TENANT_MIGRATED)
        }
        Task::Repair => {
            after.repair = None;
            ("tenant.repair", TENANT_REPAIRED)
        }
    };
    let revision = tenant.revision.next();
    let event = announce(event, &after, revision, now, tenant.deletion_id);
    let details = json!({ "work": tenant.work, "version": after.version });
    let about = tenant.about().at(revision);
    let write = TenantsWrite::TenantUpdate(after);
    let mut commit = audited(write, verb, about, actor, now, details);
    commit.events.push(event);
    if task == Task::Destroy && tenant.leaks > 0 {
        let resolved = DeletionWrite::LeaksResolve(tenant.id.into());
        commit.writes.push(Write::Deletion(resolved));
    }
    commit
}

/// The ledger is to get what a person found out.
pub fn repair(
    snapshot: &TenantSnapshot,
    repair: &Repair,
    expected: Expected,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let before = existing(&snapshot.tenant, expected)?;
    if before.deletion_id.is_some() || before.state != JobState::Ready {
        let message =
            format!("tenant `{}` is not ready, so nothing is to be repaired", before.name);
        return Err(Refusal::new(ErrorKind::TenantBusy, message));
    }
    let after =
        Tenant { repair: Some(repair.clone()), failures: 0, last_error: None, ..before.clone() };
    let details = json!({ "version": repair.version, "found": repair.found });
    let about = before.about().at(before.revision.next());
    let write = TenantsWrite::TenantUpdate(after);
    Ok(audited(write, "tenant.repair", about, actor, snapshot.now, details))
}

/// The commit of a repair that the target refuses for good: it is not tried again, and the
/// reason is shown.
pub fn withdrawn(tenant: &Tenant, error: &str) -> Commit {
    let after = Tenant { repair: None, last_error: Some(error.to_owned()), ..tenant.clone() };
    Commit { writes: vec![TenantsWrite::TenantUpdate(after).into()], ..Commit::default() }
}

/// Tries after which a migration counts as failed.
const TRIES: i32 = 3;

/// How a tenant is whose roll-out migrates it.
pub fn health(tenant: Option<&Tenant>) -> Health {
    match tenant {
        None => Health::Gone("it does not exist any more".to_owned()),
        Some(tenant) if tenant.deletion_id.is_some() => {
            Health::Gone("it is decommissioned, or will be".to_owned())
        }
        Some(tenant) if !tenant.migrating => Health::Settled,
        Some(tenant) if tenant.failures >= TRIES || tenant.waiting_reason.is_some() => {
            let error = tenant.last_error.clone();
            Health::Failed(error.unwrap_or_else(|| "no reason is known".to_owned()))
        }
        Some(_) => Health::Progressing,
    }
}

/// The tenant is to be migrated.
pub fn migrate(snapshot: &TenantSnapshot) -> Result<Commit, Refusal> {
    let before = existing(&snapshot.tenant, Expected::Any)?;
    if before.deletion_id.is_some() || before.state != JobState::Ready {
        let message = format!("tenant `{}` is not ready any more", before.name);
        return Err(Refusal::new(ErrorKind::Leaving, message));
    }
    let after = Tenant { migrating: true, failures: 0, last_error: None, ..before.clone() };
    let write = TenantsWrite::TenantUpdate(after);
    Ok(Commit { writes: vec![write.into()], ..Commit::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::tenants::mk_tenant;
    use crate::fixtures::{at, mk_actor};

    /// Whatever the row is, its tasks come to an end, and each leads to the state it names.
    #[test]
    fn tasks_end_and_leave_what_was_asked_for() {
        for bits in 0_u8..128 {
            let bit = |n: u8| bits & (1 << n) != 0;
            let mut tenant = Tenant {
                deleted_at: bit(0).then(|| at(1)),
                present: bit(1),
                closed: bit(2),
                purging: bit(3) && bit(0),
                migrating: bit(4),
                repair: bit(6).then(|| Repair::parse("7", "applied").unwrap()),
                ..mk_tenant(if bit(5) { JobState::Ready } else { JobState::Failed })
            };
            for _ in 0..4 {
                let Some(task) = needed(&tenant) else { break };
                let commit = done(&tenant, task, None, &mk_actor(), at(5));
                let Write::Tenants(write) = &commit.writes[0] else { panic!() };
                let TenantsWrite::TenantUpdate(after) = &**write else { panic!() };
                tenant = after.clone();
            }
            assert_eq!(needed(&tenant), None, "{bits:b}");
            assert!(!tenant.purging || !tenant.present, "{bits:b}");
            let open = tenant.present && !tenant.closed;
            assert!(!open || tenant.deleted_at.is_none(), "{bits:b}");
        }
    }

    #[test]
    fn a_repair_comes_before_the_migration_and_only_to_a_ready_tenant() {
        let snapshot = |tenant| TenantSnapshot {
            now: at(9),
            project: None,
            profile: None,
            tenant: Some(tenant),
            paused: None,
            is_taken: false,
        };
        let wanted = Repair::parse("2.1", "not_applied").unwrap();
        assert_eq!(Repair::from_stored(&wanted.text()), Some(wanted.clone()));
        for wrong in ["", "x", "1;DROP", "1 applied", &"1".repeat(51)] {
            let refusal = Repair::parse(wrong, "applied").unwrap_err();
            assert_eq!(refusal.field.as_deref(), Some("version"), "{wrong}");
        }
        let refusal = Repair::parse("1", "perhaps").unwrap_err();
        assert_eq!(refusal.field.as_deref(), Some("found"));
        let failed = Tenant {
            migrating: true,
            failures: 3,
            last_error: Some("state unknown".to_owned()),
            ..mk_tenant(JobState::Ready)
        };
        let commit = repair(&snapshot(failed), &wanted, Expected::Any, &mk_actor()).unwrap();
        let Write::Tenants(write) = &commit.writes[0] else { panic!() };
        let TenantsWrite::TenantUpdate(after) = &**write else { panic!() };
        assert_eq!((needed(after), after.failures), (Some(Task::Repair), 0));
        let refused = withdrawn(after, "the ledger has no version 2.1");
        let Write::Tenants(write) = &refused.writes[0] else { panic!() };
        let TenantsWrite::TenantUpdate(after) = &**write else { panic!() };
        assert_eq!(needed(after), Some(Task::Migrate), "it is not tried again");
        for state in [JobState::Pending, JobState::Failed] {
            let there = snapshot(mk_tenant(state));
            let refusal = repair(&there, &wanted, Expected::Any, &mk_actor()).unwrap_err();
            assert_eq!(refusal.kind, ErrorKind::TenantBusy, "{state}");
        }
    }

    #[test]
    fn an_unfinished_job_has_its_tenant_alone() {
        let busy = Tenant { deleted_at: Some(at(1)), ..mk_tenant(JobState::Migrated) };
        assert_eq!(needed(&busy), None);
    }
}
