//! The facts that the records must show, as pure functions: documents in, facts
//! out. The control plane alone made these documents.

use std::time::Duration;

use slipway_core::broker::event::{DELETED, DELETING, READY, REQUESTED};
use slipway_core::broker::phase::Phase;
use slipway_core::event::EventType;
use slipway_core::time::Timestamp;
use slipway_wire::broker::HistoryEntry;
use slipway_wire::deletion::Deletion;
use slipway_wire::events::Event;
use slipway_wire::nodes::Node;
use slipway_wire::operations::Explanation;

use super::screen::Fact;

/// The events of an attempt that ends well.
pub(super) const ANNOUNCED: [EventType; 4] = [REQUESTED, READY, DELETING, DELETED];

/// Each of the four events once, in order, and no other.
pub(super) fn events(name: &str, attempt_id: &str, events: &[Event]) -> Fact {
    let seen: Vec<_> = events
        .iter()
        .filter(|event| event.aggregate_id == attempt_id)
        .map(|event| event.event_type.as_str())
        .collect();
    Fact::equal(
        format!("{name} announced each step exactly once"),
        ANNOUNCED.map(EventType::as_str).join(", "),
        seen.join(", "),
    )
}

/// Positions have no gap and no duplicate.
pub(super) fn dense(events: &[Event]) -> Fact {
    let gap = events.windows(2).find(|pair| pair[1].position != pair[0].position + 1);
    let seen = match gap {
        Some(pair) => format!("{} after {}", pair[1].position, pair[0].position),
        None => "no gap".to_owned(),
    };
    Fact::equal("the positions of all events are dense", "no gap", seen)
}

/// The resource has one node, deregistered in the given way.
pub(super) fn deregistered(name: &str, resource_id: &str, how: &str, nodes: &[Node]) -> Fact {
    let seen: Vec<_> = nodes
        .iter()
        .filter(|node| node.resource_id == resource_id)
        .map(|node| node.deregistered_how.as_deref().unwrap_or("still registered"))
        .collect();
    Fact::equal(format!("the node of {name} was deregistered: {how}"), how, seen.join(", "))
}

/// The resource has one deletion, and it is done.
pub(super) fn deletion_done(name: &str, resource_id: &str, deletions: &[Deletion]) -> Fact {
    let seen: Vec<_> = deletions
        .iter()
        .filter(|deletion| deletion.target_id == resource_id)
        .map(|deletion| match &deletion.done_at {
            Some(_) => deletion.state.clone(),
            None => format!("{} without a time", deletion.state),
        })
        .collect();
    Fact::equal(format!("the deletion of {name} is done"), "done", seen.join(", "))
}

/// The attempt went through its phases in order.
pub(super) fn walked(name: &str, seen: &Explanation) -> Fact {
    let expected = [
        Phase::Pending,
        Phase::Provisioning,
        Phase::Enrolling,
        Phase::Ready,
        Phase::Deregistering,
        Phase::Deprovisioning,
        Phase::Deleted,
    ];
    // A late tick may find two steps done at once, so a phase may be skipped;
    // none may repeat or be out of order.
    let mut rest = expected.iter();
    let walked: Vec<_> = seen.history.iter().map(|entry| entry.to.as_str()).collect();
    let in_order = walked.iter().all(|step| rest.any(|phase| phase.as_str() == *step));
    let ends = walked.last() == Some(&Phase::Deleted.as_str());
    Fact::new(
        format!("{name} walked its phases in order, to the end"),
        in_order && ends,
        expected.map(Phase::as_str).join(" → "),
        walked.join(" → "),
    )
}

/// The node had left when its composite was deleted. Both times are the
/// database's.
pub(super) fn left_first(name: &str, seen: &Explanation) -> Fact {
    let time = |text: &str| text.parse::<Timestamp>().ok();
    let left = seen.node.as_ref().and_then(|node| time(node.deregistered_at.as_deref()?));
    let begins = |entry: &&HistoryEntry| entry.to == Phase::Deprovisioning.as_str();
    let deleted = seen.history.iter().find(begins).and_then(|entry| time(&entry.at));
    let holds = matches!((left, deleted), (Some(left), Some(deleted)) if left <= deleted);
    let shown = |at: Option<Timestamp>| at.map_or("never".to_owned(), |at| at.to_string());
    Fact::new(
        format!("the node of {name} left before its composite was deleted"),
        holds,
        format!("not later than {}", shown(deleted)),
        shown(left),
    )
}

/// The node finished its work first: it left no earlier than its work took.
pub(super) fn finished_its_work(name: &str, node: Option<&Node>, work: Duration) -> Fact {
    let time = |text: Option<&str>| text.and_then(|text| text.parse::<Timestamp>().ok());
    let lived = node.and_then(|node| {
        let begun = time(Some(&node.registered_at))?;
        Some(time(node.deregistered_at.as_deref())?.since(begun))
    });
    let fact = format!("{name} was drained only after its {} s of work", work.as_secs());
    match lived {
        Some(lived) => {
            Fact::new(fact, lived >= work, format!("at least {work:?}"), format!("{lived:?}"))
        }
        None => Fact::new(fact, false, format!("at least {work:?}"), "no node that left"),
    }
}

/// How much work a node has left. Both ends are the database's time: the latest
/// that the records show is the last heartbeat, a fraction of a second ago.
pub(super) fn work_left(seen: &Explanation, work: Duration) -> Option<Duration> {
    let node = seen.node.as_ref()?;
    let time = |text: &str| text.parse::<Timestamp>().ok();
    let newest = node.last_heartbeat_at.as_deref().and_then(time).max(time(&seen.since));
    Some(work.saturating_sub(newest?.since(time(&node.registered_at)?)))
}

/// The contents of the blocker of a node that does not drain.
pub(super) fn blocker(
    name: &str,
    resource_id: &str,
    seen: &Explanation,
    limit: Duration,
) -> Vec<Fact> {
    let Some(blocker) = seen.blockers.iter().find(|blocker| blocker.code == "node_not_draining")
    else {
        let codes: Vec<_> = seen.blockers.iter().map(|blocker| blocker.code.as_str()).collect();
        return vec![Fact::equal(
            format!("{name} is blocked"),
            "node_not_draining",
            codes.join(", "),
        )];
    };
    let text = |key: &str| blocker.evidence[key].as_str().unwrap_or("nothing").to_owned();
    let node = seen.node.as_ref().map_or("no node", |node| node.id.as_str());
    let since: Option<Timestamp> = seen.since.parse().ok();
    let deadline = since.map_or("no time".to_owned(), |since| since.plus(limit).to_string());
    let commands: Vec<_> = blocker.remedies.iter().filter_map(|r| r.command.as_deref()).collect();
    let wanted = format!("slipway resource force-drain {resource_id} --yes ");
    vec![
        Fact::equal(format!("the blocker of {name} names the node"), node, text("node_id")),
        Fact::equal(
            format!("the blocker of {name} names the deadline"),
            deadline,
            text("deadline"),
        ),
        Fact::new(
            format!("the blocker of {name} says how to go on"),
            commands.iter().any(|command| command.starts_with(&wanted)),
            wanted,
            commands.join(", "),
        ),
    ]
}

#[cfg(test)]
mod tests;
