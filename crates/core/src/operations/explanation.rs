//! Explanations: one shape of answer to "why is it where it is", for every kind
//! of subject. [`crate::operations::explain`] builds them.

use std::collections::BTreeMap;

use serde_json::Value;
use uuid::Uuid;

use crate::blocker::Blocker;
use crate::closed_set::closed_set;
use crate::ids::{ProvisionedResourceId, ResourceId};
use crate::nodes::node::Node;
use crate::time::Timestamp;

closed_set!(
    /// What can be explained.
    ExplainedKind {
        Resource => "resource",
        Attempt => "attempt",
        Node => "node",
        Deletion => "deletion",
        Project => "project",
        Cluster => "cluster",
        Token => "token",
        Leak => "leak",
        Rollout => "rollout",
        Stack => "stack",
        Agent => "agent",
        Generator => "generator",
        Tenant => "tenant",
        /// Of a tenant.
        Job => "job",
        Workspace => "workspace",
    }
);

/// The worker that has the lease, and until when unless it is renewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub worker: String,
    pub until: Timestamp,
}

/// One line of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryLine {
    /// The number of the line: grows, with gaps, over the life of the subject.
    pub number: i64,
    pub at: Timestamp,
    pub from: Option<String>,
    pub to: String,
    pub why: String,
}

/// An attempt as its row says, even one that breaks an invariant. Nothing in it
/// is validated: show it, never decide on it.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptLine {
    pub now: Timestamp,
    pub id: ProvisionedResourceId,
    pub resource_id: ResourceId,
    pub handle: String,
    pub number: i32,
    pub phase: String,
    pub since: Timestamp,
    pub created_at: Timestamp,
    /// False for one that was made beside another and did not replace it (yet).
    pub in_use: bool,
    pub blueprint_version: String,
    pub parameters: BTreeMap<String, Value>,
    pub failure: Option<FailureLine>,
    pub absence_proven_at: Option<Timestamp>,
    pub abandoned_at: Option<Timestamp>,
    pub due_at: Option<Timestamp>,
    pub holder: Option<Holder>,
    pub blockers: Vec<Blocker>,
}

/// How an attempt failed, also one that was taken down since.
#[derive(Debug, Clone, PartialEq)]
pub struct FailureLine {
    pub at: Timestamp,
    pub reason: String,
    /// What was observed then.
    pub observed: Value,
}

/// How many attempts whose absence is not proven are in a phase, and how many
/// of them are blocked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseCount {
    pub phase: String,
    pub total: u64,
    pub blocked: u64,
}

/// Something that belongs to the explained subject, with its blockers.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    pub kind: String,
    pub id: Uuid,
    pub name: String,
    pub state: String,
    pub since: Option<Timestamp>,
    /// How it relates to the subject.
    pub about: Option<String>,
    /// The resource that the remedies of its blockers name.
    pub resource_id: Option<ResourceId>,
    pub blockers: Vec<Blocker>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    pub kind: ExplainedKind,
    pub id: Uuid,
    pub name: String,
    /// Its phase, where it has one.
    pub state: String,
    pub since: Timestamp,
    /// That it will be deleted, when, and how to keep it.
    pub notice: Option<String>,
    /// What must happen for the state to change. `None` if nothing has to.
    pub waiting_for: Option<String>,
    /// When the wait becomes a blocker.
    pub deadline: Option<Timestamp>,
    /// The deadline has passed.
    pub overdue: bool,
    /// What happens next if nobody does anything.
    pub next: String,
    pub next_check_at: Option<Timestamp>,
    pub holder: Option<Holder>,
    pub facts: BTreeMap<&'static str, Value>,
    /// The last recorded observation.
    pub observed: Option<Value>,
    /// Since when that has been so.
    pub observed_since: Option<Timestamp>,
    /// Nobody checks it any more.
    pub observed_stale: bool,
    /// How it failed, if it did.
    pub failure: Option<FailureLine>,
    pub node: Option<Node>,
    pub resource_id: Option<ResourceId>,
    pub blockers: Vec<Blocker>,
    pub parts: Vec<Part>,
    /// The newest lines of it, oldest first.
    pub history: Vec<HistoryLine>,
    /// There are lines before these.
    pub has_older_history: bool,
    /// The attempt whose history it is.
    pub attempt: Option<i32>,
}

impl Explanation {
    /// An explanation that has nothing but its subject.
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
            notice: None,
            waiting_for: None,
            deadline: None,
            overdue: false,
            next: String::new(),
            next_check_at: None,
            holder: None,
            facts: BTreeMap::new(),
            observed: None,
            observed_since: None,
            observed_stale: false,
            failure: None,
            node: None,
            resource_id: None,
            blockers: Vec::new(),
            parts: Vec::new(),
            history: Vec::new(),
            has_older_history: false,
            attempt: None,
        }
    }
}
