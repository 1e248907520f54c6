//! Making a plan from what a request to delete reads. The refusals are those of the rules
//! that decide about the deletion itself.

use std::time::Duration;

use super::members::Members;
use super::shown::{Composed, Reading, RefusalShown, Shown};
use super::{LIFETIME, Plan};
use crate::access::audit::Actor;
use crate::blocker::Deadlines;
use crate::broker::decide::Outcome;
use crate::commit::{Commit, Write};
use crate::deletion::DeletionWrite;
use crate::deletion::approval::AWAITED_FOR;
use crate::deletion::door::{Ask, Door};
use crate::deletion::record::Deletion;
use crate::error::{ErrorKind, Refusal};
use crate::ids::{PlanId, ProjectId, Revision};
use crate::operations::control::Mode;
use crate::subject::Subject;
use crate::time::Timestamp;

/// What a plan is made of, beside the reading.
#[derive(Debug)]
pub struct Draft<'a> {
    pub target: Subject,
    pub name: String,
    pub project_id: Option<ProjectId>,
    pub now: Timestamp,
    pub under_way: Option<&'a Deletion>,
    /// Of the rules of its kind.
    pub refusals: Vec<Refusal>,
}

/// What the rows do not say.
#[derive(Debug, Clone)]
pub struct Circumstances {
    pub plan_id: PlanId,
    /// The request that is planned.
    pub ask: Ask,
    pub mode: Mode,
    pub deadlines: Deadlines,
    pub composed: Composed,
}

impl Draft<'_> {
    pub(crate) fn planned(
        self,
        door: &Door,
        circumstances: &Circumstances,
        actor: &Actor,
    ) -> Result<Plan, Refusal> {
        let Circumstances { ask, composed, .. } = circumstances;
        let Some(reading) = &door.reading else {
            return Err(Refusal::new(ErrorKind::Internal, "the plan was read without its members"));
        };
        let members = Members::new(&reading.members);
        // A deletion that is under way answers, whatever would refuse another one.
        let refusals = self.refusals.iter().filter(|_| self.under_way.is_none());
        let grace = ask.grace.unwrap_or(door.defaults.grace);
        let (typical_seconds, typical_of) = reading.typical();
        let awaits = |refusal: &Refusal| refusal.kind == ErrorKind::ApprovalRequired;
        let lifetime = if self.refusals.iter().any(awaits) { AWAITED_FOR } else { LIFETIME };
        let shown = Shown {
            resources: reading.resource_count(),
            steps: reading.stages(),
            composed: composed.clone(),
            protected: door
                .protections
                .iter()
                .take(20)
                .map(|one| format!("{} {}: {}", one.subject.kind, one.name, one.reason))
                .collect(),
            protected_count: u64::try_from(door.protections.len()).unwrap_or(u64::MAX),
            refusals: refusals
                .map(|refusal| shown(refusal.kind.code(), &refusal.message))
                .collect(),
            withheld: withheld(&circumstances.mode),
            under_way: self.under_way.map(|deletion| deletion.id),
            grace_seconds: grace.as_secs(),
            limit_seconds: limit(reading, &circumstances.deadlines).as_secs(),
            typical_seconds,
            typical_of,
        };
        Ok(Plan {
            id: circumstances.plan_id,
            revision: Revision::FIRST,
            target: self.target,
            name: self.name,
            project_id: self.project_id,
            cascade: ask.cascade,
            planned_by: actor.name.clone(),
            planned_at: self.now,
            expires_at: self.now.plus(lifetime),
            used_by: None,
            approval: None,
            digest: members.digest(),
            members,
            shown,
        })
    }
}

impl Plan {
    /// Stores it. That changes nothing else, so nothing is audited.
    pub fn stored(self) -> Commit {
        let write = Write::Deletion(DeletionWrite::PlanInsert(Box::new(self)));
        Commit { writes: vec![write], ..Commit::default() }
    }
}

fn shown(code: &str, message: &str) -> RefusalShown {
    RefusalShown { code: code.to_owned(), message: message.to_owned() }
}

/// A freeze and observe-only accept a deletion and let nothing of it happen.
fn withheld(mode: &Mode) -> Option<RefusalShown> {
    match mode.withholds("delete")? {
        Outcome::Withheld { code, message, .. } => Some(shown(code.as_str(), &message)),
        _ => None,
    }
}

/// Resources are taken down beside each other, so their number does not count.
fn limit(reading: &Reading, deadlines: &Deadlines) -> Duration {
    let mut limit = Duration::ZERO;
    if reading.has_nodes() {
        limit += deadlines.deregistering;
    }
    if reading.resource_count() > 0 {
        limit += deadlines.deprovisioning;
    }
    if reading.namespace.as_ref().is_some_and(|namespace| namespace.goes) {
        limit += deadlines.deprovisioning;
    }
    limit
}
