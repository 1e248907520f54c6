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
        let now = self.reading.as_ref().map_or(&[][..], |reading| &reading.members);
        if Members::new(now).digest() == plan.digest {
            return Ok(());
        }
        let difference = difference(&plan.members.parse()?, now);
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

#[cfg(test)]
mod tests {
    use super::super::LIFETIME;
    use super::super::members::Member;
    use super::super::shown::{Composed, Reading, Shown};
    use super::*;
    use crate::fixtures::at;
    use crate::fixtures::catalog::mk_ask;
    use crate::subject::SubjectKind;
    use uuid::Uuid;

    fn member(id: u128) -> Member {
        Member {
            subject: Subject::new(SubjectKind::Resource, Uuid::from_u128(id)),
            name: format!("web-{id}"),
            attempt: Some(1),
            nodes: Vec::new(),
            protected: None,
        }
    }

    fn mk_plan() -> Plan {
        let members = Members::new(&[member(1)]);
        let shown = Shown {
            resources: 1,
            steps: Vec::new(),
            composed: Composed::default(),
            protected: Vec::new(),
            protected_count: 0,
            refusals: Vec::new(),
            withheld: None,
            under_way: None,
            grace_seconds: 0,
            limit_seconds: 0,
            typical_seconds: None,
            typical_of: 0,
        };
        Plan {
            id: PlanId::new(Uuid::from_u128(9)),
            revision: Revision::FIRST,
            target: member(1).subject,
            name: "web-1".to_owned(),
            project_id: None,
            cascade: false,
            planned_by: "key:a".to_owned(),
            planned_at: at(1_000),
            expires_at: at(1_000).plus(LIFETIME),
            used_by: None,
            approval: None,
            digest: members.digest(),
            members,
            shown,
        }
    }

    fn refused(plan: Option<Plan>, ask: &Ask, now: Timestamp) -> Option<ErrorKind> {
        let reading = Reading { members: vec![member(1)], ..Reading::default() };
        let door = Door { plan, reading: Some(reading), ..Door::default() };
        door.check_plan(ask, member(1).subject, None, now).err().map(|refusal| refusal.kind)
    }

    #[test]
    fn a_plan_holds_for_its_target_its_time_and_one_deletion() {
        let ask = Ask { plan: Some(mk_plan().id), ..mk_ask() };
        let early = at(1_001);
        assert_eq!(refused(Some(mk_plan()), &ask, early), None);
        assert_eq!(refused(None, &mk_ask(), early), None, "nobody asked for one");
        assert_eq!(refused(None, &ask, early), Some(ErrorKind::PlanNotFound));
        let late = at(1_000).plus(LIFETIME);
        assert_eq!(refused(Some(mk_plan()), &ask, late), Some(ErrorKind::PlanExpired));
        let other = Plan { target: member(2).subject, ..mk_plan() };
        assert_eq!(refused(Some(other), &ask, early), Some(ErrorKind::PlanMismatch));
        let cascade = Ask { cascade: true, ..ask.clone() };
        assert_eq!(refused(Some(mk_plan()), &cascade, early), Some(ErrorKind::PlanMismatch));
        let used = Plan { used_by: Some(ask.deletion_id), ..mk_plan() };
        assert_eq!(refused(Some(used), &ask, early), Some(ErrorKind::PlanUsed));
        let members = Members::new(&[member(1), member(2)]);
        let moved = Plan { digest: members.digest(), members, ..mk_plan() };
        assert_eq!(refused(Some(moved), &ask, early), Some(ErrorKind::PlanStale));
    }
}
