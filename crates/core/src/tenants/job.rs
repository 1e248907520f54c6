//! Jobs: what a tenant does when its job follows an edge, and how one is tried again. The
//! library runs them and has the graph; here a test of the store compares the states.

use serde_json::json;

use crate::access::audit::{Actor, AuditEntry};
use crate::closed_set::closed_set;
use crate::commit::{Commit, StateChange, Write};
use crate::deletion::leak::LeakRecord;
use crate::deletion::write::DeletionWrite;
use crate::error::{ErrorKind, Refusal};
use crate::ids::{LeakRecordId, TenantId, TenantJobId};
use crate::kind::{audited, existing};
use crate::precondition::Expected;
use crate::tenants::TenantsWrite;
use crate::tenants::event::{
    JOB_ADVANCED, JOB_CLEANUP, JOB_FAILED, JOB_RETRIED, TENANT_READY, announce,
};
use crate::tenants::tenant::{Tenant, TenantSnapshot, job_of};
use crate::tenants::write::Advance;
use crate::time::Timestamp;

closed_set!(
    /// Where a job is on its way.
    JobState {
        Pending => "pending",
        SchemaCreated => "schema_created",
        RoleCreated => "role_created",
        Migrated => "migrated",
        Seeded => "seeded",
        Ready => "ready",
        Cleanup => "cleanup",
        Failed => "failed",
    }
);

impl JobState {
    /// Whether nothing follows.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Ready | Self::Failed)
    }
}

/// A job as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantJob {
    pub id: TenantJobId,
    pub tenant_id: TenantId,
    pub state: JobState,
    /// One more with each edge forward.
    pub attempts: i32,
    /// Why its last step failed; empty if it did not. Without known secrets.
    pub last_error: String,
    pub retry_of: Option<TenantJobId>,
    /// How often the current step failed in a row.
    pub step_attempts: i32,
    /// When it may be claimed; of a claimed one the end of the lease.
    pub not_before: Option<Timestamp>,
    /// The worker whose lease lasts.
    pub worker: Option<String>,
    pub claim_token: i64,
    /// What its steps made and did not remove, and what cleanup could not remove.
    pub made: Vec<String>,
    pub leaked: Vec<String>,
    pub history: Vec<JobLine>,
    pub paused: Option<String>,
    pub cancelled: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// An edge of the past.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobLine {
    pub from: String,
    pub to: String,
    pub at: Timestamp,
    pub worker: Option<String>,
    pub error: Option<String>,
}

/// One or two edges that a job followed in one change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Followed {
    pub job_id: TenantJobId,
    pub from: JobState,
    pub to: Vec<JobState>,
    /// The last migration that it applied.
    pub version: Option<String>,
    /// What cleanup could not remove.
    pub leaked: Vec<String>,
    /// It took over what a failed job may have left behind.
    pub is_retry: bool,
}

/// The kind of the leak record of a job whose cleanup failed: what it made may still be there.
/// It holds up no purge, which removes that and proves it gone.
pub const LEAK_KIND: &str = "tenant_leftovers";

/// The tenant follows its job. A job that is not the tenant's last one changes nothing.
pub fn follow(tenant: &Tenant, followed: &Followed, actor: &Actor, now: Timestamp) -> Commit {
    let Some(last) = followed.to.last().copied() else { return Commit::default() };
    if tenant.job_id != followed.job_id {
        return Commit::default();
    }
    let mut commit = Commit::default();
    let (mut from, mut revision) = (followed.from, tenant.revision);
    let version = followed.version.clone().or_else(|| tenant.version.clone());
    for to in followed.to.iter().copied() {
        revision = revision.next();
        let event = match to {
            JobState::Ready => TENANT_READY,
            JobState::Cleanup => JOB_CLEANUP,
            JobState::Failed => JOB_FAILED,
            _ => JOB_ADVANCED,
        };
        let after = Tenant { state: to, version: version.clone(), ..tenant.clone() };
        commit.events.push(announce(event, &after, revision, now, None));
        let change = StateChange {
            subject: tenant.id.into(),
            revision,
            at: now,
            from: Some(from.as_str()),
            to: to.as_str(),
            why: format!("job {}", followed.job_id),
        };
        // The error of a step comes from outside: the job has it, the audit does not.
        let details = json!({ "job_id": followed.job_id, "from": from, "to": to });
        let entry = AuditEntry::new("tenant.advance", actor, tenant.about().at(revision), now);
        commit.audit.push(entry.with(details).changing(change));
        from = to;
    }
    let leaks = i32::try_from(followed.leaked.len()).unwrap_or(i32::MAX);
    if last == JobState::Failed && leaks > 0 {
        let leak = LeakRecord {
            id: LeakRecordId::new(followed.job_id.as_uuid()),
            kind: LEAK_KIND,
            subject: tenant.id.into(),
            found_at: now,
            last_known: None,
            evidence: json!({
                "tenant": tenant.name, "target_name": tenant.target_name,
                "profile_id": tenant.profile_id, "job_id": followed.job_id,
                "objects": followed.leaked,
            }),
        };
        commit.writes.push(Write::Deletion(DeletionWrite::LeakInsert(leak)));
    } else if last.is_over() && followed.is_retry {
        commit.writes.push(Write::Deletion(DeletionWrite::LeaksResolve(tenant.id.into())));
    }
    let advance = Advance {
        id: tenant.id,
        read: tenant.revision,
        revision,
        state: last,
        version: if last == JobState::Failed { None } else { version },
        // From its first step on something may be there, until cleanup has removed all of it.
        present: last != JobState::Failed || leaks > 0,
        leaks,
    };
    commit.writes.push(TenantsWrite::Advance(advance).into());
    commit
}

/// A new job for a tenant whose job failed.
pub fn retry(
    snapshot: &TenantSnapshot,
    job_id: TenantJobId,
    expected: Expected,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let before = existing(&snapshot.tenant, expected)?;
    if before.state != JobState::Failed {
        let message = format!(
            "the last job of tenant `{}` is {}; only a failed one is tried again",
            before.name, before.state
        );
        let details = json!({ "job_id": before.job_id, "state": before.state });
        return Err(Refusal::new(ErrorKind::NothingToRetry, message).with(details));
    }
    if before.deletion_id.is_some() {
        let message = format!("tenant `{}` is about to be decommissioned", before.name);
        return Err(Refusal::new(ErrorKind::Leaving, message));
    }
    let after = Tenant {
        state: JobState::Pending,
        job_id,
        work: before.work + 1,
        leaks: 0,
        ..before.clone()
    };
    let revision = before.revision.next();
    let event = announce(JOB_RETRIED, &after, revision, snapshot.now, None);
    let change = StateChange {
        subject: before.id.into(),
        revision,
        at: snapshot.now,
        from: Some(before.state.as_str()),
        to: after.state.as_str(),
        why: format!("retry of job {}", before.job_id),
    };
    let details = json!({ "job_id": job_id, "retry_of": before.job_id });
    let job = TenantsWrite::JobInsert(job_of(&after, Some(before.job_id)));
    let about = before.about().at(revision);
    let write = TenantsWrite::TenantUpdate(after);
    let mut commit = audited(write, "tenant.retry", about, actor, snapshot.now, details);
    commit.audit[0].change = Some(change);
    commit.writes.push(job.into());
    commit.events.push(event);
    Ok(commit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::tenants::mk_tenant;
    use crate::fixtures::{at, mk_actor};

    fn advance(commit: &Commit) -> &Advance {
        let Some(Write::Tenants(write)) = commit.writes.last() else { panic!("{commit:?}") };
        let TenantsWrite::Advance(advance) = &**write else { panic!("{write:?}") };
        advance
    }

    fn followed(from: JobState, to: &[JobState], leaks: i32) -> Followed {
        let job_id = mk_tenant(from).job_id;
        let leaked = (0..leaks).map(|n| format!("schema {n}")).collect();
        let (to, version) = (to.to_vec(), Some("7".to_owned()));
        Followed { job_id, from, to, version, leaked, is_retry: false }
    }

    #[test]
    fn each_edge_has_a_revision_an_event_and_an_audit_entry() {
        let tenant = mk_tenant(JobState::Migrated);
        let edges = followed(JobState::Migrated, &[JobState::Seeded, JobState::Ready], 0);
        let commit = follow(&tenant, &edges, &mk_actor(), at(5));
        let revisions: Vec<_> = commit.state_changes().map(|change| change.revision).collect();
        let first = tenant.revision.next();
        assert_eq!(revisions, [first, first.next()]);
        assert_eq!((commit.events.len(), commit.audit.len()), (2, 2));
        let written = advance(&commit);
        assert_eq!(written.revision, *revisions.last().unwrap());
        assert_eq!((written.state, written.present), (JobState::Ready, true));
        assert_eq!(written.version.as_deref(), Some("7"));
    }

    #[test]
    fn after_a_failure_only_leaks_are_left() {
        let tenant = mk_tenant(JobState::Cleanup);
        for leaks in [0, 2] {
            let edges = followed(JobState::Cleanup, &[JobState::Failed], leaks);
            let commit = follow(&tenant, &edges, &mk_actor(), at(5));
            let written = advance(&commit);
            assert_eq!((written.present, written.leaks), (leaks > 0, leaks));
            let leak = commit.writes.iter().find_map(|write| match write {
                Write::Deletion(DeletionWrite::LeakInsert(leak)) => Some(leak),
                _ => None,
            });
            assert_eq!(leak.map(|leak| leak.subject), (leaks > 0).then(|| tenant.id.into()));
            assert_eq!(written.version, None);
        }
        let other = Followed {
            job_id: TenantJobId::new(uuid::Uuid::from_u128(99)),
            ..followed(JobState::Cleanup, &[JobState::Failed], 0)
        };
        assert!(follow(&tenant, &other, &mk_actor(), at(5)).is_empty());
    }

    #[test]
    fn only_a_failed_job_is_tried_again_and_with_a_higher_number() {
        let job = TenantJobId::new(uuid::Uuid::from_u128(77));
        let snapshot = |state| TenantSnapshot {
            now: at(9),
            project: None,
            profile: None,
            tenant: Some(mk_tenant(state)),
            paused: None,
            is_taken: false,
        };
        for state in JobState::ALL.iter().copied().filter(|state| *state != JobState::Failed) {
            let refusal = retry(&snapshot(state), job, Expected::Any, &mk_actor()).unwrap_err();
            assert_eq!(refusal.kind, ErrorKind::NothingToRetry, "{state}");
        }
        let failed = snapshot(JobState::Failed);
        let commit = retry(&failed, job, Expected::Any, &mk_actor()).unwrap();
        let Some(Write::Tenants(write)) = commit.writes.get(1) else { panic!("{commit:?}") };
        let TenantsWrite::JobInsert(new) = &**write else { panic!("{write:?}") };
        let before = mk_tenant(JobState::Failed);
        assert_eq!((new.work, new.retry_of), (before.work + 1, Some(before.job_id)));
    }
}
