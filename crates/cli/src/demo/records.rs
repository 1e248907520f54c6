//! Checks what the control plane recorded and announced, on either substrate.

use std::time::Duration;

use serde_json::{Value, json};
use slipway_core::broker::phase::Phase;
use slipway_wire::deletion::Deletion;
use slipway_wire::events::Event;
use slipway_wire::nodes::Node;
use tokio::time::{Instant, sleep};

use super::facts;
use super::screen::Screen;
use super::watch::{Slot, Watch};
use crate::client::{Client, Listing};
use crate::error::Error;

/// For what follows almost at once: an event that gets its position.
const CONVERGE_LIMIT: Duration = Duration::from_secs(5);
const PACE: Duration = Duration::from_millis(50);

/// The measured result of the demo.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    ready: usize,
    deleted: usize,
    forced: usize,
    /// Each with its composite and when its node left, so that they can be
    /// compared with other records, such as an API server's audit log.
    resources: Vec<Value>,
}

/// Checks the records of all watched resources; `ends` says how the node of
/// each was deregistered.
pub(super) async fn check(
    client: &Client,
    watch: &Watch,
    ends: &[(&'static str, &'static str)],
    screen: &mut Screen<'_>,
) -> Result<Outcome, Error> {
    let slots = &watch.slots;
    for slot in slots {
        screen.check(facts::walked(slot.name, &slot.seen));
    }
    let events = announced(client, slots).await?;
    for slot in slots {
        screen.check(facts::events(slot.name, &slot.attempt_id, &events));
    }
    screen.check(facts::dense(&events));
    let nodes = client.list::<Node>(&["nodes"], Listing::default()).await?.items;
    for (name, how) in ends {
        let slot = watch.slot(name)?;
        screen.check(facts::deregistered(name, &slot.id, how, &nodes));
    }
    let deletions = client.list::<Deletion>(&["deletions"], Listing::default()).await?.items;
    for slot in slots {
        screen.check(facts::deletion_done(slot.name, &slot.id, &deletions));
    }
    let node_of = |slot: &Slot| nodes.iter().find(|node| node.resource_id == slot.id);
    let is_forced = |node: &Node| node.deregistered_how.as_deref() == Some("forced");
    Ok(Outcome {
        ready: slots.iter().filter(|slot| slot.was(Phase::Ready)).count(),
        deleted: slots.iter().filter(|slot| slot.is(Phase::Deleted)).count(),
        forced: slots.iter().filter(|slot| node_of(slot).is_some_and(is_forced)).count(),
        resources: slots
            .iter()
            .map(|slot| {
                json!({
                    "name": slot.name,
                    "composite": slot.xr_name,
                    "deregistered_at": node_of(slot).and_then(|n| n.deregistered_at.as_deref()),
                })
            })
            .collect(),
    })
}

/// All events, once those of the demo have their positions.
async fn announced(client: &Client, slots: &[Slot]) -> Result<Vec<Event>, Error> {
    let expected = slots.len() * facts::ANNOUNCED.len();
    let begun = Instant::now();
    loop {
        let events = client.list::<Event>(&["events"], Listing::default()).await?.items;
        let ours = |event: &&Event| slots.iter().any(|slot| slot.attempt_id == event.aggregate_id);
        if events.iter().filter(ours).count() >= expected || begun.elapsed() > CONVERGE_LIMIT {
            return Ok(events);
        }
        sleep(PACE).await;
    }
}

/// The last line of the output, for programs.
pub(super) fn summary(
    outcome: &Outcome,
    facts: usize,
    duration: Duration,
    [substrate, database]: [&str; 2],
) -> Value {
    json!({
        "provisioned": outcome.resources.len(),
        "ready": outcome.ready,
        "deleted": outcome.deleted,
        "forced": outcome.forced,
        "resources": outcome.resources,
        "facts": facts,
        "duration_ms": u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        "substrate": substrate,
        "database": database,
    })
}
