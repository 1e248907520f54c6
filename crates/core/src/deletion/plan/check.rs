//! Whether a request to delete may use the plan that it names.

use super::Plan;
use super::members::{Members, difference};
use crate::commit::{Commit, Write};
use crate::deletion::DeletionWrite;
use crate::deletion::door::{Ask, Door};
use crate::deletion::record::Deletion;
use crate::error::{ErrorKind, Refusal};
use crate::ids::{DeletionId, PlanId, Revision};
use crate::subject::Subject;
use crate::time::Timestamp;

/// A plan becomes a deletion: writes which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    pub plan: PlanId,
    /// Of the plan as it was read.
    pub revision: Revision,
    pub by: DeletionId,
}

impl Door {
    /// Refuses a request whose plan is of something else, is over, was used for another
    /// deletion, or read another world. A request without a plan passes.
    pub(crate) fn check_plan(
        &self,
        ask: &Ask,
        target: Subject,
        under_way: Option<&Deletion>,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let Some(id) = ask.plan else { return Ok(()) };
        let Some(plan) = &self.plan else {
            let message =
                format!("there is no plan {id}; a plan is kept for an hour, so plan again");
            return Err(Refusal::new(ErrorKind::PlanNotFound, message).at("plan"));
        };
        if plan.target != target {
            let message = format!(
                "plan {id} is of {} `{}`, which is not what this deletes; plan this {}",
                plan.target.kind, plan.name, target.kind
            );
            return Err(Refusal::new(ErrorKind::PlanMismatch, message).at("plan"));
        }
        if plan.cascade != ask.cascade {
            let (planned, remedy) = match plan.cascade {
                true => ("with what is in it", "set `cascade` (`--cascade`)"),
                false => ("alone", "leave `cascade` out"),
            };
            let message = format!("plan {id} deletes it {planned}; {remedy}, or plan again");
            return Err(Refusal::new(ErrorKind::PlanMismatch, message).at("cascade"));
        }
        let used = |deletion: &Deletion| plan.used_by == Some(deletion.id);
        if under_way.is_some_and(used) {
            return Ok(());
        }
        plan.check_open(now)?;
        self.check_reading(plan)
    }

    fn check_reading(&self, plan: &Plan) -> Result<(), Refusal> {
        let now = self.reading.as_ref().map(|reading| reading.members.clone()).unwrap_or_default();
        let now = Members::new(now);
        if now.digest() == plan.digest {
            return Ok(());
        }
        let difference = difference(&plan.members.parse()?, &now.parse()?);
        let message = format!(
            "since plan {} was made at {}, {}; {}",
            plan.id,
            plan.planned_at,
            difference.summary(),
            again(plan)
        );
        Err(Refusal::new(ErrorKind::PlanStale, message).with(difference.details()))
    }

    /// Writes that the plan became this deletion, in the commit that begins it.
    pub(crate) fn use_plan(&self, commit: &mut Commit, by: DeletionId) {
        if let Some(plan) = self.plan.as_ref().filter(|_| !commit.is_empty()) {
            let used = Use { plan: plan.id, revision: plan.revision, by };
            commit.writes.push(Write::Deletion(DeletionWrite::PlanUse(used)));
        }
    }
}

impl Plan {
    /// Refuses a plan that was used or is over.
    pub(crate) fn check_open(&self, now: Timestamp) -> Result<(), Refusal> {
        let (id, again) = (self.id, again(self));
        if let Some(used_by) = self.used_by {
            let message = format!("plan {id} was used by deletion {used_by}; {again}");
            return Err(Refusal::new(ErrorKind::PlanUsed, message));
        }
        if self.expires_at <= now {
            let message = format!("plan {id} expired at {}; {again}", self.expires_at);
            return Err(Refusal::new(ErrorKind::PlanExpired, message));
        }
        Ok(())
    }
}

/// The remedy, to be copied.
fn again(plan: &Plan) -> String {
    let cascade = if plan.cascade { " --cascade" } else { "" };
    format!("plan again with `slipway plan delete {} {}{cascade}`", plan.target.kind, plan.name)
}
