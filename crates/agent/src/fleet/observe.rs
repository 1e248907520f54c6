//! What an agent finds out between changes: drift, some objects per idle pass, and the
//! health of what it deployed. Both are bounded, so that an idle agent asks its cluster
//! for little.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use slipway_core::time::Timestamp;
use slipway_wire::fleet::{
    DeploymentObject, DeploymentObjectHealthUpdate, HealthStatusUpdate, HealthSummary,
};
use tokio::time::Instant;

use super::backend::{Backend, Fault, Health, Stamp};
use super::inventory::{Event, Phase, Report};
use super::manifest;
use super::pass::{Agent, Stop};

/// How often the health of what is healthy is asked for.
const HEALTH_INTERVAL: Duration = Duration::from_secs(60);

/// The health of a stack that the control plane knows.
#[derive(Debug)]
pub(crate) struct KnownHealth {
    object_id: String,
    health: Health,
    checked: Instant,
}

impl<B: Backend> Agent<'_, B> {
    /// Checks the next few objects, and applies again what is not as it was applied.
    /// Returns the status of the agent if that keeps it from acting.
    pub(super) async fn check_drift(
        &mut self,
        offered: &[DeploymentObject],
    ) -> Result<Option<String>, Stop> {
        let applied: Vec<_> = self
            .inventory
            .iter()
            .flatten()
            .filter(|(_, entry)| entry.phase == Phase::Applied)
            .flat_map(|(stack, entry)| {
                entry.references.iter().filter(|one| !one.is_stale).map(move |one| (stack, one))
            })
            .collect();
        let next = applied.iter().cycle().skip(self.drift_cursor % applied.len().max(1));
        let next: Vec<_> = next
            .take(B::DRIFT_CHECKS.min(applied.len()))
            .map(|(stack, reference)| ((*stack).clone(), (*reference).clone()))
            .collect();
        self.drift_cursor = self.drift_cursor.wrapping_add(next.len());
        for (stack, reference) in next {
            let found = self.backend.drift(&reference).await;
            let Some(what) = self.classify(found)? else { continue };
            let Some(object) = offered.iter().find(|object| object.stack_id == stack) else {
                continue;
            };
            if let Some(status) = self.inactive().await? {
                return Ok(Some(status));
            }
            tracing::warn!(stack, object = %reference, what, "an object drifted");
            let repaired = self.apply_one(object, &reference.key()).await;
            let (is_success, message) = match repaired {
                Ok(()) => (true, format!("{reference} {what}; it was applied again")),
                Err(Fault::Refused(reason)) => (false, format!("{reference} {what}: {reason}")),
                Err(fault) => return self.classify(Err(fault)),
            };
            let (object_id, message) = (object.id.clone(), Some(message));
            self.drifts.push(Report { object_id, event: Event::Drift, is_success, message });
            self.deliver().await?;
        }
        Ok(None)
    }

    /// Applies one object of a stack again.
    async fn apply_one(&mut self, object: &DeploymentObject, key: &str) -> Result<(), Fault> {
        let stack = &*object.stack_id;
        let manifests = manifest::read(&object.yaml_content).map_err(Fault::Refused)?;
        let mut manifests = self.backend.resolve(manifests).await?;
        manifests.retain(|manifest| manifest.reference.key() == key);
        let held = self.inventory.as_ref().and_then(|inventory| inventory.get(stack));
        let Some(mut entry) = held.cloned() else { return Ok(()) };
        let stamp = Stamp { stack, object_id: &object.id, checksum: &object.yaml_checksum };
        let prepared = self.backend.prepare(&stamp, &manifests, &entry.references).await?;
        let applied = self.backend.apply(&stamp, &manifests, &entry.references, prepared).await?;
        for applied in applied {
            let known = entry.references.iter_mut().find(|one| one.key() == applied.key());
            if let Some(known) = known {
                *known = applied;
            }
        }
        self.commit(stack, entry).await
    }

    /// Tells the control plane how healthy stacks are, where that changed.
    pub(super) async fn tell_health(&mut self) -> Result<(), Stop> {
        let now = Instant::now();
        let mut changed = Vec::new();
        let held: Vec<_> =
            self.inventory.iter().flatten().map(|(stack, _)| stack.clone()).collect();
        for stack in held {
            let Some((object_id, health)) = self.health_of(&stack, now).await? else { continue };
            let known = self.known_health.get(&stack);
            if known.is_none_or(|known| known.object_id != object_id || known.health != health) {
                changed.push((stack.clone(), object_id, health));
            } else if let Some(known) = self.known_health.get_mut(&stack) {
                known.checked = now;
            }
        }
        if changed.is_empty() {
            return Ok(());
        }
        let checked_at = wall_clock().to_string();
        let updates = changed.iter().map(|(_, id, health)| DeploymentObjectHealthUpdate {
            checked_at: checked_at.clone(),
            id: id.clone(),
            status: health.status().to_owned(),
            summary: Some(HealthSummary {
                conditions: health.failures.clone(),
                pods_ready: health.pods_ready,
                pods_total: health.pods_total,
                resources: Vec::new(),
            }),
        });
        let update = HealthStatusUpdate { deployment_objects: updates.collect() };
        match self.client.health(&self.id, &update).await {
            Err(failure) if failure.refusal().is_some() => {
                tracing::warn!(%failure, "the health of stacks was not taken");
            }
            answered => answered?,
        }
        for (stack, object_id, health) in changed {
            self.known_health.insert(stack, KnownHealth { object_id, health, checked: now });
        }
        Ok(())
    }

    /// The health of a stack; `None` if it is not asked for now.
    async fn health_of(
        &mut self,
        stack: &str,
        now: Instant,
    ) -> Result<Option<(String, Health)>, Stop> {
        let Some(entry) = self.inventory.as_ref().and_then(|held| held.get(stack)) else {
            return Ok(None);
        };
        if entry.event != Event::Deploy {
            return Ok(None);
        }
        if let Some((object_id, reason)) = self.retries.reason(stack) {
            let failures = vec![reason.to_owned()];
            let health = Health { failures, ..Health::default() };
            return Ok(Some((object_id.to_owned(), health)));
        }
        if entry.phase != Phase::Applied {
            return Ok(None);
        }
        let object_id = entry.object_id.clone();
        let known = self.known_health.get(stack).filter(|known| known.object_id == object_id);
        let is_due = known.is_none_or(|known| {
            known.health.status() != "healthy" || now - known.checked >= HEALTH_INTERVAL
        });
        let asked: Vec<_> =
            entry.references.iter().filter(|one| self.backend.has_health(one)).cloned().collect();
        if !is_due {
            return Ok(None);
        }
        if asked.is_empty() {
            return Ok(Some((object_id, Health::default())));
        }
        let health = self.backend.health(&asked).await;
        Ok(Some((object_id, self.classify(health)?)))
    }
}

fn wall_clock() -> Timestamp {
    let now = clock_gettime(ClockId::Realtime);
    Timestamp::from_micros(now.tv_sec.saturating_mul(1_000_000).saturating_add(now.tv_nsec / 1_000))
}
