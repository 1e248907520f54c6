//! Tasks: what a finished tenant needs on its target. Which one follows from the row alone, so
//! a task that was interrupted, or overtaken by a restore, is simply decided anew.

use serde_json::json;

use crate::access::audit::Actor;
use crate::closed_set::closed_set;
use crate::commit::Commit;
use crate::error::{ErrorKind, Refusal};
use crate::kind::{audited, existing};
use crate::precondition::Expected;
use crate::rollouts::next::Health;
use crate::tenants::TenantsWrite;
use crate::tenants::event::{
    TENANT_CLOSED, TENANT_DESTROYED, TENANT_MIGRATED, TENANT_REOPENED, announce,
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
    }
);

/// What the tenant needs now.
pub const fn needed(tenant: &Tenant) -> Option<Task> {
    if !tenant.state.is_over() {
        return None;
    }
    match (tenant.deleted_at.is_some(), tenant.present, tenant.closed) {
        (true, true, _) if tenant.purging => Some(Task::Destroy),
        (true, true, false) => Some(Task::Close),
        (false, true, true) => Some(Task::Reopen),
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
    let mut after = Tenant { failures: 0, last_error: None, ..tenant.clone() };
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
    };
    let revision = tenant.revision.next();
    let event = announce(event, &after, revision, now, tenant.deletion_id);
    let details = json!({ "work": tenant.work, "version": after.version });
    let about = tenant.about().at(revision);
    let write = TenantsWrite::TenantUpdate(after);
    let mut commit = audited(write, verb, about, actor, now, details);
    commit.events.push(event);
    commit
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
        Some(tenant) if tenant.failures >= TRIES => {
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
        for bits in 0_u8..64 {
            let bit = |n: u8| bits & (1 << n) != 0;
            let mut tenant = Tenant {
                deleted_at: bit(0).then(|| at(1)),
                present: bit(1),
                closed: bit(2),
                purging: bit(3) && bit(0),
                migrating: bit(4),
                ..mk_tenant(if bit(5) { JobState::Ready } else { JobState::Failed })
            };
            for _ in 0..3 {
                let Some(task) = needed(&tenant) else { break };
                let commit = done(&tenant, task, None, &mk_actor(), at(5));
                let crate::commit::Write::Tenants(write) = &commit.writes[0] else { panic!() };
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
    fn an_unfinished_job_has_its_tenant_alone() {
        let busy = Tenant { deleted_at: Some(at(1)), ..mk_tenant(JobState::Migrated) };
        assert_eq!(needed(&busy), None);
    }
}
