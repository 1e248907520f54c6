//! In which order things happened, as pure functions: documents in, facts out. All times are
//! those of the one database.

use slipway_core::broker::phase::Phase;
use slipway_core::time::Timestamp;
use slipway_wire::broker::{HistoryEntry, ResourceDetail};
use slipway_wire::deletion::Deletion;

use crate::demo::Fact;

/// A server with its machine, as the API shows it.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) role: String,
    pub(super) detail: ResourceDetail,
}

/// A server that was taken down, with its deletion.
#[derive(Debug)]
pub(super) struct Removed {
    pub(super) role: String,
    pub(super) deletion: Deletion,
}

/// No server of the later role was begun before every one of the earlier role was Ready.
pub(super) fn came_after(earlier: &str, later: &str, machines: &[Machine]) -> Fact {
    let times = |role: &str, is_it: fn(&HistoryEntry) -> bool| {
        let of_role = machines.iter().filter(|one| one.role == role);
        let times = of_role.map(|one| {
            let mut entries = one.detail.history.iter().filter(|entry| is_it(entry));
            // Newest first.
            entries.next_back().and_then(|entry| entry.at.parse::<Timestamp>().ok())
        });
        times.collect::<Option<Vec<_>>>().unwrap_or_default()
    };
    let ready = times(earlier, |entry| entry.to == Phase::Ready.as_str());
    let begun = times(later, |entry| entry.from.as_deref() == Some(Phase::Pending.as_str()));
    let fact = format!("no {later} left Pending before every {earlier} was Ready");
    not_before(fact, ready.into_iter().max(), begun.into_iter().min())
}

/// No server of the later role began to go before every one of the earlier role was gone.
pub(super) fn went_after(earlier: &str, later: &str, removed: &[Removed]) -> Fact {
    let time = |text: Option<&str>| text.and_then(|text| text.parse::<Timestamp>().ok());
    let gone = removed.iter().filter(|one| one.role == earlier);
    let gone = gone.map(|one| time(one.deletion.done_at.as_deref()));
    let gone = gone.collect::<Option<Vec<_>>>().unwrap_or_default();
    let begun = removed.iter().filter(|one| one.role == later);
    let begun = begun.map(|one| time(Some(&one.deletion.requested_at)));
    let begun = begun.collect::<Option<Vec<_>>>().unwrap_or_default();
    let fact = format!("no {later} began to go before every {earlier} was gone");
    not_before(fact, gone.into_iter().max(), begun.into_iter().min())
}

/// A time that is not known is no proof.
fn not_before(fact: String, earlier: Option<Timestamp>, later: Option<Timestamp>) -> Fact {
    let holds = matches!((earlier, later), (Some(earlier), Some(later)) if earlier <= later);
    let shown = |at: Option<Timestamp>| at.map_or("never".to_owned(), |at| at.to_string());
    Fact::new(fact, holds, format!("not before {}", shown(earlier)), shown(later))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn removed(role: &str, requested: u32, done: Option<u32>) -> Removed {
        let at = |minute: u32| format!("2026-01-31T12:{minute:02}:00.000000Z");
        let deletion = serde_json::json!({
            "id": "1", "kind": "resource", "target_id": "2", "state": "done",
            "requested_by": "key:admin", "reason": "demo", "requested_at": at(requested),
            "done_at": done.map(at), "restorable_until": null,
        });
        Removed { role: role.to_owned(), deletion: serde_json::from_value(deletion).unwrap() }
    }

    #[test]
    fn the_last_one_gone_counts_and_the_first_one_asked_for() {
        let workers = || vec![removed("Worker", 1, Some(3)), removed("Worker", 1, Some(5))];
        let with = |requested| {
            let mut all = workers();
            all.push(removed("LoadBalancer", requested, Some(9)));
            went_after("Worker", "LoadBalancer", &all).holds()
        };
        assert!(with(5) && with(6));
        assert!(!with(4), "one of the workers was still there");
        assert!(!went_after("Worker", "LoadBalancer", &workers()).holds(), "nothing to compare");
        let open = [removed("Worker", 1, None), removed("LoadBalancer", 5, Some(6))];
        assert!(!went_after("Worker", "LoadBalancer", &open).holds(), "it is not gone");
    }
}
