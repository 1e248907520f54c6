//! How far an agent is with a stack, for people: what it has, whether that is what it should
//! have, since when not, and why. Reads only; what an agent is offered is decided by
//! [`crate::fleet::offer`]. Content is never part of it.

use std::time::Duration;

use crate::closed_set::closed_set;
use crate::fleet::agent::AgentStatus;
use crate::fleet::offer::Legs;
use crate::fleet::report::ReportStatus;
use crate::ids::{AgentId, DeploymentObjectId, StackId};
use crate::time::Timestamp;

/// An agent that said nothing for so long counts as silent: twelve polls, ten seconds apart.
pub const SILENT_AFTER: Duration = Duration::from_secs(120);

/// An agent and a stack that have to do with each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    pub agent: AgentLine,
    pub stack: StackLine,
    pub legs: Legs,
    /// The newest object for all agents that nobody withdrew, or what it is for this one.
    pub newest: Option<ObjectLine>,
    /// What the agent was offered last, unless it reported that it removed it.
    pub held: Option<HeldLine>,
    /// A roll-out of the stack has not reached the agent.
    pub is_outside: bool,
    /// Why the newest object cannot be rendered for the agent, and since when.
    pub problem: Option<(String, Timestamp)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentLine {
    pub id: AgentId,
    pub name: String,
    pub cluster_name: String,
    pub status: AgentStatus,
    pub heartbeat_at: Option<Timestamp>,
    /// It can let go of what it deployed.
    pub can_keep: bool,
}

impl AgentLine {
    pub fn full_name(&self) -> String {
        format!("{}@{}", self.name, self.cluster_name)
    }

    /// Why nothing can be expected of it at this time; `None` if it asks and acts.
    pub fn inactivity(&self, now: Timestamp) -> Option<String> {
        if self.status == AgentStatus::Inactive {
            return Some(format!(
                "the agent is INACTIVE; `slipway agent activate {}` lets it act",
                self.full_name()
            ));
        }
        match self.heartbeat_at {
            None => Some("the agent has never been heard of; check whether it runs".to_owned()),
            Some(at) if at.plus(SILENT_AFTER) < now => {
                Some(format!("the agent is silent since {at}; check whether it runs"))
            }
            Some(_) => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackLine {
    pub id: StackId,
    pub name: String,
    pub deleted_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectLine {
    pub id: DeploymentObjectId,
    pub sequence: i64,
    pub is_marker: bool,
    /// A marker that tells agents to let go instead of removing.
    pub keeps: bool,
    pub submitted_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLine {
    pub object: ObjectLine,
    pub offered_at: Timestamp,
    /// What the agent reported last about it.
    pub report: Option<LastReport>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastReport {
    pub event_type: String,
    pub status: ReportStatus,
    pub message: Option<String>,
    pub at: Timestamp,
}

closed_set!(
    /// How an agent and a stack stand, the worst first.
    ProgressState {
        Failed => "failed",
        Removing => "removing",
        Behind => "behind",
        NotOffered => "not offered yet",
        Deploying => "deploying",
        NotRegistered => "not registered",
        NotTargeted => "not targeted",
        Empty => "without content",
        Current => "current",
    }
);

impl ProgressState {
    /// Whether somebody waits for it.
    pub const fn is_open(self) -> bool {
        matches!(
            self,
            Self::Failed | Self::Removing | Self::Behind | Self::NotOffered | Self::Deploying
        )
    }
}

/// What is told about a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    pub state: ProgressState,
    pub since: Option<Timestamp>,
    pub why: Option<String>,
}

impl Progress {
    fn new(state: ProgressState, since: Timestamp, why: Option<String>) -> Self {
        Self { state, since: Some(since), why }
    }
}

/// `None` if they have nothing to do with each other any more.
pub fn progress(pair: &Pair, is_frozen: bool, now: Timestamp) -> Option<Progress> {
    let Pair { agent, stack, legs, newest, held, is_outside, problem } = pair;
    let is_live = stack.deleted_at.is_none();
    let wanted = newest.filter(|newest| is_live && legs.is_associated() && !newest.is_marker);
    // Why it does not go on by itself at this time.
    let outside = || (*is_outside && wanted.is_some()).then(|| ROLLED_OUT.to_owned());
    let frozen = || is_frozen.then(|| FROZEN.to_owned());
    let held_up = || agent.inactivity(now).or_else(frozen).or_else(outside);
    if let (Some(_), Some((problem, since))) = (wanted, problem) {
        let has = held.as_ref().filter(|held| !held.object.is_marker);
        let has = has.map(|held| format!("; it keeps object {}", held.object.sequence));
        let why = format!("{problem}{}", has.unwrap_or_default());
        return Some(Progress::new(ProgressState::Failed, *since, Some(why)));
    }
    match (wanted, held) {
        (Some(wanted), Some(held)) if held.object.id == wanted.id => Some(delivered(held, held_up)),
        (Some(wanted), Some(held)) => {
            let failed = failure(held).map(|why| format!("; {why}")).unwrap_or_default();
            let why = held_up().unwrap_or_else(|| HAS_NOT_ASKED.to_owned());
            let has = match held.object.is_marker {
                true => "it was told to remove the stack".to_owned(),
                false => format!("it has object {}", held.object.sequence),
            };
            let why = format!("{has}, the newest is {}{failed}: {why}", wanted.sequence);
            Some(Progress::new(ProgressState::Behind, wanted.submitted_at, Some(why)))
        }
        (Some(wanted), None) => {
            let why = held_up().unwrap_or_else(|| HAS_NOT_ASKED.to_owned());
            Some(Progress::new(ProgressState::NotOffered, wanted.submitted_at, Some(why)))
        }
        (None, Some(held)) => Some(owed(pair, held, held_up)),
        (None, None) if !is_live => None,
        (None, None) => Some(nothing(pair)),
    }
}

const FROZEN: &str = "the installation is frozen";
const ROLLED_OUT: &str = "the roll-out of the stack has not reached it; `slipway rollout get` with the name of the stack says how far it is";
const HAS_NOT_ASKED: &str = "the agent has not asked since";

/// It was offered what it should have.
fn delivered(held: &HeldLine, held_up: impl Fn() -> Option<String>) -> Progress {
    match &held.report {
        Some(LastReport { status: ReportStatus::Success, at, .. }) => {
            Progress::new(ProgressState::Current, *at, None)
        }
        Some(LastReport { at, .. }) => Progress::new(ProgressState::Failed, *at, failure(held)),
        None => {
            let why = held_up().unwrap_or_else(|| "the agent has not reported yet".to_owned());
            Progress::new(ProgressState::Deploying, held.offered_at, Some(why))
        }
    }
}

/// What the agent reported last, if it failed.
fn failure(held: &HeldLine) -> Option<String> {
    let report = held.report.as_ref().filter(|one| one.status == ReportStatus::Failure)?;
    let message = report.message.as_deref().unwrap_or("without a message");
    Some(format!("{} failed: {message}", report.event_type))
}

/// It has what it should not have, so a marker is owed.
fn owed(pair: &Pair, held: &HeldLine, held_up: impl Fn() -> Option<String>) -> Progress {
    let Pair { stack, legs, .. } = pair;
    let reason = match stack.deleted_at {
        Some(at) => format!("the stack was deleted at {at}"),
        None if !legs.is_registered => "the agent is not registered any more".to_owned(),
        None if !legs.is_associated() => {
            "no target, label or annotation brings it any more".to_owned()
        }
        None => "the stack has a deletion marker or no content".to_owned(),
    };
    let was_told = held.object.is_marker;
    let keeps = pair.newest.is_some_and(|newest| newest.keeps);
    let act = if keeps { "let go of it" } else { "remove it" };
    let marker = match (was_told, failure(held), held_up()) {
        (true, Some(failure), _) => format!("it was told to {act}, and {failure}"),
        (true, None, Some(why)) => format!("it was told to {act}, and has not said so: {why}"),
        (true, None, None) => format!("it was told to {act}, and has not said so"),
        (false, ..) if keeps && !pair.agent.can_keep => {
            "it is to let go of it and cannot, so it keeps what it has; upgrade the agent"
                .to_owned()
        }
        (false, _, Some(why)) => format!("it was not told yet: {why}"),
        (false, _, None) => "it is told when it asks next".to_owned(),
    };
    let since = match was_told {
        true => held.offered_at,
        false => stack.deleted_at.unwrap_or(held.offered_at),
    };
    let is_failed = was_told && failure(held).is_some();
    let state = if is_failed { ProgressState::Failed } else { ProgressState::Removing };
    Progress::new(state, since, Some(format!("{reason}; {marker}")))
}

/// It holds nothing and is to have nothing.
fn nothing(pair: &Pair) -> Progress {
    let Pair { agent, legs, .. } = pair;
    let (state, why) = if legs.is_associated() {
        (ProgressState::Empty, "nobody submitted content, or a marker is the newest".to_owned())
    } else if legs.is_registered {
        let why = "the agent is registered with the generator, but no target, label or annotation brings the stack";
        (ProgressState::NotTargeted, why.to_owned())
    } else {
        let why = format!(
            "a target, label or annotation fits, but agent {} is not registered with the generator; `slipway generator register` lets it take its stacks",
            agent.full_name()
        );
        (ProgressState::NotRegistered, why)
    };
    Progress { state, since: None, why: Some(why) }
}

/// A stack of a generator, and how many agents hold it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackCounts {
    pub stack: StackLine,
    /// Agents that were offered it and did not report that they removed it.
    pub held: u64,
    /// Those of them that were offered its newest content.
    pub newest: u64,
    /// Those of them that failed on what they were offered last.
    pub failed: u64,
}

impl StackCounts {
    /// Agents that owe a removal, or have older content.
    pub const fn behind(&self) -> u64 {
        self.held.saturating_sub(self.newest)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fixtures::at;
    use crate::fixtures::fleet::{mk_agent, mk_stack};
    use crate::fixtures::uuid;
    use crate::fleet::offer::{Candidate, ObjectFact, Offer, Terms, offer};
    use crate::fleet::per_agent::Rendered;

    fn object(number: i64, is_marker: bool) -> ObjectLine {
        let id = DeploymentObjectId::new(uuid(u128::try_from(number).unwrap()));
        ObjectLine { id, sequence: number, is_marker, keeps: false, submitted_at: at(number) }
    }

    fn mk_held(object: ObjectLine, report: Option<ReportStatus>) -> HeldLine {
        let report = report.map(|status| LastReport {
            event_type: "DEPLOY".to_owned(),
            status,
            message: Some("no quota".to_owned()),
            at: at(950),
        });
        HeldLine { object, offered_at: at(900), report }
    }

    const ALL_LEGS: Legs = Legs {
        is_registered: true,
        has_target: true,
        shares_label: false,
        shares_annotation: false,
    };

    fn pair() -> Pair {
        Pair {
            agent: AgentLine {
                id: mk_agent().id,
                name: "edge".to_owned(),
                cluster_name: "berlin".to_owned(),
                status: AgentStatus::Active,
                heartbeat_at: Some(at(990)),
                can_keep: false,
            },
            stack: StackLine { id: mk_stack().id, name: "web".to_owned(), deleted_at: None },
            legs: ALL_LEGS,
            newest: Some(object(2, false)),
            held: Some(mk_held(object(2, false), Some(ReportStatus::Success))),
            is_outside: false,
            problem: None,
        }
    }

    fn state_and_why(pair: &Pair) -> (ProgressState, String) {
        let found = progress(pair, false, at(1_000)).unwrap();
        (found.state, found.why.unwrap_or_default())
    }

    #[test]
    fn what_cannot_be_rendered_for_an_agent_says_why() {
        let problem = Some(("parameter `site` is missing".to_owned(), at(900)));
        let behind = Pair { problem, held: Some(mk_held(object(1, false), None)), ..pair() };
        let (state, why) = state_and_why(&behind);
        assert_eq!(state, ProgressState::Failed);
        assert!(why.contains("`site`") && why.contains("keeps object 1"), "{why}");
        let (_, why) = state_and_why(&Pair { held: None, ..behind.clone() });
        assert!(!why.contains("keeps"), "{why}");
        let gone = StackLine { deleted_at: Some(at(900)), ..pair().stack };
        let (state, _) = state_and_why(&Pair { stack: gone, ..behind });
        assert_eq!(state, ProgressState::Removing);
    }

    #[test]
    fn an_agent_has_it_fails_or_works_on_it() {
        assert_eq!(state_and_why(&pair()).0, ProgressState::Current);
        let report = |status| Pair { held: Some(mk_held(object(2, false), status)), ..pair() };
        let (state, why) = state_and_why(&report(Some(ReportStatus::Failure)));
        assert_eq!((state, why.as_str()), (ProgressState::Failed, "DEPLOY failed: no quota"));
        assert_eq!(state_and_why(&report(None)).0, ProgressState::Deploying);
    }

    #[test]
    fn one_that_is_behind_says_why() {
        let behind = Pair { held: Some(mk_held(object(1, false), None)), ..pair() };
        let (state, why) = state_and_why(&behind);
        assert_eq!(state, ProgressState::Behind);
        assert!(why.contains("object 1") && why.contains("has not asked"), "{why}");
        let frozen = progress(&behind, true, at(1_000)).unwrap().why.unwrap();
        assert!(frozen.contains("frozen"), "{frozen}");
        let agent = |status, heartbeat_at| AgentLine { status, heartbeat_at, ..pair().agent };
        for (agent, word) in [
            (agent(AgentStatus::Inactive, Some(at(990))), "slipway agent activate edge@berlin"),
            (agent(AgentStatus::Active, Some(at(100))), "silent since"),
            (agent(AgentStatus::Active, None), "never been heard of"),
        ] {
            let (_, why) = state_and_why(&Pair { agent: agent.clone(), ..behind.clone() });
            assert!(why.contains(word), "{why}");
            let none = Pair { agent, held: None, ..pair() };
            assert_eq!(state_and_why(&none).0, ProgressState::NotOffered);
            assert!(state_and_why(&none).1.contains(word));
        }
    }

    #[test]
    fn what_should_go_is_owed_until_the_agent_says_so() {
        let gone = StackLine { deleted_at: Some(at(800)), ..pair().stack };
        let owed = Pair { stack: gone.clone(), newest: Some(object(3, true)), ..pair() };
        let (state, why) = state_and_why(&owed);
        assert_eq!(state, ProgressState::Removing);
        assert!(why.contains("deleted") && why.contains("told when it asks"), "{why}");
        let marker = |status| Pair { held: Some(mk_held(object(3, true), status)), ..owed.clone() };
        assert!(state_and_why(&marker(None)).1.contains("has not said so"));
        assert_eq!(state_and_why(&marker(Some(ReportStatus::Failure))).0, ProgressState::Failed);
        let keeps = Some(ObjectLine { keeps: true, ..object(3, true) });
        let (state, why) = state_and_why(&Pair { newest: keeps, ..owed.clone() });
        assert_eq!(state, ProgressState::Removing);
        assert!(why.contains("cannot"), "{why}");
        assert_eq!(progress(&Pair { held: None, ..owed }, false, at(1_000)), None);
        let legs = Legs { is_registered: false, ..ALL_LEGS };
        let (state, why) = state_and_why(&Pair { legs, ..pair() });
        assert_eq!(state, ProgressState::Removing);
        assert!(why.contains("not registered"), "{why}");
    }

    #[test]
    fn one_that_is_to_have_nothing_says_which_link_is_missing() {
        let none = |legs| Pair { legs, held: None, ..pair() };
        let unregistered = Legs { is_registered: false, ..ALL_LEGS };
        assert_eq!(state_and_why(&none(unregistered)).0, ProgressState::NotRegistered);
        let untargeted = Legs { has_target: false, ..ALL_LEGS };
        assert_eq!(state_and_why(&none(untargeted)).0, ProgressState::NotTargeted);
        let empty = Pair { newest: None, ..none(ALL_LEGS) };
        assert_eq!(state_and_why(&empty).0, ProgressState::Empty);
    }

    proptest! {
        /// What is told agrees with what is offered: an agent is current or at work only if it
        /// was offered last what it would be offered again, and owes a removal exactly if a
        /// marker would be offered.
        #[test]
        fn what_is_told_is_what_is_offered(
            legs in any::<[bool; 4]>(),
            is_live in any::<bool>(),
            newest in proptest::option::of((1..4_i64, any::<bool>())),
            held_object in proptest::option::of((1..4_i64, any::<bool>())),
            status in proptest::option::of(any::<bool>()),
        ) {
            let [is_registered, has_target, shares_label, shares_annotation] = legs;
            let legs = Legs { is_registered, has_target, shares_label, shares_annotation };
            let newest = newest.map(|(number, is_marker)| object(number, is_marker));
            // The same number is the same object.
            let object_of = |(number, is_marker): (i64, bool)| match newest {
                Some(newest) if newest.sequence == number => newest,
                _ => object(number, is_marker),
            };
            let status = status.map(|good| match good {
                true => ReportStatus::Success,
                false => ReportStatus::Failure,
            });
            let held = held_object.map(|one| mk_held(object_of(one), status));
            let deleted_at = (!is_live).then(|| at(800));
            let stack = StackLine { deleted_at, ..pair().stack };
            let pair = Pair { legs, stack, newest, held, ..pair() };
            let fact = |one: ObjectLine| {
                let (id, is_marker) = (one.id, one.is_marker);
                ObjectFact {
                    id,
                    is_marker,
                    is_for_agent: false,
                    keeps: one.keeps,
                    is_erased: false,
                    is_withdrawn: false,
                }
            };
            let candidate = Candidate {
                stack_id: pair.stack.id,
                is_live,
                legs,
                last_sequence: 9,
                newest: newest.map(fact),
                rendered: Rendered::NotNeeded,
                held: pair.held.as_ref().map(|held| fact(held.object)),
                in_rollout: None,
            };
            let offered = offer(&candidate, Terms { is_frozen: false, can_keep: false });
            let state = progress(&pair, false, at(1_000)).map(|told| told.state);
            let held_id = pair.held.as_ref().map(|held| held.object.id);
            let wants = is_live && legs.is_associated() && newest.is_some_and(|one| !one.is_marker);
            match state {
                Some(ProgressState::Current | ProgressState::Deploying) => {
                    prop_assert_eq!(Some(offered), held_id.map(Offer::Object));
                    prop_assert!(wants);
                }
                Some(ProgressState::Behind | ProgressState::NotOffered) => {
                    prop_assert_eq!(Some(offered), newest.map(|one| Offer::Object(one.id)));
                    prop_assert!(wants);
                }
                Some(ProgressState::Removing) => prop_assert!(!wants && offered != Offer::Nothing),
                Some(ProgressState::Failed) => prop_assert!(offered != Offer::Nothing),
                Some(
                    ProgressState::NotRegistered
                    | ProgressState::NotTargeted
                    | ProgressState::Empty,
                ) | None => prop_assert_eq!(offered, Offer::Nothing),
            }
        }
    }
}
