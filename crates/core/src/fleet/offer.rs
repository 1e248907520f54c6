//! What an agent is offered: of every stack that it is associated with the newest object, and
//! of every stack that it may still have a marker, until it reports that it removed it.
//!
//! A *holding* says that an agent was offered a stack, and which object last. It is written
//! before the answer leaves, so that whatever an agent may have deployed is known, also of an
//! agent that never comes back. To an agent an absent stack means "remove it", so an offer is
//! complete or there is none.

use serde::Serialize;

use crate::commit::Commit;
use crate::error::{ErrorKind, Refusal};
use crate::fleet::FleetWrite;
use crate::fleet::agent::Agent;
use crate::fleet::object::{NewObject, derived};
use crate::fleet::stack::next_sequence;
use crate::ids::{AgentId, DeploymentObjectId, StackId};
use crate::kind::existing;
use crate::operations::control::Mode;
use crate::precondition::Expected;
use crate::time::Timestamp;

/// What connects an agent and a stack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Legs {
    /// The agent agreed to stacks of the generator.
    pub is_registered: bool,
    pub has_target: bool,
    pub shares_label: bool,
    /// Key and value.
    pub shares_annotation: bool,
}

impl Legs {
    /// A registration is consent: without it nothing connects them.
    pub const fn is_associated(self) -> bool {
        self.is_registered && (self.has_target || self.shares_label || self.shares_annotation)
    }
}

/// A stack that an agent is connected with, or holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    pub stack_id: StackId,
    pub is_live: bool,
    pub legs: Legs,
    pub last_sequence: i64,
    /// The newest object for all agents that nobody withdrew.
    pub newest: Option<ObjectFact>,
    /// What the agent was offered last, unless it reported that it removed it.
    pub held: Option<ObjectFact>,
}

/// An object, as an offer needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectFact {
    pub id: DeploymentObjectId,
    pub is_marker: bool,
    /// A marker for this agent alone.
    pub is_for_agent: bool,
}

/// What one stack contributes to an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    Nothing,
    Object(DeploymentObjectId),
    /// A marker for this agent alone, which is yet to be made.
    Release,
}

/// What an agent is offered of this stack.
pub fn offer(candidate: &Candidate, is_frozen: bool) -> Offer {
    let Candidate { newest, held, .. } = candidate;
    if is_frozen {
        // Exactly what it has: nothing newer, and nothing that removes anything.
        return match held {
            Some(held) if !held.is_marker => Offer::Object(held.id),
            _ => Offer::Nothing,
        };
    }
    let wanted = candidate.is_live && candidate.legs.is_associated();
    match (newest, held) {
        (Some(newest), _) if wanted && !newest.is_marker => Offer::Object(newest.id),
        (_, None) => Offer::Nothing,
        // Nobody is to have it any more.
        (Some(newest), Some(_)) if newest.is_marker => Offer::Object(newest.id),
        (_, Some(held)) if held.is_for_agent => Offer::Object(held.id),
        (_, Some(_)) => Offer::Release,
    }
}

/// One stack of an offer that is not what the agent was offered last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    pub agent_id: AgentId,
    pub stack_id: StackId,
    pub object_id: DeploymentObjectId,
}

/// An agent, its row locked, and everything that it is connected with or holds.
#[derive(Debug, Clone)]
pub struct OfferSnapshot {
    pub now: Timestamp,
    pub mode: Mode,
    pub agent: Option<Agent>,
    pub candidates: Vec<Candidate>,
}

/// The offer as it is without writing anything; `None` if a holding has to be written first.
pub fn unchanged(snapshot: &OfferSnapshot) -> Result<Option<Vec<DeploymentObjectId>>, Refusal> {
    let is_frozen = admitted(snapshot)?;
    let mut offered = Vec::with_capacity(snapshot.candidates.len());
    for candidate in &snapshot.candidates {
        match offer(candidate, is_frozen) {
            Offer::Nothing => {}
            Offer::Object(id) if candidate.held.is_some_and(|held| held.id == id) => {
                offered.push(id);
            }
            Offer::Object(_) | Offer::Release => return Ok(None),
        }
    }
    Ok(Some(offered))
}

/// The offer, and the holdings that have to be committed before it is answered.
pub fn decide(snapshot: &OfferSnapshot) -> Result<(Vec<DeploymentObjectId>, Commit), Refusal> {
    let is_frozen = admitted(snapshot)?;
    let agent_id = existing(&snapshot.agent, Expected::Any)?.id;
    let (mut offered, mut markers, mut holdings) = (Vec::new(), Vec::new(), Vec::new());
    for candidate in &snapshot.candidates {
        let stack_id = candidate.stack_id;
        let object_id = match offer(candidate, is_frozen) {
            Offer::Nothing => continue,
            Offer::Object(id) => id,
            Offer::Release => {
                let marker = release(agent_id, candidate, snapshot.now);
                let id = marker.id;
                markers.push(marker);
                id
            }
        };
        offered.push(object_id);
        if candidate.held.is_none_or(|held| held.id != object_id) {
            holdings.push(Offered { agent_id, stack_id, object_id });
        }
    }
    let mut commit = Commit::default();
    if !markers.is_empty() {
        commit.writes.push(FleetWrite::ObjectsMake(markers).into());
    }
    if !holdings.is_empty() {
        commit.writes.push(FleetWrite::Offer(holdings).into());
    }
    Ok((offered, commit))
}

/// The marker that takes a stack from one agent. It follows what the agent was offered last,
/// so a report about an earlier one removes nothing that came later.
fn release(agent: AgentId, candidate: &Candidate, now: Timestamp) -> NewObject {
    let held = candidate.held.map(|held| held.id.as_uuid()).unwrap_or_default();
    let of = [agent.as_uuid(), candidate.stack_id.as_uuid(), held];
    let id = DeploymentObjectId::new(derived(now, "release", &of));
    let sequence = next_sequence(candidate.last_sequence, now);
    NewObject::marker(id, candidate.stack_id, sequence, now).for_agent(agent)
}

/// Whether the offer is frozen. An agent that is not there gets none, and while a restored
/// database is only observed nobody does: what it does not know might look like "remove it".
fn admitted(snapshot: &OfferSnapshot) -> Result<bool, Refusal> {
    existing(&snapshot.agent, Expected::Any)?;
    match &snapshot.mode {
        Mode::Acting => Ok(false),
        Mode::Frozen(_) => Ok(true),
        Mode::Observing(_) => {
            let message = "the installation only observes after a restore, so nobody is told what to deploy; end that with `slipway resume`";
            Err(Refusal::new(ErrorKind::Unavailable, message))
        }
    }
}

/// How far one agent is with the removal of one stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Delivery {
    pub agent_id: AgentId,
    pub agent: String,
    pub stack_id: StackId,
    pub stack: String,
    /// When it reported that it removed the stack; `None` while the marker is owed.
    pub removed_at: Option<Timestamp>,
    /// The agent is deleted: a leak record says so, and nobody waits for it.
    pub is_agent_deleted: bool,
}

#[cfg(test)]
mod tests;
