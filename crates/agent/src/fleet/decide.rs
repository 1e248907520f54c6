//! What an agent does about an answer: a pure function of the objects that it was
//! offered and of its inventory.
//!
//! A marker is an order, and is carried out. An absent stack means "remove it" too, but
//! an answer may lack a stack for worse reasons: a server that was restored, or that
//! forgot. So an absence counts only in the second of two equal answers without an
//! error between them, and if it would remove more than [`MOST_OBJECTS`] or
//! [`MOST_PERCENT`] of what the agent holds, a person has to confirm exactly that.

use std::collections::{BTreeMap, BTreeSet};

use ring::digest::{SHA256, digest};
use slipway_wire::fleet::{DeploymentObject, PruneRefusal};

use super::inventory::{Entry, Event, Inventory, Phase, count, set_digest};

/// The most objects that a prune by absence removes without a confirmation.
pub(crate) const MOST_OBJECTS: usize = 50;

/// The largest part of what the agent holds that it removes so, in percent.
pub(crate) const MOST_PERCENT: usize = 20;

/// What to do about one stack.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action<'a> {
    /// Let go of its objects: they stay.
    Release {
        stack: String,
        object_id: String,
    },
    /// Delete its objects, as a marker says.
    Remove {
        marker: &'a DeploymentObject,
    },
    /// Say why the object is not carried out.
    Refuse {
        object: &'a DeploymentObject,
        reason: &'static str,
    },
    Apply {
        object: &'a DeploymentObject,
    },
    /// Delete what was part of it and is not any more.
    Sweep {
        stack: String,
    },
    /// Delete its objects, since the answer lacks it.
    Prune {
        stack: String,
    },
    /// Take it out of the inventory: nothing is left of it, and nobody asks.
    Forget {
        stack: String,
    },
}

/// The actions in their order, and what has to wait.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Plan<'a> {
    pub(crate) actions: Vec<Action<'a>>,
    /// A prune that waits for a confirmation.
    pub(crate) refusal: Option<PruneRefusal>,
    /// Absent stacks wait for a second equal answer.
    pub(crate) is_unproven: bool,
}

/// Whether the last answers prove that a stack is absent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Evidence {
    last: Option<Vec<u8>>,
    equal: u32,
}

impl Evidence {
    /// Learns of a complete answer.
    pub(crate) fn answered(&mut self, objects: &[DeploymentObject]) {
        let mut lines: Vec<_> =
            objects.iter().map(|one| format!("{} {}", one.stack_id, one.id)).collect();
        lines.sort_unstable();
        let digest = digest(&SHA256, lines.join("\n").as_bytes()).as_ref().to_vec();
        self.equal =
            if self.last.as_ref() == Some(&digest) { self.equal.saturating_add(1) } else { 1 };
        self.last = Some(digest);
    }

    /// Learns that the answer is the last one still.
    pub(crate) fn unchanged(&mut self) {
        if self.last.is_some() {
            self.equal = self.equal.saturating_add(1);
        }
    }

    /// After an error nothing is proven, whatever was answered before.
    pub(crate) fn failed(&mut self) {
        *self = Self::default();
    }

    fn is_proof(&self) -> bool {
        self.equal >= 2
    }
}

/// What to do about an answer.
pub(crate) fn decide<'a>(
    offered: &'a [DeploymentObject],
    inventory: &Inventory,
    evidence: &Evidence,
    confirmed: &BTreeSet<String>,
) -> Plan<'a> {
    let newest = newest(offered);
    let mut actions = Vec::new();
    for object in newest.values() {
        actions.extend(about_offered(object, inventory.get(&object.stack_id)));
    }
    let absent = inventory.iter().filter(|(stack, _)| !newest.contains_key(stack.as_str()));
    let mut pruned = BTreeMap::new();
    for (stack, entry) in absent {
        match about_absent(stack, entry) {
            Absent::Now(action) => actions.push(action),
            Absent::Nothing => {}
            Absent::Pruned => {
                pruned.insert(stack.clone(), entry);
            }
        }
    }
    let mut plan =
        Plan { is_unproven: !pruned.is_empty() && !evidence.is_proof(), ..Plan::default() };
    if !plan.is_unproven {
        plan.refusal = refusal(&pruned, count(inventory), confirmed);
        if plan.refusal.is_none() {
            actions.extend(pruned.into_keys().map(|stack| Action::Prune { stack }));
        }
    }
    actions.sort_by_key(rank);
    plan.actions = actions;
    plan
}

/// Of each stack the object with the highest number.
fn newest(offered: &[DeploymentObject]) -> BTreeMap<&str, &DeploymentObject> {
    let mut newest: BTreeMap<&str, &DeploymentObject> = BTreeMap::new();
    for object in offered {
        let known = newest.entry(&object.stack_id).or_insert(object);
        if known.sequence_id < object.sequence_id {
            *known = object;
        }
    }
    newest
}

/// What leaves goes first, so that an object can move from one stack to another.
fn rank(action: &Action<'_>) -> u8 {
    match action {
        Action::Forget { .. } | Action::Refuse { .. } => 0,
        Action::Release { .. } => 1,
        Action::Remove { .. } => 2,
        Action::Apply { .. } => 3,
        Action::Sweep { .. } => 4,
        Action::Prune { .. } => 5,
    }
}

fn about_offered<'a>(object: &'a DeploymentObject, entry: Option<&Entry>) -> Option<Action<'a>> {
    let stack = || object.stack_id.clone();
    let is_empty = object.yaml_content.trim().is_empty();
    if object.is_deletion_marker && !is_empty {
        let reason = "it is a deletion marker with content, which contradicts itself; submit a marker without content to remove the stack, or the content without the mark";
        return Some(Action::Refuse { object, reason });
    }
    if object.is_deletion_marker {
        let is_done =
            entry.is_some_and(|entry| entry.phase == Phase::Gone && entry.object_id == object.id);
        return (!is_done).then(|| match object.keep {
            true => Action::Release { stack: stack(), object_id: object.id.clone() },
            false => Action::Remove { marker: object },
        });
    }
    if object.keep {
        let reason = "it has content and says `keep`, which only a deletion marker can";
        return Some(Action::Refuse { object, reason });
    }
    if is_empty {
        let reason =
            "it has no content and is no deletion marker; nothing is removed without a marker";
        return Some(Action::Refuse { object, reason });
    }
    match entry {
        Some(entry)
            if entry.phase == Phase::Applied
                && entry.object_id == object.id
                && entry.checksum == object.yaml_checksum =>
        {
            let has_stale = entry.references.iter().any(|reference| reference.is_stale);
            has_stale.then(|| Action::Sweep { stack: stack() })
        }
        _ => Some(Action::Apply { object }),
    }
}

enum Absent<'a> {
    Now(Action<'a>),
    Pruned,
    Nothing,
}

fn about_absent<'a>(stack: &str, entry: &Entry) -> Absent<'a> {
    let stack = stack.to_owned();
    match entry.phase {
        // What somebody decided to keep is never deleted.
        Phase::Releasing => {
            Absent::Now(Action::Release { stack, object_id: entry.object_id.clone() })
        }
        // The server does not ask for a report on a marker that it does not offer, and
        // hears of a prune from us alone.
        Phase::Gone if entry.event == Event::Prune && entry.report.is_some() => Absent::Nothing,
        Phase::Gone => Absent::Now(Action::Forget { stack }),
        Phase::Applying | Phase::Applied | Phase::Removing if entry.references.is_empty() => {
            Absent::Now(Action::Forget { stack })
        }
        Phase::Applying | Phase::Applied | Phase::Removing => Absent::Pruned,
    }
}

/// The refusal of a prune that is too large and that nobody confirmed.
fn refusal(
    pruned: &BTreeMap<String, &Entry>,
    total: usize,
    confirmed: &BTreeSet<String>,
) -> Option<PruneRefusal> {
    let references = || pruned.values().flat_map(|entry| &entry.references);
    let objects = references().count();
    let is_large = objects > MOST_OBJECTS || objects * 100 > total * MOST_PERCENT;
    let digest = set_digest(references());
    (objects > 0 && is_large && !confirmed.contains(&digest)).then(|| PruneRefusal {
        digest,
        objects: i64::try_from(objects).unwrap_or(i64::MAX),
        stacks: pruned.keys().cloned().collect(),
        total: i64::try_from(total).unwrap_or(i64::MAX),
    })
}

#[cfg(test)]
mod tests;
