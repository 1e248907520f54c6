//! Events: what is announced to subscribers. An event goes to the outbox in the
//! transaction of the change and from there, at least once and under a stable
//! message id, to subscribers. Discriminators and payload fields are a wire
//! contract.
//!
//! Each room registers its types as a [`Family`]; [`catalog`] collects them.

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::broker;
use crate::deletion;
use crate::fleet;
use crate::ids::{EventId, ProjectId, Revision};
use crate::rollouts;
use crate::subject::Subject;
use crate::tenants;
use crate::time::Timestamp;
use crate::topology;

/// A discriminator: the family of a room, and a name in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventType {
    family: &'static str,
    text: &'static str,
}

impl EventType {
    /// `text` is `<family>.<Name>`; [`event_family`](crate::event::event_family)
    /// builds it.
    pub(crate) const fn new(family: &'static str, text: &'static str) -> Self {
        Self { family, text }
    }

    pub const fn family(self) -> &'static str {
        self.family
    }

    pub fn name(self) -> &'static str {
        &self.text[self.family.len() + 1..]
    }

    /// Family and name, as they are stored and sent.
    pub const fn as_str(self) -> &'static str {
        self.text
    }
}

/// The event types of one room.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    pub name: &'static str,
    pub types: &'static [EventType],
}

/// Declares the types of a room as constants, and their family as `FAMILY`.
macro_rules! event_family {
    ($family:literal { $($(#[$doc:meta])* $constant:ident => $name:literal,)* }) => {
        $($(#[$doc])* pub const $constant: $crate::event::EventType =
            $crate::event::EventType::new($family, concat!($family, ".", $name));)*

        pub const FAMILY: $crate::event::Family =
            $crate::event::Family { name: $family, types: &[$($constant,)*] };
    };
}
pub(crate) use event_family;

/// The families of all rooms. Documents, the database's CHECK and the tests
/// compare themselves with it.
pub const fn catalog() -> &'static [Family] {
    &[
        broker::event::FAMILY,
        deletion::event::FAMILY,
        rollouts::event::FAMILY,
        fleet::event::FAMILY,
        tenants::event::FAMILY,
        topology::event::FAMILY,
    ]
}

/// One event, ready for the outbox.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub id: EventId,
    pub event_type: EventType,
    pub subject: Subject,
    /// The revision that the write gives the subject; with the type it makes
    /// an event unique.
    pub revision: Revision,
    /// `None` for a subject that belongs to no project.
    pub project_id: Option<ProjectId>,
    pub occurred_at: Timestamp,
    /// What it announces was not proven outside. Part of the envelope: the payload is a
    /// wire contract.
    pub abandoned: bool,
    /// What an update, a retry or a replacement changed in the declaration: `version`,
    /// `parameters.<name>`, `labels`. Part of the envelope too.
    pub changed: Vec<String>,
    pub payload: Value,
}

impl Event {
    /// Announces a write; the room's `payload` gets the id of the event. The id
    /// derives from the type, the subject and its new revision, so that a
    /// transaction that runs again announces the same event.
    pub(crate) fn new<P: Serialize>(
        event_type: EventType,
        subject: Subject,
        revision: Revision,
        project_id: Option<ProjectId>,
        occurred_at: Timestamp,
        payload: impl FnOnce(EventId) -> P,
    ) -> Self {
        let id = EventId::new(derive_id(
            occurred_at,
            &[event_type.as_str().as_bytes(), subject.id.as_bytes(), &revision.0.to_be_bytes()],
        ));
        Self {
            id,
            event_type,
            subject,
            revision,
            project_id,
            occurred_at,
            abandoned: false,
            changed: Vec::new(),
            payload: serde_json::to_value(payload(id)).unwrap_or(Value::Null),
        }
    }
}

/// A UUIDv7 whose random part is a hash of what it identifies: time-ordered
/// like all our ids, and equal if the same thing is announced twice.
pub(crate) fn derive_id(at: Timestamp, parts: &[&[u8]]) -> Uuid {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hasher.update(part);
    }
    let digest = hasher.finalize();
    let mut random = [0; 10];
    random.copy_from_slice(&digest[..10]);
    let millis = u64::try_from(at.as_micros() / 1_000).unwrap_or(0);
    uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::broker::event::{FAILED, FAMILY, READY, announce};
    use crate::broker::phase::Phase;
    use crate::fixtures::{at, mk_attempt};

    #[test]
    fn discriminators_are_the_published_ones() {
        let texts: Vec<_> = FAMILY.types.iter().map(|kind| kind.as_str()).collect();
        insta::assert_json_snapshot!(texts);
    }

    #[test]
    fn payloads_are_the_published_ones() {
        let attempt = mk_attempt(Phase::Failed).failed_because(Some("quota".to_owned()));
        let payloads: Vec<_> = FAMILY
            .types
            .iter()
            .map(|kind| announce(*kind, &attempt, Revision(3), at(1_000)).payload)
            .collect();
        insta::assert_json_snapshot!(payloads);
    }

    /// Families and types are unique, and a type is spelt `family.Name`.
    #[test]
    fn the_catalog_is_a_closed_set_of_well_formed_types() {
        let mut seen = BTreeSet::new();
        for family in catalog() {
            assert!(!family.types.is_empty(), "{}", family.name);
            assert!(family.name.chars().all(|c| c.is_ascii_lowercase()), "{}", family.name);
            for kind in family.types {
                assert_eq!(kind.family(), family.name);
                assert_eq!(kind.as_str(), format!("{}.{}", family.name, kind.name()));
                assert!(kind.name().chars().all(|c| c.is_ascii_alphanumeric()), "{kind:?}");
                assert!(kind.name().starts_with(|c: char| c.is_ascii_uppercase()), "{kind:?}");
                assert!(seen.insert(kind.as_str()), "{kind:?} is there twice");
            }
        }
    }

    #[test]
    fn the_same_announcement_has_the_same_id_and_another_has_another() {
        let attempt = mk_attempt(Phase::Ready);
        let announce = |kind, revision| announce(kind, &attempt, Revision(revision), at(1_000)).id;
        assert_eq!(announce(READY, 3), announce(READY, 3));
        assert_ne!(announce(READY, 3), announce(READY, 4));
        assert_ne!(announce(READY, 3), announce(FAILED, 3));
        assert_eq!(announce(READY, 3).as_uuid().get_version_num(), 7);
    }
}
