//! Polls the resources. Transitions are read from the history, so that none is
//! missed between two polls.

use std::time::Duration;

use slipway_core::broker::phase::Phase;
use slipway_core::time::Timestamp;
use slipway_wire::broker::{DeclareResource, Resource};
use slipway_wire::deletion::Deletion;
use slipway_wire::operations::Explanation;
use tokio::time::sleep;

use super::agents::Agents;
use super::screen::Screen;
use crate::client::Client;
use crate::error::Error;

const PACE: Duration = Duration::from_millis(100);

/// One of the resources.
#[derive(Debug)]
pub(super) struct Slot {
    /// Its handle, which is its name in the demo.
    pub(super) name: &'static str,
    pub(super) id: String,
    pub(super) attempt_id: String,
    pub(super) xr_name: String,
    pub(super) seen: Explanation,
    /// How many entries of the history were shown.
    shown: usize,
    blocker_shown: bool,
    pub(super) drain: DrainWatch,
}

/// Whether the process existed while its node was still registered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct DrainWatch {
    pub(super) looks: usize,
    pub(super) polls_without_process: usize,
}

impl Slot {
    pub(super) fn phase(&self) -> Option<Phase> {
        Phase::parse(&self.seen.state)
    }

    pub(super) fn is(&self, phase: Phase) -> bool {
        self.phase() == Some(phase)
    }

    pub(super) fn was(&self, phase: Phase) -> bool {
        self.seen.history.iter().any(|entry| entry.to == phase.as_str())
    }
}

/// The watched resources.
#[derive(Debug)]
pub(super) struct Watch {
    client: Client,
    agents: Agents,
    pub(super) slots: Vec<Slot>,
    /// When the first resource was declared, by the database's clock, and how
    /// long after the start of the demo that was.
    origin: Option<(Timestamp, f64)>,
}

impl Watch {
    pub(super) fn new(client: Client, agents: Agents) -> Self {
        Self { client, agents, slots: Vec::new(), origin: None }
    }

    /// Declares a resource and watches it.
    pub(super) async fn declare(
        &mut self,
        name: &'static str,
        wanted: &DeclareResource,
        screen: &mut Screen<'_>,
    ) -> Result<(), Error> {
        let resource: Resource = self.client.post(&["resources"], wanted).await?;
        if self.origin.is_none()
            && let Ok(created) = resource.created_at.parse()
        {
            self.origin = Some((created, screen.begun().elapsed().as_secs_f64()));
        }
        let seen = self.client.get(&["explain", "resource", &resource.id]).await?;
        self.slots.push(Slot {
            name,
            id: resource.id.clone(),
            attempt_id: resource.attempt.id.clone(),
            xr_name: resource.attempt.xr_name.clone(),
            seen,
            shown: 0,
            blocker_shown: false,
            drain: DrainWatch::default(),
        });
        Ok(())
    }

    pub(super) async fn delete(&self, id: &str, reason: &str) -> Result<Deletion, Error> {
        self.client.delete(&["resources", id], &[("reason", reason.to_owned())]).await
    }

    /// Stops watching a resource.
    pub(super) fn forget(&mut self, name: &str) {
        self.slots.retain(|slot| slot.name != name);
    }

    pub(super) fn all_are(&self, phase: Phase) -> bool {
        self.slots.iter().all(|slot| slot.is(phase))
    }

    pub(super) fn slot(&self, name: &str) -> Result<&Slot, Error> {
        self.slots
            .iter()
            .find(|slot| slot.name == name)
            .ok_or_else(|| Error::Demo(format!("{name} is not part of the story")))
    }

    /// Polls until `done`. A resource in Failed ends the demo at once.
    pub(super) async fn until(
        &mut self,
        screen: &mut Screen<'_>,
        done: impl Fn(&Self) -> bool,
    ) -> Result<(), Error> {
        loop {
            self.observe(screen).await?;
            if done(self) {
                return Ok(());
            }
            if let Some(failed) = self.slots.iter().find(|slot| slot.is(Phase::Failed)) {
                let why = failed.seen.history.last().map_or("", |entry| entry.why.as_str());
                return Err(Error::Demo(format!("{} ended in Failed: {why}", failed.name)));
            }
            sleep(PACE).await;
        }
    }

    async fn observe(&mut self, screen: &mut Screen<'_>) -> Result<(), Error> {
        // Processes before the registry: a node that is registered in the later
        // read was registered in the earlier one, so its process must exist.
        let agents = self.agents.all();
        let origin = self.origin;
        for slot in &mut self.slots {
            slot.seen = self.client.get(&["explain", "resource", &slot.id]).await?;
            let registered = slot.seen.node.as_ref().is_some_and(|node| node.registered);
            if slot.is(Phase::Deregistering) && registered {
                slot.drain.looks += 1;
                if !agents.iter().any(|agent| agent.belongs_to(&slot.xr_name)) {
                    slot.drain.polls_without_process += 1;
                }
            }
            for entry in slot.seen.history.iter().skip(slot.shown) {
                let from = entry.from.as_deref().map(|from| format!("{from} → "));
                let what = format!("{}{}", from.unwrap_or_default(), entry.to);
                screen.event(seconds(origin, &entry.at), slot.name, &what);
            }
            slot.shown = slot.seen.history.len();
            let blocker = slot.seen.blockers.first();
            if let Some(blocker) = blocker.filter(|_| !slot.blocker_shown) {
                let what = format!("blocked: {} ({})", blocker.code, blocker.message);
                screen.event(seconds(origin, &blocker.since), slot.name, &what);
            }
            slot.blocker_shown = blocker.is_some();
        }
        Ok(())
    }
}

/// A time of the database's clock as seconds of the timeline.
fn seconds(origin: Option<(Timestamp, f64)>, at: &str) -> f64 {
    match (origin, at.parse::<Timestamp>()) {
        (Some((created, offset)), Ok(at)) => offset + at.since(created).as_secs_f64(),
        _ => 0.0,
    }
}
