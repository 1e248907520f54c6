//! Explanations: one shape of answer to "why is it where it is", whatever it
//! is asked about. `rules::explanation` puts them together.

use std::collections::BTreeMap;

use serde_json::Value;
use uuid::Uuid;

use crate::blocker::Blocker;
use crate::closed_set::closed_set;
use crate::ids::{ProvisionedResourceId, ResourceId};
use crate::node::Node;
use crate::time::Timestamp;

closed_set!(
    /// What can be explained.
    ExplainedKind {
        Resource => "resource",
        Node => "node",
        Deletion => "deletion",
        Project => "project",
        Cluster => "cluster",
        Token => "token",
        Leak => "leak",
    }
);

/// Who works on something just now, and until when unless they renew it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub worker: String,
    pub until: Timestamp,
}

/// One line of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryLine {
    pub at: Timestamp,
    pub from: Option<String>,
    pub to: String,
    pub why: String,
}

/// An attempt as its row says, also one that breaks an invariant: nothing of it
/// is checked, so it is for showing and never for deciding.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptLine {
    pub now: Timestamp,
    pub id: ProvisionedResourceId,
    pub resource_id: ResourceId,
    pub handle: String,
    pub number: i32,
    pub phase: String,
    pub since: Timestamp,
    pub absence_proven_at: Option<Timestamp>,
    pub due_at: Option<Timestamp>,
    pub holder: Option<Holder>,
    pub blockers: Vec<Blocker>,
}

/// How many attempts that are not yet proven gone are in a phase, and how many
/// of these are blocked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseCount {
    pub phase: String,
    pub total: u64,
    pub blocked: u64,
}

/// Something that belongs to what is explained, with what blocks it.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    pub kind: String,
    pub id: Uuid,
    pub name: String,
    pub state: String,
    pub since: Option<Timestamp>,
    /// What it has to do with it.
    pub about: Option<String>,
    /// Whom the remedies of its blockers name.
    pub resource_id: Option<ResourceId>,
    pub blockers: Vec<Blocker>,
}

/// The answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    pub kind: ExplainedKind,
    pub id: Uuid,
    pub name: String,
    /// Its phase, where it has one.
    pub state: String,
    pub since: Timestamp,
    /// What has to happen for the state to change. `None` where nothing has to.
    pub waiting_for: Option<String>,
    /// When the wait becomes a blocker.
    pub deadline: Option<Timestamp>,
    /// That has passed.
    pub overdue: bool,
    /// What happens next if nobody does anything.
    pub next: String,
    pub next_check_at: Option<Timestamp>,
    pub holder: Option<Holder>,
    pub facts: BTreeMap<&'static str, Value>,
    /// What the last recorded observation was.
    pub observed: Option<Value>,
    pub node: Option<Node>,
    pub resource_id: Option<ResourceId>,
    pub blockers: Vec<Blocker>,
    pub parts: Vec<Part>,
    pub history: Vec<HistoryLine>,
}

impl Explanation {
    /// One that says no more than what it is about.
    pub(crate) fn new(
        kind: ExplainedKind,
        id: Uuid,
        name: impl Into<String>,
        state: impl Into<String>,
        since: Timestamp,
    ) -> Self {
        Self {
            kind,
            id,
            name: name.into(),
            state: state.into(),
            since,
            waiting_for: None,
            deadline: None,
            overdue: false,
            next: String::new(),
            next_check_at: None,
            holder: None,
            facts: BTreeMap::new(),
            observed: None,
            node: None,
            resource_id: None,
            blockers: Vec::new(),
            parts: Vec::new(),
            history: Vec::new(),
        }
    }
}
