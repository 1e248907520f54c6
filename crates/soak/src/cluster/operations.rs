//! The operations that only a soak on a cluster has.

use std::time::{Duration, Instant};

use serde_json::json;

use super::blueprint::LABEL;
use super::setup::{NAME, project};
use crate::perform::{Done, RESOURCES};
use crate::run::Soak;

/// A namespace is withdrawn after the deletion verification of the resources
/// that it had, one lease after their end, and goes after all that is in it.
const WITHDRAWN_LIMIT: Duration = Duration::from_secs(180);
const POLL: Duration = Duration::from_millis(150);

impl Soak {
    /// Changes a tag of the composite.
    pub(crate) fn relabel(&mut self, slot: usize, value: u64) -> anyhow::Result<Done> {
        self.resolve(slot)?;
        let Some(filling) = &self.slots[slot].current else { return Ok(Done::Skipped) };
        let path = format!("{RESOURCES}/{}", filling.resource);
        let body = json!({ "labels": { LABEL: value.to_string() } });
        let answer = self.world.call("PATCH", &path, Some(&body))?;
        self.note(slot, &format!("relabel: {}", answer.status));
        match answer.status {
            200 => Ok(Done::Yes),
            // It is being deleted, or is gone.
            404 | 409 => Ok(Done::Refused),
            status => {
                self.unexpected(slot, "relabel", status, &answer.body);
                Ok(Done::Refused)
            }
        }
    }

    /// Withdraws a project from the cluster; refused while it has resources.
    pub(crate) fn withdraw(&mut self, number: usize) -> anyhow::Result<Done> {
        let path = format!("/api/v1/projects/{}/cluster", project(number));
        let answer = self.world.call("DELETE", &path, None)?;
        match (answer.status, answer.body["code"].as_str()) {
            (202 | 204, _) => {
                self.note_all(&format!("withdraw {}: {}", project(number), answer.status));
                self.cluster_mut()?.withdrawn[number] = true;
                Ok(Done::Yes)
            }
            (409, Some("cluster_assignment_immutable")) => Ok(Done::Refused),
            (status, _) => {
                let text = format!("withdraw was answered {status}: {}", answer.body);
                self.violation(None, &text);
                Ok(Done::Refused)
            }
        }
    }

    /// Places a project on the cluster again; refused while its namespace goes.
    pub(crate) fn place_project(&mut self, number: usize) -> anyhow::Result<Done> {
        if !self.cluster_mut()?.withdrawn[number] {
            return Ok(Done::Skipped);
        }
        let path = format!("/api/v1/projects/{}/cluster", project(number));
        let answer = self.world.call("PUT", &path, Some(&json!({ "cluster": NAME })))?;
        match answer.status {
            200..300 => {
                self.note_all(&format!("placed {} again", project(number)));
                self.cluster_mut()?.withdrawn[number] = false;
                Ok(Done::Yes)
            }
            409 => Ok(Done::Refused),
            status => {
                let text = format!("placing was answered {status}: {}", answer.body);
                self.violation(None, &text);
                Ok(Done::Refused)
            }
        }
    }

    /// Places every project again. Returns how many could not be placed yet.
    pub(crate) fn place_all(&mut self) -> anyhow::Result<usize> {
        let mut waiting = 0;
        for number in 0..self.world.projects() {
            waiting += usize::from(self.place_project(number)? == Done::Refused);
        }
        Ok(waiting)
    }

    /// Withdraws every project, after everything was deleted, and waits until
    /// nothing of ours is on the cluster.
    pub(crate) fn withdraw_all(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            for number in 0..self.world.projects() {
                if !self.cluster_mut()?.withdrawn[number] {
                    self.withdraw(number)?;
                }
            }
            let left = self.cluster_mut()?.objects()?;
            if left.is_empty() || !self.violations.is_empty() {
                return Ok(());
            }
            if begun.elapsed() > WITHDRAWN_LIMIT {
                let placed = self.world.get("/api/v1/cluster-assignments")?;
                let text =
                    format!("left on the cluster after {WITHDRAWN_LIMIT:?}: {left:?}: {placed}");
                self.violation(None, &text);
                return Ok(());
            }
            self.world.pass(POLL)?;
        }
    }
}
