//! Performs the operations of a schedule and updates the model with what was
//! accepted.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Value, json};
use slipway_testkit::control_plane::signal_agent;
use slipway_testkit::process::{Process, Signal};

use super::agents;
use super::model::{Desired, Filling, Unsure};
use super::options::Options;
use super::plane::State;
use super::run::Soak;
use super::schedule::{Hurt, Line, Operation, Spoil};
use super::world::nap;

pub(super) const RESOURCES: &str = "/api/v1/resources";

/// Time beyond the lease: the poll of the other control plane (250 ms), loading
/// and observing the batch, and starting an agent process, on two busy cores.
const TAKE_OVER_SLACK: Duration = Duration::from_secs(4);

/// Longer than the longest fault plus a start.
const BOTH_UP_LIMIT: Duration = Duration::from_secs(12);

/// The database completes a commit that was sent before the kill within this time.
const COMMIT_UNDER_WAY: Duration = Duration::from_millis(200);

/// A request whose answer nobody reads.
#[derive(Debug)]
struct Request {
    method: &'static str,
    path: String,
    body: Option<Value>,
}

/// The outcome of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    Yes,
    /// There was no target for it.
    Skipped,
    /// The product refused it, correctly.
    Refused,
}

impl Soak {
    pub(super) fn perform(&mut self, operation: Operation) -> anyhow::Result<Done> {
        use Operation as O;
        match operation {
            O::Declare { slot, busy_seconds } => self.declare(slot, busy_seconds),
            O::DeclareAgain { slot } => self.declare_again(slot),
            O::Delete { slot } => self.delete(slot).map(|(done, _)| done),
            O::DeleteTwice { slot } => self.delete_twice(slot),
            O::ForceDrain { slot } => self.force_drain(slot),
            O::FreezeAgent { slot, frozen } => self.freeze_agent(slot, frozen),
            O::KillAgent { slot } => self.kill_agent(slot),
            O::RemoveDirectory { slot } => self.remove_directory(slot),
            O::FailNode { slot } => self.fail_node(slot),
            O::Retry { slot } => self.retry(slot),
            O::SpoilLine { line, how, time } => Ok(self.spoil_line(line, how, time)),
            O::CrashDatabase { down } => self.crash_database(down),
            O::HurtPlane { plane, hurt } => self.hurt_plane(plane, hurt),
            O::DeclareUnanswered { slot, plane, after, down } => {
                let body = self.declaration(slot, 0);
                let request =
                    Request { method: "POST", path: RESOURCES.to_owned(), body: Some(body) };
                self.unanswered(slot, plane, &request, Unsure::Declared, after, down)
            }
            O::DeleteUnanswered { slot, plane, after, down } => {
                self.resolve(slot)?;
                let Some(filling) = &self.slots[slot].current else { return Ok(Done::Skipped) };
                let path = format!("{RESOURCES}/{}?reason=soak", filling.resource);
                let request = Request { method: "DELETE", path, body: None };
                self.unanswered(slot, plane, &request, Unsure::Deleted, after, down)
            }
            O::Relabel { slot, value } => self.relabel(slot, value),
            O::Freeze => self.freeze(),
            O::Unfreeze => self.unfreeze(),
            O::Withdraw { project } => self.withdraw(project),
            O::Place { project } => self.place_project(project),
            O::TakeOver { slot, plane, hurt } => self.take_over(slot, plane, hurt),
            O::Wait => Ok(Done::Yes),
            O::Converge => self.converge().map(|()| Done::Yes),
        }
    }

    fn declare(&mut self, slot: usize, busy_seconds: u64) -> anyhow::Result<Done> {
        let plane = self.world.any_up()?;
        self.declare_at(plane, slot, busy_seconds)
    }

    fn declare_at(&mut self, plane: usize, slot: usize, busy: u64) -> anyhow::Result<Done> {
        self.resolve(slot)?;
        let body = self.declaration(slot, busy);
        let answer = self.world.call_at(plane, "POST", RESOURCES, Some(&body))?;
        let wanted = self.slots[slot].is_wanted();
        self.note(slot, &format!("declare at plane {plane}: {}", answer.status));
        match (answer.status, answer.body["code"].as_str()) {
            (202, _) => {
                if wanted {
                    self.violation(Some(slot), "a second resource has the same handle");
                }
                let filling = Filling::of(&answer.body).context("a declaration without ids")?;
                self.note(slot, &format!("  is {} {}", filling.resource, filling.xr_name));
                self.slots[slot].fill(filling);
                self.tally.resources += 1;
                Ok(Done::Yes)
            }
            (409, Some("handle_taken")) => {
                if self.slots[slot].current.is_none() {
                    self.violation(Some(slot), "the handle of a Deleted resource is not free");
                }
                Ok(Done::Refused)
            }
            // Its project is withdrawn, or its namespace goes.
            (409, Some("namespace_not_ready")) | (422, Some("assignment_not_found"))
                if self.is_withdrawn(slot) =>
            {
                Ok(Done::Refused)
            }
            _ => {
                self.unexpected(slot, "declare", answer.status, &answer.body);
                Ok(Done::Refused)
            }
        }
    }

    fn declare_again(&mut self, slot: usize) -> anyhow::Result<Done> {
        self.resolve(slot)?;
        if !self.slots[slot].is_wanted() {
            return Ok(Done::Skipped);
        }
        // If it is accepted, `declare` reports the violation.
        self.declare(slot, 0)
    }

    /// Also returns the deletion that it led to.
    fn delete(&mut self, slot: usize) -> anyhow::Result<(Done, Value)> {
        self.resolve(slot)?;
        let Some(filling) = &self.slots[slot].current else {
            return Ok((Done::Skipped, Value::Null));
        };
        let path = format!("{RESOURCES}/{}?reason=soak", filling.resource);
        let answer = self.world.call("DELETE", &path, None)?;
        self.note(slot, &format!("delete: {}", answer.status));
        if answer.status != 202 {
            self.unexpected(slot, "delete", answer.status, &answer.body);
            return Ok((Done::Refused, Value::Null));
        }
        if let Some(filling) = &mut self.slots[slot].current {
            filling.wanted = Desired::Deleted;
        }
        Ok((Done::Yes, answer.body["id"].clone()))
    }

    fn delete_twice(&mut self, slot: usize) -> anyhow::Result<Done> {
        let (done, first) = self.delete(slot)?;
        if done == Done::Yes {
            let (_, second) = self.delete(slot)?;
            if first != second {
                let text = format!("deleting twice led to two deletions, {first} and {second}");
                self.violation(Some(slot), &text);
            }
        }
        Ok(done)
    }

    pub(super) fn force_drain(&mut self, slot: usize) -> anyhow::Result<Done> {
        self.resolve(slot)?;
        let Some(filling) = &self.slots[slot].current else { return Ok(Done::Skipped) };
        let path = format!("{RESOURCES}/{}/force-drain", filling.resource);
        let answer = self.world.call("POST", &path, Some(&json!({ "reason": "soak" })))?;
        self.note(slot, &format!("force-drain: {}", answer.status));
        match (answer.status, answer.body["code"].as_str()) {
            (202, _) => Ok(Done::Yes),
            (409, Some("nothing_to_force")) => Ok(Done::Refused),
            _ => {
                self.unexpected(slot, "force-drain", answer.status, &answer.body);
                Ok(Done::Refused)
            }
        }
    }

    fn freeze_agent(&mut self, slot: usize, frozen: u64) -> anyhow::Result<Done> {
        let Some(agent) = self.agent(slot)? else { return Ok(Done::Skipped) };
        self.world.freeze(agent.pid, frozen)?;
        self.note(slot, &format!("SIGSTOP of agent {} for {frozen} ms", agent.pid));
        Ok(Done::Yes)
    }

    fn kill_agent(&mut self, slot: usize) -> anyhow::Result<Done> {
        let Some(agent) = self.agent(slot)? else { return Ok(Done::Skipped) };
        signal_agent(agent.pid, Signal::Kill)?;
        self.note(slot, &format!("SIGKILL of agent {}", agent.pid));
        Ok(Done::Yes)
    }

    fn remove_directory(&mut self, slot: usize) -> anyhow::Result<Done> {
        self.resolve(slot)?;
        let Some(filling) = &mut self.slots[slot].current else { return Ok(Done::Skipped) };
        if !agents::remove_by_hand(&self.world.root(), &filling.xr_name)? {
            return Ok(Done::Skipped);
        }
        filling.agent_hurt = true;
        self.note(slot, "removed the node directory");
        Ok(Done::Yes)
    }

    fn fail_node(&mut self, slot: usize) -> anyhow::Result<Done> {
        self.resolve(slot)?;
        let Some(filling) = &mut self.slots[slot].current else { return Ok(Done::Skipped) };
        let marked = match &self.world.cluster {
            Some(cluster) => cluster.mark_failed(&filling.xr_name)?,
            None => agents::mark_failed(&self.world.root(), &filling.xr_name)?,
        };
        if !marked {
            return Ok(Done::Skipped);
        }
        filling.failed = true;
        self.note(slot, "marked the node as failed");
        Ok(Done::Yes)
    }

    pub(super) fn retry(&mut self, slot: usize) -> anyhow::Result<Done> {
        self.resolve(slot)?;
        let Some(filling) = &self.slots[slot].current else { return Ok(Done::Skipped) };
        let path = format!("{RESOURCES}/{}/retry", filling.resource);
        let answer = self.world.call("POST", &path, Some(&json!({ "reason": "soak" })))?;
        let failed = filling.failed;
        self.note(slot, &format!("retry: {}", answer.status));
        match (answer.status, answer.body["code"].as_str()) {
            (202, _) => {
                if !failed {
                    self.violation(Some(slot), "what nobody failed could be retried");
                }
                self.tally.count("retried");
                Ok(Done::Yes)
            }
            (409, Some("nothing_to_retry")) => Ok(Done::Refused),
            _ => {
                self.unexpected(slot, "retry", answer.status, &answer.body);
                Ok(Done::Refused)
            }
        }
    }

    /// Switches to the attempt that a retry made.
    pub(super) fn follow(&mut self, slot: usize, resource: &Value) -> Option<Filling> {
        let filling = self.slots[slot].current.as_mut()?;
        let before = filling.follow(resource)?;
        let (followed, xr_name) = (filling.clone(), filling.xr_name.clone());
        self.slots[slot].retired.push(before);
        self.note(slot, &format!("followed by {xr_name}"));
        Some(followed)
    }

    fn spoil_line(&mut self, line: Line, how: Spoil, time: u64) -> Done {
        if !self.world.spoil(line, how, time) {
            return Done::Skipped;
        }
        self.note_all(&format!("{line:?}: {how:?} for {time} ms"));
        Done::Yes
    }

    fn crash_database(&mut self, down: u64) -> anyhow::Result<Done> {
        if !self.world.crash_database(down)? {
            return Ok(Done::Skipped);
        }
        self.note_all(&format!("the database crashed, down for {down} ms"));
        Ok(Done::Yes)
    }

    /// The agent of a slot, which is about to get a fault.
    fn agent(&mut self, slot: usize) -> anyhow::Result<Option<Process>> {
        self.resolve(slot)?;
        let Some(filling) = &mut self.slots[slot].current else { return Ok(None) };
        let mut living = agents::living(&self.world.root())?;
        let agent = living.remove(&filling.xr_name).and_then(|mut agents| agents.pop());
        filling.agent_hurt |= agent.is_some();
        Ok(agent)
    }

    fn hurt_plane(&mut self, plane: usize, hurt: Hurt) -> anyhow::Result<Done> {
        if !self.world.hurt(plane, hurt)? {
            return Ok(Done::Skipped);
        }
        self.note_all(&format!("plane {plane}: {hurt:?}"));
        Ok(Done::Yes)
    }

    fn unanswered(
        &mut self,
        slot: usize,
        plane: usize,
        request: &Request,
        unsure: Unsure,
        after: u64,
        down: u64,
    ) -> anyhow::Result<Done> {
        self.resolve(slot)?;
        if self.world.planes[plane].state != State::Up {
            return Ok(Done::Skipped);
        }
        let Request { method, path, body } = request;
        let unread = self.world.planes[plane].client().send(method, path, body.as_ref())?;
        nap(Duration::from_millis(after));
        self.world.hurt(plane, Hurt::Kill { down })?;
        drop(unread);
        nap(COMMIT_UNDER_WAY);
        self.slots[slot].unsure = Some(unsure);
        self.note(slot, &format!("{unsure:?} unanswered, plane {plane} killed after {after} ms"));
        self.note_all(&format!("plane {plane} killed, down for {down} ms"));
        Ok(Done::Yes)
    }

    /// Finds out the outcome of a request whose answer was lost.
    pub(super) fn resolve(&mut self, slot: usize) -> anyhow::Result<()> {
        if let Some(filling) = self.slots[slot].current.as_ref().filter(|filling| filling.failed) {
            let resource = self.world.get(&format!("{RESOURCES}/{}", filling.resource))?;
            self.follow(slot, &resource);
        }
        let Some(unsure) = self.slots[slot].unsure.take() else { return Ok(()) };
        let known = self.slots[slot].current.as_ref().map(|filling| filling.resource.clone());
        match (unsure, known) {
            (Unsure::Declared, known) => {
                let handle = &self.slots[slot].handle;
                let found = self.world.get(&format!("{RESOURCES}?handle={handle}"))?;
                let found = found.as_array().map(Vec::as_slice).unwrap_or_default();
                let new = found.iter().find(|resource| resource["id"].as_str() != known.as_deref());
                let new = new.and_then(Filling::of);
                self.note(slot, &format!("the declaration was accepted: {}", new.is_some()));
                if let Some(filling) = new {
                    if self.slots[slot].is_wanted() {
                        self.violation(Some(slot), "a second resource has the same handle");
                    }
                    self.note(slot, &format!("  is {} {}", filling.resource, filling.xr_name));
                    self.slots[slot].fill(filling);
                    self.tally.resources += 1;
                }
            }
            (Unsure::Deleted, Some(id)) => {
                let resource = self.world.get(&format!("{RESOURCES}/{id}"))?;
                let accepted = !resource["deletion_id"].is_null();
                self.note(slot, &format!("the deletion was accepted: {accepted}"));
                if let Some(filling) = self.slots[slot].current.as_mut().filter(|_| accepted) {
                    filling.wanted = Desired::Deleted;
                }
            }
            (Unsure::Deleted, None) => {}
        }
        Ok(())
    }

    /// *Expected flow:* the resource is declared at one control plane, which
    /// gets a fault at once → the other one moves it out of Pending, at the
    /// latest when the lease of the first has expired.
    fn take_over(&mut self, slot: usize, plane: usize, hurt: Hurt) -> anyhow::Result<Done> {
        // Wait for both: in a mixed schedule one is usually down, and there
        // would hardly ever be a takeover.
        if !self.world.wait_for_all(BOTH_UP_LIMIT)? || self.declare_at(plane, slot, 0)? != Done::Yes
        {
            return Ok(Done::Skipped);
        }
        let since = Instant::now();
        self.world.hurt(plane, hurt)?;
        self.note_all(&format!("plane {plane}: {hurt:?}, to be taken over"));
        let Some(filling) = &self.slots[slot].current else { return Ok(Done::Skipped) };
        let path = format!("{RESOURCES}/{}", filling.resource);
        let other = (plane + 1) % self.world.planes.len();
        let limit = Options::LEASE + TAKE_OVER_SLACK;
        loop {
            let answer = self.world.call_at(other, "GET", &path, None)?;
            let took = since.elapsed();
            let phase = answer.body["phase"].as_str().unwrap_or_default();
            if answer.status == 200 && phase != "Pending" {
                self.tally.longest_takeover = self.tally.longest_takeover.max(took);
                self.note(slot, &format!("{phase} after {} ms", took.as_millis()));
                return Ok(Done::Yes);
            }
            if took > limit {
                let text = format!("not taken over within {limit:?}: {}", answer.body);
                self.violation(Some(slot), &text);
                return Ok(Done::Yes);
            }
            nap(Duration::from_millis(20));
        }
    }

    fn declaration(&self, slot: usize, busy_seconds: u64) -> Value {
        let handle = &self.slots[slot].handle;
        match &self.world.cluster {
            Some(cluster) => cluster.declaration(slot, handle, busy_seconds),
            None => json!({
                "handle": handle,
                "blueprint": "local-node",
                "parameters": { "busy_seconds": busy_seconds },
            }),
        }
    }

    fn is_withdrawn(&self, slot: usize) -> bool {
        self.world.cluster.as_ref().is_some_and(|cluster| cluster.is_withdrawn(slot))
    }

    pub(super) fn unexpected(&mut self, slot: usize, what: &str, status: u16, body: &Value) {
        self.violation(Some(slot), &format!("{what} was answered {status}: {body}"));
    }
}
