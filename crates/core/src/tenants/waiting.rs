//! Tenants that wait for a person: the target is ahead of the database, or the database was
//! restored while a job was unfinished. Neither trying again nor cleaning up is safe before
//! somebody has looked.

use serde_json::json;

use crate::access::audit::Actor;
use crate::commit::Commit;
use crate::error::{ErrorKind, Refusal};
use crate::ids::TenantJobId;
use crate::kind::{audited, existing};
use crate::operations::control::CLAIMS_PER_COUNT;
use crate::precondition::Expected;
use crate::tenants::TenantsWrite;
use crate::tenants::event::{TENANT_RESUMED, announce};
use crate::tenants::tenant::{Tenant, TenantSnapshot};
use crate::text::Reason;
use crate::time::Timestamp;

/// Numbers of work that were given out after the backup from which the database was restored.
/// The target may have them, and nobody knows what was done under them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostWork {
    /// The last number that is known.
    pub after: i64,
    /// The first number that was given out after the restore.
    pub before: i64,
}

/// A job goes on under a number of work that the target accepts. The target may be in use, so from
/// now on a step that fails lets it wait again, and cleans nothing up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumedJob {
    pub id: TenantJobId,
    pub work: i64,
    /// Why what it made is to be removed instead.
    pub clean_up: Option<String>,
}

/// What a person decided about a tenant that waits for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resume {
    pub reason: Reason,
    /// Remove what its unfinished job made, instead of going on with it.
    pub clean_up: bool,
}

/// A number above every one that the target can have, also after a restore that nobody noticed:
/// numbers grow by one, or to the floor of a restore, which is that of its time.
fn above_all(work: i64, now: Timestamp) -> i64 {
    let floor = (now.as_micros() / 1_000).saturating_add(1).saturating_mul(CLAIMS_PER_COUNT);
    floor.max(work.saturating_add(1))
}

/// The tenant goes on: what the database knows of it counts, whatever its target has.
pub fn resume(
    snapshot: &TenantSnapshot,
    resume: &Resume,
    expected: Expected,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let before = existing(&snapshot.tenant, expected)?;
    let is_unfinished = !before.state.is_over();
    if before.waiting_reason.is_none() && !(is_unfinished && snapshot.paused.is_some()) {
        let message = format!("tenant `{}` does not wait for a person", before.name);
        return Err(Refusal::new(ErrorKind::NothingToResume, message));
    }
    if resume.clean_up && !is_unfinished {
        let problem = "is for an unfinished job; decommission a tenant to remove it";
        return Err(Refusal::invalid("clean_up", problem));
    }
    let after = Tenant {
        work: above_all(before.work, snapshot.now),
        lost: None,
        waiting_reason: None,
        failures: 0,
        last_error: None,
        ..before.clone()
    };
    let revision = before.revision.next();
    let details = json!({
        "reason": resume.reason, "clean_up": resume.clean_up, "work": after.work,
        "lost_after": before.lost.map(|lost| lost.after),
    });
    let event = announce(TENANT_RESUMED, &after, revision, snapshot.now, before.deletion_id);
    let job = is_unfinished.then(|| ResumedJob {
        id: before.job_id,
        work: after.work,
        clean_up: resume.clean_up.then(|| resume.reason.as_str().to_owned()),
    });
    let about = before.about().at(revision);
    let write = TenantsWrite::TenantUpdate(after);
    let mut commit = audited(write, "tenant.resume", about, actor, snapshot.now, details);
    commit.writes.extend(job.map(|job| TenantsWrite::JobResume(job).into()));
    commit.events.push(event);
    Ok(commit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commit::Write;
    use crate::fixtures::tenants::mk_tenant;
    use crate::fixtures::{at, mk_actor};
    use crate::tenants::job::JobState;

    fn asked(clean_up: bool) -> Resume {
        Resume { reason: Reason::parse("looked").unwrap(), clean_up }
    }

    fn decide(tenant: Tenant, paused: Option<&str>, clean_up: bool) -> Result<Commit, Refusal> {
        let snapshot = TenantSnapshot {
            now: at(9),
            project: None,
            profile: None,
            tenant: Some(tenant),
            paused: paused.map(str::to_owned),
            is_taken: false,
        };
        resume(&snapshot, &asked(clean_up), Expected::Any, &mk_actor())
    }

    fn written(commit: &Commit) -> (Tenant, Option<ResumedJob>) {
        let write = |n: usize| match commit.writes.get(n) {
            Some(Write::Tenants(write)) => Some((**write).clone()),
            _ => None,
        };
        let Some(TenantsWrite::TenantUpdate(tenant)) = write(0) else { panic!("{commit:?}") };
        match write(1) {
            Some(TenantsWrite::JobResume(job)) => (tenant, Some(job)),
            _ => (tenant, None),
        }
    }

    #[test]
    fn only_what_waits_for_a_person_is_resumed() {
        for (state, paused) in
            [(JobState::Ready, Some("x")), (JobState::Failed, None), (JobState::Migrated, None)]
        {
            let refusal = decide(mk_tenant(state), paused, false).unwrap_err();
            assert_eq!(refusal.kind, ErrorKind::NothingToResume, "{state}");
        }
        let waiting =
            Tenant { waiting_reason: Some("ahead".to_owned()), ..mk_tenant(JobState::Ready) };
        let refusal = decide(waiting, None, true).unwrap_err();
        assert_eq!(refusal.field.as_deref(), Some("clean_up"));
    }

    #[test]
    fn a_task_goes_on_under_a_number_that_the_target_accepts() {
        let lost = Some(LostWork { after: 3, before: 1_000 });
        let waiting = Tenant {
            waiting_reason: Some("ahead".to_owned()),
            lost,
            work: 1_004,
            failures: 1,
            ..mk_tenant(JobState::Ready)
        };
        let (after, job) = written(&decide(waiting, None, false).unwrap());
        assert_eq!((after.lost, after.waiting_reason, after.failures), (None, None, 0));
        assert_eq!(after.work, 9_001 * CLAIMS_PER_COUNT, "whatever the target has");
        assert_eq!(job, None);
    }

    #[test]
    fn a_job_of_a_restored_database_cleans_up_only_if_somebody_says_so() {
        let lost = Some(LostWork { after: 3, before: 1_000 });
        let tenant = Tenant { lost, work: 1_000, ..mk_tenant(JobState::SchemaCreated) };
        let (_, job) = written(&decide(tenant.clone(), Some("restored"), false).unwrap());
        let job = job.unwrap();
        assert_eq!((job.work, job.clean_up), (9_001 * CLAIMS_PER_COUNT, None));
        let (_, job) = written(&decide(tenant, Some("restored"), true).unwrap());
        assert_eq!(job.unwrap().clean_up.as_deref(), Some("looked"));
    }
}
