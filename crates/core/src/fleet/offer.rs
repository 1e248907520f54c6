//! What an agent is offered: of every stack that it is associated with the newest object, and
//! of every stack that it may still have a marker, until it reports that it removed it.
//!
//! A *holding* says that an agent was offered a stack, and which object last. It is written
//! before the answer leaves, so that whatever an agent may have deployed is known, also of an
//! agent that never comes back. To an agent an absent stack means "remove it", so an offer is
//! complete or there is none.

use data_encoding::HEXLOWER;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::commit::Commit;
use crate::error::{ErrorKind, Refusal};
use crate::fleet::FleetWrite;
use crate::fleet::agent::Agent;
use crate::fleet::object::{NewObject, derived};
use crate::fleet::per_agent::Rendered;
use crate::fleet::stack::next_sequence;
use crate::ids::{AgentId, DeploymentObjectId, StackId};
use crate::kind::existing;
use crate::operations::control::Mode;
use crate::precondition::Expected;
use crate::rollouts::record::MemberState;
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
    /// What the newest object is for this agent.
    pub rendered: Rendered,
    /// What the agent was offered last, unless it reported that it removed it.
    pub held: Option<ObjectFact>,
    /// Of a stack whose newest object has not reached everybody.
    pub in_rollout: Option<InRollout>,
}

/// A roll-out that says who may have the newest object of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InRollout {
    /// This agent may.
    pub may_take: bool,
    /// What everybody had before, if it can be offered.
    pub settled: Option<DeploymentObjectId>,
}

impl InRollout {
    /// Whether a member in this state may have the newest object. On the way back that is the
    /// one with the content of before.
    pub fn takes(member: Option<MemberState>, rolls_back: bool) -> bool {
        member.is_some_and(|state| match rolls_back {
            true => state.is_reverted(),
            false => state.is_changed(),
        })
    }
}

impl Candidate {
    /// Whether the agent may know of the stack: it is to have it, or it holds it.
    pub const fn is_known(&self) -> bool {
        self.held.is_some() || (self.is_live && self.legs.is_associated())
    }
}

/// An object, as an offer needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectFact {
    pub id: DeploymentObjectId,
    pub is_marker: bool,
    /// A marker that tells agents to let go.
    pub keeps: bool,
    /// A marker or a rendering for this agent alone.
    pub is_for_agent: bool,
    /// Its content was erased, so that it can be offered no more.
    pub is_erased: bool,
    pub is_withdrawn: bool,
}

/// What one stack contributes to an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    Nothing,
    Object(DeploymentObjectId),
    /// A marker for this agent alone, which is yet to be made.
    Release,
}

/// What decides about the offers of one agent beside the stacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Terms {
    pub is_frozen: bool,
    /// The agent can let go.
    pub can_keep: bool,
}

/// What an agent is offered of this stack.
pub fn offer(candidate: &Candidate, terms: Terms) -> Offer {
    let Candidate { newest, held, .. } = candidate;
    // Exactly what it was offered last.
    let as_it_is = || held.map_or(Offer::Nothing, |held| Offer::Object(held.id));
    if terms.is_frozen {
        return as_it_is();
    }
    let wanted = candidate.is_live && candidate.legs.is_associated();
    let closed = candidate.in_rollout.filter(|in_rollout| wanted && !in_rollout.may_take);
    if let Some(kept) = closed.and_then(|in_rollout| outside(*held, in_rollout)) {
        return kept;
    }
    match (newest, held) {
        (Some(newest), _) if wanted && !newest.is_marker => match candidate.rendered {
            Rendered::NotNeeded => Offer::Object(newest.id),
            Rendered::As(id) => Offer::Object(id),
            Rendered::Missing | Rendered::Failed => as_it_is(),
        },
        (_, None) => Offer::Nothing,
        // It would remove what it is to let go of: it waits until it can.
        (Some(newest), Some(_)) if newest.keeps && !terms.can_keep => as_it_is(),
        // Nobody is to have it any more.
        (Some(newest), Some(_)) if newest.is_marker => Offer::Object(newest.id),
        (_, Some(held)) if held.is_marker && held.is_for_agent => Offer::Object(held.id),
        (_, Some(_)) => Offer::Release,
    }
}

/// What an agent outside the wave is offered: what it has, or what all had before. `None` if
/// that was withdrawn, and there is nothing but the newest.
fn outside(held: Option<ObjectFact>, in_rollout: InRollout) -> Option<Offer> {
    let settled = in_rollout.settled.map(Offer::Object);
    match held {
        None => Some(settled.unwrap_or(Offer::Nothing)),
        Some(held) if held.is_marker => Some(settled.unwrap_or(Offer::Object(held.id))),
        Some(held) if !held.is_withdrawn => Some(Offer::Object(held.id)),
        Some(_) => settled,
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
    /// Counts the changes of its labels and annotations.
    pub tags: i64,
    pub candidates: Vec<Candidate>,
}

impl OfferSnapshot {
    fn terms(&self) -> Terms {
        Terms {
            is_frozen: matches!(self.mode, Mode::Frozen(_)),
            can_keep: self.agent.as_ref().is_some_and(|agent| agent.can_keep),
        }
    }

    /// The objects that have to be rendered for the agent before it is offered them. None while
    /// nobody is offered anything new.
    pub fn missing(&self) -> Vec<DeploymentObjectId> {
        let acts = self.mode == Mode::Acting;
        let missing = |one: &&Candidate| {
            let wanted = one.is_live && one.legs.is_associated();
            let may_take = one.in_rollout.is_none_or(|in_rollout| in_rollout.may_take);
            acts && wanted && may_take && one.rendered == Rendered::Missing
        };
        let newest = |one: &Candidate| one.newest.map(|newest| newest.id);
        self.candidates.iter().filter(missing).filter_map(newest).collect()
    }

    /// The stacks whose holdings the offer changes.
    pub fn changed(&self) -> impl Iterator<Item = StackId> {
        let terms = self.terms();
        let changes = move |one: &&Candidate| match offer(one, terms) {
            Offer::Nothing => false,
            Offer::Object(id) => one.held.is_none_or(|held| held.id != id),
            Offer::Release => true,
        };
        self.candidates.iter().filter(changes).map(|one| one.stack_id)
    }
}

/// What an agent holds, and how much of it is what it should have: enough to answer an agent
/// for which nothing changed, and cheaper to find than every stack with its facts.
#[derive(Debug, Clone)]
pub struct HeldOffer {
    pub mode: Mode,
    pub agent: Option<Agent>,
    /// What it was offered last of each stack that it holds.
    pub held: Vec<DeploymentObjectId>,
    /// How many live stacks it is associated with.
    pub wanted: usize,
    /// How many of these are in no roll-out, and it holds their newest object, which is no
    /// marker.
    pub current: usize,
}

impl HeldOffer {
    /// The offer, if it is exactly what the agent holds; otherwise [`unchanged`] says.
    pub fn unchanged(self) -> Option<Vec<DeploymentObjectId>> {
        // It holds a stack once. So if it holds as many as it should have, and the newest of
        // each, it holds nothing else.
        let is_same = self.wanted == self.current && self.held.len() == self.current;
        let acts = self.agent.is_some() && self.mode == Mode::Acting;
        (acts && is_same).then_some(self.held)
    }
}

/// Changes exactly when an offer of these objects does, since an object never changes.
pub fn tag(ids: &[DeploymentObjectId]) -> String {
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    let mut digest = Sha256::new();
    for id in sorted {
        digest.update(id.as_uuid().as_bytes());
    }
    HEXLOWER.encode(&digest.finalize())
}

/// The offer as it is without writing anything; `None` if a holding has to be written first.
pub fn unchanged(snapshot: &OfferSnapshot) -> Result<Option<Vec<DeploymentObjectId>>, Refusal> {
    let terms = admitted(snapshot)?;
    let mut offered = Vec::with_capacity(snapshot.candidates.len());
    for candidate in &snapshot.candidates {
        match offer(candidate, terms) {
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
    let terms = admitted(snapshot)?;
    let agent_id = existing(&snapshot.agent, Expected::Any)?.id;
    let (mut offered, mut markers, mut holdings) = (Vec::new(), Vec::new(), Vec::new());
    for candidate in &snapshot.candidates {
        let stack_id = candidate.stack_id;
        let object_id = match offer(candidate, terms) {
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

/// An agent that is not there gets no offer, and while a restored database is only observed
/// nobody does: what it does not know might look like "remove it". Neither does an agent that
/// is to be offered content which was erased, nor, during a freeze, one that was told to remove
/// something and did not report it: the marker and its absence both mean "remove it".
fn admitted(snapshot: &OfferSnapshot) -> Result<Terms, Refusal> {
    existing(&snapshot.agent, Expected::Any)?;
    if matches!(snapshot.mode, Mode::Observing(_)) {
        let message = "the installation only observes after a restore, so nobody is told what to deploy; end that with `slipway resume`";
        return Err(Refusal::new(ErrorKind::Unavailable, message));
    }
    let terms = snapshot.terms();
    let removing = |one: &Candidate| one.held.is_some_and(|held| held.is_marker);
    if terms.is_frozen && snapshot.candidates.iter().any(removing) {
        let message = "the installation is frozen, and the agent was told before to remove a stack; ask again when the freeze ended";
        return Err(Refusal::new(ErrorKind::Unavailable, message));
    }
    let erased = |one: &Candidate| {
        let held = one.held.filter(|held| held.is_erased);
        held.is_some_and(|held| offer(one, terms) == Offer::Object(held.id))
    };
    if snapshot.candidates.iter().any(erased) {
        let message = "content that the agent has was erased, and it cannot be told yet to remove it; ask again when the freeze ended, or with an agent that can let go";
        return Err(Refusal::new(ErrorKind::Unavailable, message));
    }
    Ok(terms)
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
