//! Approval by a second person: above a number of resources a project's deletions need a
//! plan that somebody else approved. The approved plan also passes the brake, since two
//! people have looked at what goes.

use std::time::Duration;

use serde_json::json;

use crate::access::audit::{About, Actor, AuditEntry};
use crate::access::holder::Holder;
use crate::commit::{Commit, Write};
use crate::deletion::DeletionWrite;
use crate::deletion::door::{Ask, Door, Taking};
use crate::deletion::plan::Plan;
use crate::error::{ErrorKind, Refusal};
use crate::ids::{PlanId, Revision};
use crate::text::Reason;
use crate::time::Timestamp;

/// How long a plan that needs an approval waits for it.
pub const AWAITED_FOR: Duration = Duration::from_secs(24 * 3_600);

/// How long an approved plan can be used.
pub const APPROVED_FOR: Duration = Duration::from_secs(4 * 3_600);

/// Who approved a plan, why, and until when that holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// The name of the key.
    pub by: String,
    pub reason: String,
    pub at: Timestamp,
    pub until: Timestamp,
}

/// A plan becomes approved: writes by whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approved {
    pub plan: PlanId,
    /// Of the plan as it was read.
    pub revision: Revision,
    pub approval: Approval,
}

/// A plan, its row locked, and the two people.
#[derive(Debug, Clone)]
pub struct PlanSnapshot {
    pub now: Timestamp,
    pub plan: Plan,
    /// Who is behind the key that made the plan; `None` for a part of this process.
    pub planner: Option<Holder>,
    /// Who is behind the key that asks.
    pub approver: Option<Holder>,
}

/// Approves a plan that somebody else made. Repeated it changes nothing.
pub fn approve(snapshot: &PlanSnapshot, reason: &Reason, actor: &Actor) -> Result<Commit, Refusal> {
    let PlanSnapshot { now, plan, planner, approver } = snapshot;
    plan.check_open(*now)?;
    let Some(approver) = approver else {
        let message = "a plan is approved by a person with a key; this caller has none";
        return Err(Refusal::new(ErrorKind::Forbidden, message));
    };
    if let Some(planner) = planner.as_ref().filter(|planner| planner.is_same_person(approver)) {
        return Err(same_person(&planner.key, "made the plan", approver));
    }
    if plan.approval.as_ref().is_some_and(|approval| approval.until > *now) {
        return Ok(Commit::default());
    }
    let until = now.plus(APPROVED_FOR);
    let reason = reason.as_str().to_owned();
    let entry = AuditEntry::new("plan.approve", actor, about(plan), *now)
        .because(&*reason)
        .with(json!({ "plan_id": plan.id, "planned_by": plan.planned_by, "until": until }));
    let approval = Approval { by: approver.key.clone(), reason, at: *now, until };
    let write = Approved { plan: plan.id, revision: plan.revision, approval };
    Ok(Commit {
        writes: vec![Write::Deletion(DeletionWrite::PlanApprove(write))],
        audit: vec![entry],
        ..Commit::default()
    })
}

fn about(plan: &Plan) -> About {
    let about = About::new(plan.target);
    plan.project_id.map_or(about, |project| about.of(project))
}

fn same_person(one: &str, did: &str, other: &Holder) -> Refusal {
    let message = format!(
        "`{one}` {did}, and `{}` is the same person: the keys have one owner, or one of them made \
         or rotated the other; ask somebody else to approve it",
        other.key
    );
    Refusal::new(ErrorKind::SamePerson, message)
}

/// The two people at the door, if the plan of a request is approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct People {
    /// `None` for a part of this process.
    pub caller: Option<Holder>,
    pub approver: Option<Holder>,
}

impl Door {
    /// Whether the plan of this request is approved by somebody else than who asks.
    pub(crate) fn is_approved(&self, ask: &Ask, now: Timestamp) -> Result<bool, Refusal> {
        let approval = self.plan.as_ref().filter(|_| ask.plan.is_some());
        let approval = approval.and_then(|plan| plan.approval.as_ref());
        if approval.is_none_or(|approval| approval.until <= now) {
            return Ok(false);
        }
        match &self.people {
            Some(People { caller: Some(caller), approver: Some(approver) })
                if caller.is_same_person(approver) =>
            {
                Err(same_person(&approver.key, "approved the plan", caller))
            }
            // Whoever approved it cannot be found any more.
            Some(People { approver: None, .. }) | None => Ok(false),
            Some(_) => Ok(true),
        }
    }

    /// Refuses a deletion that needs an approval and has none. What the caller deleted of
    /// the project lately counts, so that nothing is gained by small steps.
    pub(crate) fn check_approval(&self, taking: Taking<'_>) -> Result<(), Refusal> {
        let Some(above) = self.defaults.approve_above else { return Ok(()) };
        let lately = self.brake.as_ref().map_or(0, |counted| counted.lately_in_project);
        let Taking { kind, name, resources } = taking;
        if resources == 0 || resources + lately <= above {
            return Ok(());
        }
        let message = format!(
            "to delete {kind} `{name}` takes {resources} resources and stacks away{}, and more than {above} \
             need the approval of a second person: plan it with `slipway plan delete {kind} \
             {name}`, have somebody else approve it with `slipway plan approve`, and delete it \
             with `--plan`",
            if lately > 0 { format!(", {lately} more went lately") } else { String::new() },
        );
        let details = json!({ "resources": resources, "lately": lately, "above": above });
        Err(Refusal::new(ErrorKind::ApprovalRequired, message).with(details))
    }
}
