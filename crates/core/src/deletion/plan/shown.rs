//! What a plan shows: the steps in their order, with counts and the first names, however
//! much would go.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::members::Member;
use crate::closed_set::closed_set;
use crate::ids::DeletionId;
use crate::subject::SubjectKind;

/// What the store reads for a plan, under the locks of the request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// The target first.
    pub members: Vec<Member>,
    /// Of each resource among the members; only where a plan is shown, like the rest.
    pub resources: Vec<ResourceRow>,
    pub versions: BTreeMap<Uuid, VersionRow>,
    /// The namespace of the project.
    pub namespace: Option<Namespace>,
    pub past: PastTeardowns,
}

/// Of what a resource consists outside, as far as its rows know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceRow {
    /// Of the blueprint.
    pub version: Uuid,
    /// The name of its composite.
    pub composite: String,
    /// The name of its registered node.
    pub node: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionRow {
    pub blueprint: String,
    /// Of its composites, for an engine that has several.
    pub kind: Option<String>,
}

/// A namespace on a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    pub cluster: String,
    pub name: String,
    /// Whether it is removed: with its project, not with a resource.
    pub goes: bool,
}

/// How long deletions of resources of the same blueprints took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PastTeardowns(pub Vec<Duration>);

impl PastTeardowns {
    fn median(&self) -> Option<Duration> {
        let mut times = self.0.clone();
        times.sort_unstable();
        times.get(times.len() / 2).copied()
    }
}

closed_set!(
    /// What happens in a step.
    StepAction {
        DrainNodes => "drain_nodes",
        DeleteComposites => "delete_composites",
        MarkDeleted => "mark_deleted",
        RemoveNamespace => "remove_namespace",
    }
);

/// What goes at the same time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    pub action: StepAction,
    /// Of what goes: `node`, `composite`, `namespace`, or a kind of row.
    pub kind: String,
    pub count: u64,
    /// By blueprint, the largest first.
    pub groups: Vec<Group>,
    /// The first names.
    pub names: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    pub blueprint: String,
    pub count: u64,
}

/// Why the deletion would be refused now, as it would answer it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalShown {
    pub code: String,
    pub message: String,
}

/// What the composites are composed of, as their clusters answered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Composed {
    /// By the name of the composite, with their names in their clouds.
    pub objects: BTreeMap<String, Vec<String>>,
    /// Why some or all of them are missing.
    pub missing: Option<String>,
}

/// What people see of a plan. Stored as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// How many resources would be taken down.
    pub resources: u64,
    pub steps: Vec<Stage>,
    pub composed: Composed,
    /// What is protected, lifted or not: the first names.
    pub protected: Vec<String>,
    pub protected_count: u64,
    pub refusals: Vec<RefusalShown>,
    /// What keeps a deletion that was accepted from going on.
    pub withheld: Option<RefusalShown>,
    /// The deletion that is under way already.
    pub under_way: Option<DeletionId>,
    /// The grace that it would have, in seconds.
    pub grace_seconds: u64,
    /// After so long it counts as overdue: the time limits of its phases.
    pub limit_seconds: u64,
    /// The median of past teardowns of the same blueprints, and how many there were.
    pub typical_seconds: Option<u64>,
    pub typical_of: u64,
}

/// Names that a step shows.
const NAMED: usize = 20;

impl Reading {
    pub(super) fn typical(&self) -> (Option<u64>, u64) {
        let of = u64::try_from(self.past.0.len()).unwrap_or(u64::MAX);
        (self.past.median().map(|time| time.as_secs().max(1)), of)
    }

    /// How many resources go.
    pub(super) fn resource_count(&self) -> u64 {
        let is_resource = |member: &&Member| member.subject.kind == SubjectKind::Resource;
        count(self.members.iter().filter(is_resource).count())
    }

    pub(super) fn has_nodes(&self) -> bool {
        self.members.iter().any(|member| !member.nodes.is_empty())
    }

    /// Everything that goes, in the order in which it goes: what is outside of each
    /// resource, the resource, then what contains it, then its namespace.
    pub(super) fn stages(&self) -> Vec<Stage> {
        let mut stages = Vec::new();
        let nodes = self.resources.iter().filter_map(|row| row.node.as_ref());
        push(&mut stages, (StepAction::DrainNodes, "node"), Vec::new(), nodes, String::clone);
        let (groups, composites) = (self.groups(), self.resources.iter());
        let step = (StepAction::DeleteComposites, "composite");
        push(&mut stages, step, groups.clone(), composites, |row| self.composite(row));
        // What is in a container goes before it.
        let mut kinds: Vec<SubjectKind> =
            self.members.iter().map(|member| member.subject.kind).collect();
        kinds.sort_unstable_by_key(|kind| std::cmp::Reverse(*kind));
        kinds.dedup();
        for kind in kinds {
            let of_kind = self.members.iter().filter(|member| member.subject.kind == kind);
            let groups = match kind {
                SubjectKind::Resource => groups.clone(),
                _ => Vec::new(),
            };
            let step = (StepAction::MarkDeleted, kind.as_str());
            push(&mut stages, step, groups, of_kind, |member| member.name.clone());
        }
        if let Some(namespace) = self.namespace.as_ref().filter(|namespace| namespace.goes) {
            let name = format!("{} on cluster {}", namespace.name, namespace.cluster);
            let step = (StepAction::RemoveNamespace, "namespace");
            push(&mut stages, step, Vec::new(), [name], |name| name);
        }
        stages
    }

    /// Kind, namespace and name, as far as there are.
    fn composite(&self, row: &ResourceRow) -> String {
        let kind = self.versions.get(&row.version).and_then(|version| version.kind.as_deref());
        let namespace = self.namespace.as_ref().map(|namespace| namespace.name.as_str());
        let parts = [kind, namespace, Some(row.composite.as_str())];
        parts.into_iter().flatten().collect::<Vec<_>>().join("/")
    }

    fn groups(&self) -> Vec<Group> {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for row in &self.resources {
            let version = self.versions.get(&row.version);
            *counts.entry(version.map_or("?", |version| &version.blueprint)).or_default() += 1;
        }
        let mut groups: Vec<Group> = counts
            .into_iter()
            .map(|(blueprint, count)| Group { blueprint: blueprint.to_owned(), count })
            .collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.count));
        groups.truncate(NAMED);
        groups
    }
}

/// A step, unless nothing goes in it. Names only those that it shows.
fn push<T>(
    stages: &mut Vec<Stage>,
    (action, kind): (StepAction, &str),
    groups: Vec<Group>,
    of: impl IntoIterator<Item = T>,
    name: impl Fn(T) -> String,
) {
    let mut of = of.into_iter();
    let names: Vec<String> = of.by_ref().take(NAMED).map(name).collect();
    let all = count(names.len() + of.count());
    if all > 0 {
        stages.push(Stage { action, kind: kind.to_owned(), count: all, groups, names });
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
