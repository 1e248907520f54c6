//! Why a tenant does not advance, found when somebody reads it: the rows of the tenant and of
//! its last job say everything, so nothing is stored.

use serde_json::json;

use crate::blocker::{Blocker, BlockerCode};
use crate::tenants::job::TenantJob;
use crate::tenants::task::needed;
use crate::tenants::tenant::Tenant;

pub fn blockers(tenant: &Tenant, job: Option<&TenantJob>) -> Vec<Blocker> {
    let of_job = job.filter(|job| job.id == tenant.job_id).and_then(of_job);
    of_job.into_iter().chain(of_task(tenant)).collect()
}

fn of_job(job: &TenantJob) -> Option<Blocker> {
    if job.state.is_over() || job.worker.is_some() {
        return None;
    }
    let evidence = json!({
        "job_id": job.id, "state": job.state, "failures": job.step_attempts, "made": job.made,
    });
    let blocker = |code, message, next_retry_at| Blocker {
        code,
        message,
        since: job.updated_at,
        evidence,
        next_retry_at,
    };
    match (&job.paused, job.not_before) {
        (Some(reason), None) => Some(blocker(BlockerCode::TenantWaiting, reason.clone(), None)),
        (_, next) if job.step_attempts > 0 => {
            let message = match job.last_error.is_empty() {
                true => "cleanup failed; the log of the replica says why".to_owned(),
                false => job.last_error.clone(),
            };
            Some(blocker(BlockerCode::TenantStepFailing, message, next))
        }
        _ => None,
    }
}

fn of_task(tenant: &Tenant) -> Option<Blocker> {
    let task = needed(tenant)?;
    let (code, message) = match (&tenant.waiting_reason, &tenant.last_error) {
        (Some(reason), _) => (BlockerCode::TenantWaiting, reason.clone()),
        (None, Some(error)) => (BlockerCode::TenantTaskFailing, error.clone()),
        (None, None) => return None,
    };
    let evidence = json!({ "task": task, "failures": tenant.failures });
    Some(Blocker { code, message, since: tenant.updated_at, evidence, next_retry_at: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::at;
    use crate::fixtures::tenants::mk_tenant;
    use crate::tenants::job::JobState;

    fn mk_job(state: JobState) -> TenantJob {
        let tenant = mk_tenant(state);
        TenantJob {
            id: tenant.job_id,
            tenant_id: tenant.id,
            state,
            attempts: 0,
            last_error: String::new(),
            retry_of: None,
            step_attempts: 0,
            not_before: Some(at(9)),
            worker: None,
            claim_token: 1,
            made: Vec::new(),
            leaked: Vec::new(),
            history: Vec::new(),
            paused: None,
            cancelled: None,
            created_at: at(0),
            updated_at: at(1),
        }
    }

    fn codes(tenant: &Tenant, job: &TenantJob) -> Vec<BlockerCode> {
        blockers(tenant, Some(job)).into_iter().map(|blocker| blocker.code).collect()
    }

    #[test]
    fn a_job_is_blocked_by_its_failures_or_by_a_decision() {
        let (tenant, job) = (mk_tenant(JobState::Migrated), mk_job(JobState::Migrated));
        assert_eq!(codes(&tenant, &job), []);
        let failing = TenantJob { step_attempts: 2, last_error: "no".to_owned(), ..job.clone() };
        let found = blockers(&tenant, Some(&failing));
        assert_eq!(
            (found[0].code, found[0].next_retry_at),
            (BlockerCode::TenantStepFailing, Some(at(9)))
        );
        let worked_on = TenantJob { worker: Some("w".to_owned()), ..failing.clone() };
        assert_eq!(codes(&tenant, &worked_on), []);
        let waiting = TenantJob { paused: Some("ahead".to_owned()), not_before: None, ..failing };
        assert_eq!(codes(&tenant, &waiting), [BlockerCode::TenantWaiting]);
        let other = mk_tenant(JobState::Ready);
        assert_eq!(codes(&other, &mk_job(JobState::Ready)), []);
    }

    #[test]
    fn a_task_is_blocked_by_its_error_or_by_a_decision() {
        let job = mk_job(JobState::Ready);
        let migrating = Tenant { migrating: true, ..mk_tenant(JobState::Ready) };
        assert_eq!(codes(&migrating, &job), []);
        let failing = Tenant { last_error: Some("no".to_owned()), ..migrating };
        assert_eq!(codes(&failing, &job), [BlockerCode::TenantTaskFailing]);
        let waiting = Tenant { waiting_reason: Some("ahead".to_owned()), ..failing };
        assert_eq!(codes(&waiting, &job), [BlockerCode::TenantWaiting]);
        let over = Tenant { migrating: false, ..waiting };
        assert_eq!(codes(&over, &job), [], "nothing is owed");
    }
}
