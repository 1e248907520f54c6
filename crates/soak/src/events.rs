//! The events read so far, checked against the history: each once, in order, at
//! dense positions. Pure.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

#[derive(Debug, Default)]
pub(super) struct Events {
    position: i64,
    ids: HashSet<String>,
    /// By attempt or deletion: event types in order, and the revision of the last event.
    seen: HashMap<String, (Vec<String>, i64)>,
    /// Attempts that are Deleted and checked, and deletions that ended: no further event is
    /// allowed.
    closed: HashSet<String>,
}

impl Events {
    pub(super) fn position(&self) -> i64 {
        self.position
    }

    /// Takes the next events in listed order and returns what is wrong with them.
    pub(super) fn take(&mut self, listed: &[Value]) -> Vec<String> {
        let mut wrong = Vec::new();
        for event in listed {
            let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
            let position = event["position"].as_i64().unwrap_or_default();
            if position != self.position + 1 {
                wrong.push(format!("position {position} follows {}", self.position));
            }
            self.position = position;
            if !self.ids.insert(text("id")) {
                wrong.push(format!("the message id {} is given twice", event["id"]));
            }
            let attempt = text("aggregate_id");
            if self.closed.contains(&attempt) {
                wrong.push(format!("after its end, attempt {attempt} has {}", event["type"]));
            }
            let revision = event["revision"].as_i64().unwrap_or_default();
            let (types, last) = self.seen.entry(attempt.clone()).or_default();
            if revision <= *last {
                wrong.push(format!(
                    "attempt {attempt} has {} at revision {revision}, after one at {last}",
                    event["type"]
                ));
            }
            *last = revision;
            types.push(text("type").replace("broker.ProvisionedResource", ""));
            match types.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                ["deletion.Started", "deletion.Done" | "deletion.Cancelled"] => {
                    self.close(&attempt);
                }
                ["deletion.Started"] => {}
                [first, ..] if first.starts_with("deletion.") => {
                    wrong.push(format!("deletion {attempt} has {types:?}"));
                }
                _ => {}
            }
        }
        wrong
    }

    /// The event types of an attempt, in order.
    pub(super) fn of(&self, attempt: &str) -> &[String] {
        self.seen.get(attempt).map(|(types, _)| types.as_slice()).unwrap_or_default()
    }

    /// Expects no further events of this attempt.
    pub(super) fn close(&mut self, attempt: &str) {
        self.seen.remove(attempt);
        self.closed.insert(attempt.to_owned());
    }

    /// Attempts with events that are not closed.
    pub(super) fn open(&self) -> impl Iterator<Item = &String> {
        let of_attempt = |types: &[String]| types.iter().all(|kind| !kind.starts_with("deletion."));
        self.seen.iter().filter(move |(_, (types, _))| of_attempt(types)).map(|(id, _)| id)
    }
}

/// The events that a history must have produced: the declaration, every arrival
/// at Ready or Failed, the transition into the deletion phases, and the end.
pub(super) fn expected(history: &Value) -> Vec<&'static str> {
    let lines = history.as_array().map(Vec::as_slice).unwrap_or_default();
    let is_deletion = |phase: &Value| {
        matches!(phase.as_str(), Some("Deregistering" | "Deprovisioning" | "Deleted"))
    };
    let mut expected = Vec::new();
    for line in lines {
        if line["from"].is_null() {
            expected.push("Requested");
        } else if is_deletion(&line["to"]) && !is_deletion(&line["from"]) {
            expected.push("Deleting");
        }
        match line["to"].as_str() {
            Some("Ready") => expected.push("Ready"),
            Some("Failed") => expected.push("Failed"),
            Some("Deleted") => expected.push("Deleted"),
            _ => {}
        }
    }
    expected
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Events, expected};

    fn event(position: i64, id: &str, revision: i64) -> Value {
        json!({
            "position": position,
            "id": id,
            "aggregate_id": "a",
            "revision": revision,
            "type": "broker.ProvisionedResourceReady",
        })
    }

    #[test]
    fn gaps_repetitions_and_afterthoughts_are_found() {
        let mut events = Events::default();
        assert_eq!(events.take(&[event(1, "x", 1), event(2, "y", 4)]), Vec::<String>::new());
        assert_eq!(events.of("a"), ["Ready", "Ready"]);
        assert!(events.take(&[event(4, "z", 5)])[0].contains("position 4 follows 2"));
        assert!(events.take(&[event(5, "z", 6)])[0].contains("twice"));
        assert!(events.take(&[event(6, "u", 6)])[0].contains("revision 6"));
        events.close("a");
        assert!(events.take(&[event(7, "v", 7)])[0].contains("after its end"));
    }

    #[test]
    fn a_history_tells_what_must_have_been_announced() {
        let walk = [
            (None, "Pending"),
            (Some("Pending"), "Ready"),
            (Some("Ready"), "Pending"),
            (Some("Pending"), "Ready"),
            (Some("Ready"), "Deregistering"),
            (Some("Deregistering"), "Deprovisioning"),
            (Some("Deprovisioning"), "Deregistering"),
            (Some("Deregistering"), "Deleted"),
        ];
        let history: Vec<Value> =
            walk.iter().map(|(from, to)| json!({ "from": from, "to": to })).collect();
        assert_eq!(
            expected(&json!(history)),
            ["Requested", "Ready", "Ready", "Deleting", "Deleted"]
        );
    }
}
