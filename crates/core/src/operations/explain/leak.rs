//! A leak: what was observed, and who has to act on it.

use serde_json::json;

use super::resource::part;
use crate::deletion::leak::Leak;
use crate::operations::explanation::{AttemptLine, ExplainedKind, Explanation};
use crate::time::Timestamp;

/// `attempt` is the one that the leak is about, if any; `next_observation` is
/// the time of the next scan.
pub fn leak(
    leak: &Leak,
    attempt: Option<&AttemptLine>,
    next_observation: Option<Timestamp>,
) -> Explanation {
    let (state, since) = match (&leak.resolved, &leak.removal) {
        (Some(resolved), _) => ("resolved", resolved.at),
        (None, Some(removal)) => ("being removed", removal.at),
        (None, None) => ("open", leak.found_at),
    };
    let name = match &leak.object_ref {
        Some(object_ref) => format!("{} {}/{}", leak.kind, object_ref.namespace, object_ref.name),
        None => leak.kind.clone(),
    };
    let id = leak.id.as_uuid();
    let mut found = Explanation::new(ExplainedKind::Leak, id, name, state, since);
    match (state, leak.finding_kind().is_some_and(|kind| kind.is_removable())) {
        ("resolved", _) => "nothing: it is over".clone_into(&mut found.next),
        ("being removed", _) => {
            found.waiting_for = Some("its object to be gone, proven by its absence".to_owned());
            "the control plane that serves its cluster removes the object, and retries until it is gone"
                .clone_into(&mut found.next);
        }
        (_, removable) => {
            let by_hand = removable || leak.is_abandoned() || leak.is_of_tenant();
            let whom = if by_hand { "a person" } else { "the resource loop" };
            found.waiting_for = Some(format!("{whom}: {}", leak.remedy()));
            found.next = match next_observation {
                Some(at) => format!("the next scan is at {at}"),
                None if leak.is_abandoned() || leak.is_of_tenant() => {
                    "nothing by itself".to_owned()
                }
                None => "the first scan that no longer finds the object resolves it".to_owned(),
            };
            found.next_check_at = next_observation;
        }
    }
    found.facts.insert("kind", json!(leak.kind));
    found.facts.insert("cluster", json!(leak.cluster));
    found.facts.insert("uid", json!(leak.uid));
    found.facts.insert("found_at", json!(leak.found_at));
    found.facts.insert("last_seen_at", json!(leak.last_seen_at));
    if let Some(removal) = &leak.removal {
        found.facts.insert("removal_requested_by", json!(removal.by));
        found.facts.insert("removal_reason", json!(removal.reason));
    }
    if let Some(resolution) = leak.resolved.as_ref().and_then(|end| end.resolution.as_ref()) {
        found.facts.insert("resolution", json!(resolution));
    }
    found.observed = Some(leak.evidence.clone());
    found.resource_id = attempt.map(|line| line.resource_id);
    found.parts =
        attempt.map(|line| part(line, "whose object it is".to_owned())).into_iter().collect();
    found
}
