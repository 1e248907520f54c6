//! What an agent holds: for every stack the object that it deployed last, and
//! references to what came of it. References only, never content. The backend keeps
//! it where the objects are, so that a new process knows what an old one deployed.

use std::collections::BTreeMap;
use std::fmt;

use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

/// The stacks by id.
pub(crate) type Inventory = BTreeMap<String, Entry>;

/// The address of one object. Its identity is group, kind, namespace and name: an
/// object that is written in another version of its group is the same object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reference {
    #[serde(rename = "v")]
    pub(crate) api_version: String,
    #[serde(rename = "k")]
    pub(crate) kind: String,
    /// Empty where the backend needs none.
    #[serde(rename = "p", default, skip_serializing_if = "String::is_empty")]
    pub(crate) plural: String,
    #[serde(rename = "ns", default, skip_serializing_if = "Option::is_none")]
    pub(crate) namespace: Option<String>,
    #[serde(rename = "n")]
    pub(crate) name: String,
    /// What the object is compared by to notice drift; `None` until it was applied.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub(crate) digest: Option<String>,
    /// It is no part of the stack any more and is to be removed.
    #[serde(rename = "x", default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_stale: bool,
}

impl Reference {
    fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The identity, as one line.
    pub(crate) fn key(&self) -> String {
        let namespace = self.namespace.as_deref().unwrap_or_default();
        format!("{}/{}/{namespace}/{}", self.group(), self.kind, self.name)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}

/// How far a stack is. Each intent is written before it is acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Phase {
    /// Its objects are being applied, or that failed.
    Applying,
    /// Its objects are applied.
    Applied,
    /// Its objects are being deleted.
    Removing,
    /// Its objects are being released: they stay, and are nobody's.
    Releasing,
    /// Nothing is left of it.
    Gone,
}

/// What was done with an object, in the words of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Event {
    Deploy,
    Delete,
    Keep,
    Prune,
    Drift,
}

impl Event {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Deploy => "DEPLOY",
            Self::Delete => "DELETE",
            Self::Keep => "KEEP",
            Self::Prune => "PRUNE",
            Self::Drift => "DRIFT",
        }
    }
}

/// A report to the control plane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) object_id: String,
    pub(crate) event: Event,
    pub(crate) is_success: bool,
    pub(crate) message: Option<String>,
}

impl Report {
    /// Equal for reports that say the same.
    fn key(&self) -> String {
        let message = self.message.as_deref().unwrap_or_default();
        let text = format!("{}\n{:?}\n{}\n{message}", self.object_id, self.event, self.is_success);
        short_digest(text.as_bytes())
    }
}

/// One stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The object that the phase is about.
    pub(crate) object_id: String,
    pub(crate) checksum: String,
    pub(crate) phase: Phase,
    /// Why it is removed; `DEPLOY` while it is not.
    pub(crate) event: Event,
    pub(crate) references: Vec<Reference>,
    /// The inventory did not have it when its marker came, or when its first object failed,
    /// so the references may not be all: somebody may have deleted the inventory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_lost: bool,
    /// A report that the control plane has not taken yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) report: Option<Report>,
    /// The key of the last one that it took: the same is not reported again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reported: Option<String>,
}

impl Entry {
    /// A stack that nothing was done about yet.
    pub(crate) fn new(object_id: &str, checksum: &str) -> Self {
        Self {
            object_id: object_id.to_owned(),
            checksum: checksum.to_owned(),
            phase: Phase::Applying,
            event: Event::Deploy,
            references: Vec::new(),
            is_lost: false,
            report: None,
            reported: None,
        }
    }

    /// A stack that the inventory does not have although it may have been applied.
    pub(crate) fn lost(object_id: &str) -> Self {
        Self { is_lost: true, ..Self::new(object_id, "") }
    }

    /// Puts a report in line, unless the last one said the same.
    pub(crate) fn say(&mut self, report: Report) {
        self.report = (self.reported.as_ref() != Some(&report.key())).then_some(report);
    }

    /// Notes that the control plane took the report that waits.
    pub(crate) fn said(&mut self) {
        if let Some(report) = self.report.take() {
            self.reported = Some(report.key());
        }
    }

    pub(crate) fn stale(&self) -> Vec<Reference> {
        self.references.iter().filter(|reference| reference.is_stale).cloned().collect()
    }

    /// The references of before and those of the new object: whatever is left of an
    /// apply that breaks off is known.
    pub(crate) fn intend(&mut self, desired: &[Reference]) {
        let mut new: BTreeMap<_, _> = desired.iter().map(|one| (one.key(), one.clone())).collect();
        self.references.retain_mut(|old| {
            old.is_stale = true;
            // What was applied before is known by that until it is applied again.
            let kept = new.get_mut(&old.key());
            kept.map(|kept| kept.digest = old.digest.take()).is_none()
        });
        let desired = desired.iter().filter_map(|one| new.remove(&one.key()));
        self.references.extend(desired);
    }
}

/// How many objects an agent holds.
pub(crate) fn count(inventory: &Inventory) -> usize {
    inventory.values().map(|entry| entry.references.len()).sum()
}

/// The digest of a set of objects, in any order.
pub(crate) fn set_digest<'a>(references: impl Iterator<Item = &'a Reference>) -> String {
    let mut lines: Vec<_> = references.map(Reference::key).collect();
    lines.sort_unstable();
    lines.dedup();
    HEXLOWER.encode(digest(&SHA256, lines.join("\n").as_bytes()).as_ref())
}

/// Enough to tell two texts apart that nobody chose for it.
pub(crate) fn short_digest(content: &[u8]) -> String {
    HEXLOWER.encode(&digest(&SHA256, content).as_ref()[..8])
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn mk_reference(name: &str) -> Reference {
        Reference {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            plural: String::new(),
            namespace: Some("n".to_owned()),
            name: name.to_owned(),
            digest: None,
            is_stale: false,
        }
    }

    fn names(entry: &Entry) -> Vec<(&str, bool)> {
        entry.references.iter().map(|one| (&*one.name, one.is_stale)).collect()
    }

    #[test]
    fn an_intent_keeps_what_was_there_before() {
        let mut entry = Entry::new("o1", "c1");
        entry.intend(&[mk_reference("a"), mk_reference("b")]);
        entry.intend(&[mk_reference("b"), mk_reference("c")]);
        assert_eq!(names(&entry), [("a", true), ("b", false), ("c", false)]);
        // Wanted again before it was removed.
        entry.intend(&[mk_reference("a")]);
        assert_eq!(names(&entry), [("b", true), ("c", true), ("a", false)]);
    }

    #[test]
    fn what_was_applied_is_known_until_it_is_applied_again() {
        let mut entry = Entry::new("o1", "c1");
        entry.intend(&[Reference { digest: Some("d".to_owned()), ..mk_reference("a") }]);
        entry.intend(&[mk_reference("a"), mk_reference("b")]);
        let digests: Vec<_> = entry.references.iter().map(|one| one.digest.as_deref()).collect();
        assert_eq!(digests, [Some("d"), None]);
    }

    #[test]
    fn another_version_of_a_group_is_the_same_object() {
        let old = Reference { api_version: "apps/v1beta1".to_owned(), ..mk_reference("a") };
        let new = Reference { api_version: "apps/v1".to_owned(), ..mk_reference("a") };
        let other = Reference { api_version: "batch/v1".to_owned(), ..mk_reference("a") };
        assert_eq!(old.key(), new.key());
        assert_ne!(old.key(), other.key());
        let mut entry = Entry::new("o1", "c1");
        entry.intend(&[old]);
        entry.intend(&[new]);
        assert_eq!(names(&entry), [("a", false)]);
    }

    #[test]
    fn the_same_is_reported_once() {
        let failure = |message: &str| Report {
            object_id: "o1".to_owned(),
            event: Event::Deploy,
            is_success: false,
            message: Some(message.to_owned()),
        };
        let mut entry = Entry::new("o1", "c1");
        entry.say(failure("one"));
        entry.said();
        entry.say(failure("one"));
        assert_eq!(entry.report, None);
        entry.say(failure("two"));
        assert_eq!(entry.report, Some(failure("two")));
    }

    #[test]
    fn a_set_has_one_digest_in_any_order() {
        let (a, b) = (mk_reference("a"), mk_reference("b"));
        assert_eq!(set_digest([&a, &b].into_iter()), set_digest([&b, &a].into_iter()));
        assert_ne!(set_digest([&a].into_iter()), set_digest([&a, &b].into_iter()));
        assert_eq!(set_digest([&a].into_iter()).len(), 64);
    }

    #[test]
    fn what_is_stored_is_read_back() {
        let mut entry = Entry::new("o1", "c1");
        entry.intend(&[Reference { digest: Some("d".to_owned()), ..mk_reference("a") }]);
        entry.intend(&[mk_reference("b")]);
        let text = serde_json::to_string(&entry).unwrap();
        assert_eq!(serde_json::from_str::<Entry>(&text).unwrap(), entry);
    }
}
