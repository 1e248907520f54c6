//! Events whose row cannot be read. Each keeps its position and is shown with a
//! type of its own: positions stay dense for readers, and nothing waits for a
//! repair.

use serde_json::json;
use uuid::Uuid;

use crate::deletion::leak::LeakRecord;
use crate::event::derive_id;
use crate::ids::LeakRecordId;
use crate::subject::Subject;
use crate::time::Timestamp;

/// The type under which such an event is shown. Nothing announces it, so it is in
/// no family.
pub const TYPE: &str = "outbox.Unreadable";

/// The kind of its leak record.
pub const LEAK_KIND: &str = "unreadable_event";

/// The message id of an event whose own cannot be read: the same in every delivery.
pub fn message_id(position: i64) -> Uuid {
    derive_id(Timestamp::ZERO, &[TYPE.as_bytes(), &position.to_be_bytes()])
}

/// The record that tells a person that subscribers passed this event. It names no
/// attempt, so it is about itself. The same event has the same record.
pub fn leak(position: i64, reason: &str, now: Timestamp) -> LeakRecord {
    let id = LeakRecordId::new(derive_id(
        Timestamp::ZERO,
        &[LEAK_KIND.as_bytes(), &position.to_be_bytes()],
    ));
    LeakRecord {
        id,
        kind: LEAK_KIND,
        subject: Subject::from(id),
        found_at: now,
        evidence: json!({ "position": position, "reason": reason }),
        last_known: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_one_record_and_one_message_id() {
        let now = Timestamp::from_micros(1);
        let (first, again) = (leak(7, "x", now), leak(7, "y", now));
        assert_eq!((first.id, first.subject), (again.id, Subject::from(first.id)));
        assert_ne!(first.id, leak(8, "x", now).id);
        assert_eq!(message_id(7), message_id(7));
        assert_ne!(message_id(7), message_id(8));
        assert!(crate::event::catalog().iter().all(|family| !TYPE.starts_with(family.name)));
    }
}
