//! The states of a job and the edges between them.
//!
//! `pending → schema_created → role_created → migrated → seeded → ready`, and from each
//! of the first five `→ cleanup → failed`. There is no other edge.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Error;

/// Where a job is. What is stored is [`State::as_str`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Nothing was done yet.
    Pending,
    SchemaCreated,
    RoleCreated,
    Migrated,
    /// Every step succeeded; the edge to [`State::Ready`] follows by itself.
    Seeded,
    /// For good: the tenant can be used.
    Ready,
    /// A step failed; what the job made is being removed.
    Cleanup,
    /// For good. A retry is a job of its own, so that the trace of this one stays.
    Failed,
}

/// One of the five callbacks of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    CreateSchema,
    CreateRole,
    Migrate,
    Seed,
    Cleanup,
}

impl State {
    pub const ALL: [Self; 8] = [
        Self::Pending,
        Self::SchemaCreated,
        Self::RoleCreated,
        Self::Migrated,
        Self::Seeded,
        Self::Ready,
        Self::Cleanup,
        Self::Failed,
    ];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::SchemaCreated => "schema_created",
            Self::RoleCreated => "role_created",
            Self::Migrated => "migrated",
            Self::Seeded => "seeded",
            Self::Ready => "ready",
            Self::Cleanup => "cleanup",
            Self::Failed => "failed",
        }
    }

    /// Whether no edge leaves it.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Ready | Self::Failed)
    }

    /// The state that success leads to; `failed` after `cleanup`.
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        match self {
            Self::Pending => Some(Self::SchemaCreated),
            Self::SchemaCreated => Some(Self::RoleCreated),
            Self::RoleCreated => Some(Self::Migrated),
            Self::Migrated => Some(Self::Seeded),
            Self::Seeded => Some(Self::Ready),
            Self::Cleanup => Some(Self::Failed),
            Self::Ready | Self::Failed => None,
        }
    }

    /// The step that leaves it; `None` where none has to run.
    #[must_use]
    pub const fn step(self) -> Option<Step> {
        match self {
            Self::Pending => Some(Step::CreateSchema),
            Self::SchemaCreated => Some(Step::CreateRole),
            Self::RoleCreated => Some(Step::Migrate),
            Self::Migrated => Some(Step::Seed),
            Self::Cleanup => Some(Step::Cleanup),
            Self::Seeded | Self::Ready | Self::Failed => None,
        }
    }
}

impl Step {
    pub const ALL: [Self; 5] =
        [Self::CreateSchema, Self::CreateRole, Self::Migrate, Self::Seed, Self::Cleanup];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CreateSchema => "create_schema",
            Self::CreateRole => "create_role",
            Self::Migrate => "migrate",
            Self::Seed => "seed",
            Self::Cleanup => "cleanup",
        }
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

/// Whether this edge is in the graph.
pub fn validate_transition(from: State, to: State) -> Result<(), Error> {
    let forward = from.next() == Some(to);
    let gives_up = to == State::Cleanup && !from.is_terminal() && from != State::Cleanup;
    if forward || gives_up { Ok(()) } else { Err(Error::IllegalTransition { from, to }) }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// There is no lossy way to read a state: a program that does not know one leaves the
/// job alone.
impl FromStr for State {
    type Err = UnknownState;

    fn from_str(text: &str) -> Result<Self, UnknownState> {
        let found = Self::ALL.into_iter().find(|state| state.as_str() == text);
        found.ok_or_else(|| UnknownState(text.to_owned()))
    }
}

/// A text that is no state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no state of a job")]
pub struct UnknownState(String);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    #[test]
    fn ready_and_failed_are_terminal_and_nothing_else() {
        let terminal: Vec<_> = State::ALL.into_iter().filter(|state| state.is_terminal()).collect();
        assert_eq!(terminal, [State::Ready, State::Failed]);
    }

    #[test]
    fn the_graph_has_these_edges() {
        let mut edges = Vec::new();
        for from in State::ALL {
            let allowed =
                State::ALL.into_iter().filter(|to| validate_transition(from, *to).is_ok());
            edges.extend(allowed.map(|to| format!("{from} {to}")));
        }
        let expected = [
            "pending schema_created",
            "pending cleanup",
            "schema_created role_created",
            "schema_created cleanup",
            "role_created migrated",
            "role_created cleanup",
            "migrated seeded",
            "migrated cleanup",
            "seeded ready",
            "seeded cleanup",
            "cleanup failed",
        ];
        assert_eq!(edges, expected);
    }

    #[test]
    fn an_illegal_edge_is_named() {
        let error = validate_transition(State::Ready, State::Cleanup).unwrap_err();
        assert_eq!(error.code(), "illegal_transition");
        assert!(error.to_string().contains("ready → cleanup"), "{error}");
    }

    proptest! {
        #[test]
        fn a_state_is_read_as_it_was_written(state in select(&State::ALL[..])) {
            prop_assert_eq!(state.as_str().parse::<State>(), Ok(state));
        }

        #[test]
        fn no_other_text_is_a_state(text in "[a-zA-Z_ ]{0,20}") {
            prop_assume!(State::ALL.iter().all(|state| state.as_str() != text));
            prop_assert!(text.parse::<State>().is_err());
        }

        /// Whatever edges are followed, a job ends: no state is met twice.
        #[test]
        fn every_walk_ends(choices in prop::collection::vec(0_usize..8, 8)) {
            let mut state = State::Pending;
            let mut met = vec![state];
            for choice in choices {
                let next: Vec<_> = State::ALL
                    .into_iter()
                    .filter(|to| validate_transition(state, *to).is_ok())
                    .collect();
                if next.is_empty() {
                    break;
                }
                state = next[choice % next.len()];
                prop_assert!(!met.contains(&state), "{:?} then {}", met, state);
                met.push(state);
            }
            prop_assert!(state.is_terminal());
        }
    }
}
