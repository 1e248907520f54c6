//! Tenants and their jobs: where a job is, what it waits for, and what to do about it.

use serde_json::json;

use crate::operations::control::Mode;
use crate::operations::explanation::{
    ExplainedKind, Explanation, FailureLine, HistoryLine, Holder, Part,
};
use crate::tenants::blockers::blockers;
use crate::tenants::job::{JobState, TenantJob};
use crate::tenants::task::{Task, needed};
use crate::tenants::tenant::Tenant;
use crate::time::Timestamp;

/// What was read of a tenant.
#[derive(Debug, Clone)]
pub struct TenantFacts<'a> {
    pub now: Timestamp,
    pub mode: Mode,
    pub project: &'a str,
    pub profile: &'a str,
    pub tenant: &'a Tenant,
    pub job: Option<&'a TenantJob>,
}

pub fn tenant(facts: &TenantFacts<'_>) -> Explanation {
    let tenant = facts.tenant;
    let (state, since) = match tenant.deleted_at {
        Some(at) if tenant.closed => ("decommissioned".to_owned(), at),
        Some(at) => ("deleted".to_owned(), at),
        None if tenant.closed => ("closed".to_owned(), tenant.updated_at),
        None => (tenant.state.to_string(), tenant.updated_at),
    };
    let name = tenant.name.as_str();
    let id = tenant.id.as_uuid();
    let mut found = Explanation::new(ExplainedKind::Tenant, id, name, state, since);
    found.facts.insert("project", json!(facts.project));
    found.facts.insert("profile", json!(facts.profile));
    found.facts.insert("version", json!(tenant.version));
    found.facts.insert("job_id", json!(tenant.job_id));
    found.blockers = blockers(tenant, facts.job);
    if let Some(job) = facts.job {
        progress(&mut found, facts, job);
        found.parts.push(Part {
            kind: "job".to_owned(),
            id: job.id.as_uuid(),
            name: job.id.to_string(),
            state: job.state.to_string(),
            since: Some(job.updated_at),
            about: Some(format!("its last job; {} edges forward", job.attempts)),
            resource_id: None,
            blockers: Vec::new(),
        });
    }
    if let Some(task) = needed(tenant) {
        owed(&mut found, facts, task);
    } else if tenant.deleted_at.is_some() {
        found.next = "nothing until its retention ends; then it is purged".to_owned();
        found.waiting_for = None;
        found.notice = Some(format!(
            "it is decommissioned and its data kept; `slipway tenant restore {name}` brings it back"
        ));
    }
    found
}

pub fn job(facts: &TenantFacts<'_>, job: &TenantJob) -> Explanation {
    let (id, name) = (job.id.as_uuid(), job.id.to_string());
    let state = job.state.as_str();
    let mut found = Explanation::new(ExplainedKind::Job, id, name, state, job.updated_at);
    found.facts.insert("tenant", json!(facts.tenant.name));
    found.facts.insert("project", json!(facts.project));
    found.facts.insert("retry_of", json!(job.retry_of));
    found.facts.insert("made", json!(job.made));
    if facts.tenant.job_id == job.id {
        found.blockers = blockers(facts.tenant, Some(job));
        progress(&mut found, facts, job);
    } else {
        found.next = format!("nothing: job {} followed it", facts.tenant.job_id);
    }
    found
}

/// What an unfinished job waits for, and how a failed one is helped.
fn progress(found: &mut Explanation, facts: &TenantFacts<'_>, job: &TenantJob) {
    let name = facts.tenant.name.as_str();
    let lines = job.history.iter().zip(1..);
    found.history = lines
        .map(|(line, number)| HistoryLine {
            number,
            at: line.at,
            from: Some(line.from.clone()),
            to: line.to.clone(),
            why: line.error.clone().unwrap_or_default(),
        })
        .collect();
    if let (Some(worker), Some(until)) = (&job.worker, job.not_before) {
        found.holder = Some(Holder { worker: worker.clone(), until });
    }
    if !job.leaked.is_empty() {
        found.facts.insert("leaked", json!(job.leaked));
    }
    if job.state == JobState::Failed {
        let failure = job.history.iter().rev().find_map(|line| line.error.clone());
        let at = job.updated_at;
        let reason = failure.unwrap_or_else(|| job.last_error.clone());
        found.failure = Some(FailureLine { at, reason, observed: json!(null) });
        found.waiting_for = Some(match job.leaked.len() {
            0 => format!(
                "somebody to remove the cause and try again: `slipway tenant retry {name}`; nothing of it is left on the target"
            ),
            leaks => format!(
                "somebody to remove the cause: cleanup failed and left {leaks} thing(s) on the target; `slipway tenant retry {name}` takes them over, `slipway tenant decommission {name}` removes them when it is purged"
            ),
        });
        found.next = "nothing".to_owned();
        return;
    }
    if job.state == JobState::Ready {
        found.next = "nothing".to_owned();
        return;
    }
    let parked = job.not_before.filter(|at| job.worker.is_none() && *at > facts.now);
    found.next_check_at = parked;
    let failed = format!("its step failed {} time(s) in a row", job.step_attempts);
    let cause =
        if job.last_error.is_empty() { String::new() } else { format!(": {}", job.last_error) };
    found.waiting_for = match (&facts.mode, &job.paused) {
        (_, Some(reason)) if job.not_before.is_none() => {
            found.next = "nothing until somebody decides".to_owned();
            found.waiting_for = Some(format!(
                "a person: {reason}; look at its target, then `slipway tenant resume {name}` goes on, and with `--clean-up` removes what this job made"
            ));
            return;
        }
        _ if job.state == JobState::Cleanup && job.step_attempts > 0 => {
            Some(format!("cleanup, which failed and is tried again{cause}"))
        }
        (_, Some(reason)) => Some(format!("somebody to resume it; it is paused: {reason}")),
        (Mode::Frozen(freeze), _) if job.state != JobState::Cleanup => Some(format!(
            "the end of the freeze, at {}; `slipway unfreeze` ends it sooner",
            freeze.until
        )),
        (Mode::Observing(_), _) if job.state != JobState::Cleanup => {
            Some("the installation to act again: `slipway resume`".to_owned())
        }
        _ if parked.is_some() && job.step_attempts > 0 => {
            Some(format!("its next try; {failed}{cause}"))
        }
        _ if job.worker.is_some() => Some(format!("the step after {}", job.state)),
        _ => Some("a worker that claims it".to_owned()),
    };
    found.next = match parked {
        Some(at) => format!("it is tried again at {at}"),
        None => "it goes on by itself".to_owned(),
    };
}

/// What a task waits for.
fn owed(found: &mut Explanation, facts: &TenantFacts<'_>, task: Task) {
    let tenant = facts.tenant;
    let what = match task {
        Task::Close => "its sessions and logins to be ended",
        Task::Reopen => "its logins to be given back",
        Task::Destroy => "its objects to be removed and proven gone",
        Task::Migrate => "its migrations",
        Task::Repair => "its ledger to be repaired",
    };
    found.facts.insert("task", json!(task));
    if let Some(reason) = &tenant.waiting_reason {
        found.next = "nothing until somebody decides".to_owned();
        found.waiting_for = Some(format!(
            "a person: {reason}; look at its target, then `slipway tenant resume {}` goes on",
            tenant.name
        ));
        return;
    }
    found.waiting_for = Some(match (&facts.mode, &tenant.last_error) {
        (Mode::Frozen(freeze), _) => {
            format!("{what}; a freeze until {} withholds it", freeze.until)
        }
        (Mode::Observing(_), _) => {
            format!("{what}; the installation only observes, `slipway resume` ends that")
        }
        (Mode::Acting, Some(error)) => {
            format!("{what}, which failed {} time(s): {error}", tenant.failures)
        }
        (Mode::Acting, None) => what.to_owned(),
    });
    found.next = "it is tried until it succeeds".to_owned();
}
