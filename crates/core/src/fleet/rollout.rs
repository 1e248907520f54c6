//! Roll-outs of stacks on the one mechanism of [`crate::rollouts`]: with a strategy each object
//! that is submitted becomes a roll-out, whose members are the agents that are associated with
//! the stack then. A member is *changed* when it may have the newest object. The others keep
//! what they have: the stack says by which roll-out, and the offer of an agent looks at its own
//! member. Going back makes a new object with the content that all had before, since numbers
//! only rise.

use serde_json::json;

use crate::access::audit::Actor;
use crate::commit::{Commit, Write};
use crate::error::Refusal;
use crate::fleet::FleetWrite;
use crate::fleet::object::{NewObject, derived};
use crate::fleet::report::{HealthStatus, ReportStatus};
use crate::fleet::stack::{Stack, next_sequence};
use crate::fleet::text::tag;
use crate::ids::{AgentId, DeploymentObjectId, Revision, RolloutId};
use crate::rollouts::next::{Health, waves};
use crate::rollouts::record::{Member, MemberState, Purpose, Rollout, RolloutState, Strategy};
use crate::rollouts::rules;
use crate::time::Timestamp;

/// How many objects reach agents, as the row of their stack says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rolling {
    /// How objects are rolled out; `None` brings each to all agents at once.
    pub strategy: Option<Strategy>,
    /// The roll-out that says who may have the newest object; `None` lets everybody have it. It
    /// stays after an abort, until there is a newer object.
    pub rollout_id: Option<RolloutId>,
    /// What everybody had before.
    pub settled: Option<DeploymentObjectId>,
    /// The newest object is the one that the roll-out goes back to.
    pub rolls_back: bool,
}

impl Rolling {
    /// Everybody may have the newest object.
    pub(crate) fn open(&self) -> Self {
        Self { strategy: self.strategy.clone(), ..Self::default() }
    }
}

/// An active agent that is associated with a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssociatedAgent {
    pub id: AgentId,
    pub name: String,
    pub labels: Vec<String>,
}

/// Checks a strategy for a stack, whose waves are labels of agents.
pub fn check(strategy: &Strategy) -> Result<(), Refusal> {
    strategy.check()?;
    let faults =
        strategy.waves.iter().filter_map(|label| tag("waves", label).err().map(Refusal::from));
    Refusal::all(faults)
}

/// The roll-out of an object, and the stack as it is then; `None` if there is nobody to bring
/// it to step by step.
pub(crate) fn begin(
    stack: &Stack,
    agents: &[AssociatedAgent],
    (object, sequence): (DeploymentObjectId, i64),
    before: Option<DeploymentObjectId>,
    (actor, now): (&Actor, Timestamp),
) -> Option<(Rolling, Commit)> {
    let strategy = stack.rolling.strategy.clone().filter(|_| !agents.is_empty())?;
    let place = |agent: &AssociatedAgent| {
        strategy.waves.iter().position(|wave| agent.labels.iter().any(|label| label == wave))
    };
    let places: Vec<_> = agents.iter().map(place).collect();
    let of_wave = waves(&places, strategy.waves.len(), strategy.canary);
    let member = |(agent, wave): (&AssociatedAgent, i32)| Member {
        subject: agent.id.into(),
        name: agent.name.clone(),
        wave,
        position: 0,
        state: MemberState::Waiting,
        before: json!({}),
        changed_at: None,
        message: None,
    };
    let mut members: Vec<Member> = agents.iter().zip(of_wave).map(member).collect();
    members.sort_by_key(|member| member.wave);
    for (position, member) in members.iter_mut().enumerate() {
        member.position = i32::try_from(position).unwrap_or(i32::MAX);
    }
    let id = derived(now, "rollout", &[stack.id.as_uuid(), object.as_uuid()]);
    let rollout = Rollout {
        id: RolloutId::new(id),
        revision: Revision::FIRST,
        purpose: Purpose::StackObject,
        subject: stack.id.into(),
        name: stack.name.to_string(),
        project_id: Some(stack.project_id),
        change: json!({ "object_id": object, "sequence": sequence }),
        strategy,
        state: RolloutState::Running,
        message: None,
        requested_by: actor.name.clone(),
        reason: "an object was submitted".to_owned(),
        requested_at: now,
        ended_at: None,
    };
    // Whoever is outside keeps what was there before the first object that did not reach all.
    let settled = match stack.rolling.rollout_id {
        Some(_) => stack.rolling.settled,
        None => before,
    };
    let rolling = Rolling {
        rollout_id: Some(rollout.id),
        settled,
        rolls_back: false,
        strategy: stack.rolling.strategy.clone(),
    };
    Some((rolling, rules::started(&rollout, &members, actor)))
}

/// What the stack of a roll-out becomes when the roll-out enters this state.
pub(crate) fn entered(
    stack: Option<&Stack>,
    rollout: &Rollout,
    state: RolloutState,
    now: Timestamp,
) -> Vec<Write> {
    // It has gone on to another object, or is deleted.
    let Some(stack) = stack.filter(|stack| stack.rolling.rollout_id == Some(rollout.id)) else {
        return Vec::new();
    };
    match state {
        RolloutState::Done | RolloutState::RolledBack => {
            let rolling = stack.rolling.open();
            vec![FleetWrite::StackUpdate(Stack { rolling, ..stack.clone() }).into()]
        }
        RolloutState::RollingBack => {
            let sequence = next_sequence(stack.last_sequence, now);
            let of = [stack.id.as_uuid(), rollout.id.as_uuid()];
            let id = DeploymentObjectId::new(derived(now, "rolled_back", &of));
            let made = match stack.rolling.settled {
                Some(settled) => NewObject::copy(id, stack.id, settled, sequence, now),
                None => NewObject::marker(id, stack.id, sequence, now),
            };
            let rolling = Rolling { rolls_back: true, ..stack.rolling.clone() };
            let after = Stack { last_sequence: sequence, rolling, ..stack.clone() };
            vec![FleetWrite::StackUpdate(after).into(), FleetWrite::ObjectsMake(vec![made]).into()]
        }
        RolloutState::Running | RolloutState::Paused | RolloutState::Aborted => Vec::new(),
    }
}

/// What is known of a member about the newest object of its stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberFact {
    pub agent_id: AgentId,
    /// It is not deleted, and is still to have the stack.
    pub is_associated: bool,
    /// Its last report about the object.
    pub report: Option<LastReport>,
    pub health: Option<HealthStatus>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastReport {
    pub status: ReportStatus,
    pub message: Option<String>,
    pub at: Timestamp,
}

/// How a member in work is. A failure counts if it is newer than the change: after a resume an
/// earlier one is history.
pub fn health(member: &Member, fact: Option<&MemberFact>, wait_for_health: bool) -> Health {
    let Some(fact) = fact.filter(|fact| fact.is_associated) else {
        return Health::Gone("the agent was deleted, or is not to have the stack".to_owned());
    };
    let is_failing = wait_for_health && fact.health == Some(HealthStatus::Failing);
    match &fact.report {
        Some(report) if report.status == ReportStatus::Success && !is_failing => Health::Settled,
        Some(LastReport { status: ReportStatus::Failure, message, at })
            if member.changed_at.is_some_and(|changed| *at >= changed) =>
        {
            let why = message.clone().filter(|text| !text.is_empty());
            Health::Failed(why.unwrap_or_else(|| "the agent reported a failure".to_owned()))
        }
        _ => Health::Progressing,
    }
}

#[cfg(test)]
mod tests;
