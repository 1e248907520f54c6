//! Carries the actions of a plan out.
//!
//! *Expected flow:* check → write the intent to the inventory → act → write the outcome
//! with its report. *Guarantees:* whatever a process that ends in the middle has applied is in the
//! inventory, and the next one acts again; every act may be repeated. A refusal of one
//! stack is its report and leaves the others alone; an error that this returns ends the
//! pass.

use std::collections::BTreeSet;

use slipway_wire::fleet::DeploymentObject;
use tokio::time::Instant;

use super::backend::{Backend, Fault, Found, Removal, Stamp};
use super::decide::Action;
use super::inventory::{Entry, Event, Phase, Reference, Report};
use super::manifest;
use super::pass::Agent;
use super::retries::OVERDUE;

impl<B: Backend> Agent<'_, B> {
    pub(super) async fn carry_out(&mut self, action: &Action<'_>) -> Result<(), Fault> {
        match action {
            Action::Release { stack, object_id } => self.release(stack, object_id).await,
            Action::Remove { marker } => {
                self.remove(&marker.stack_id, &marker.id, Event::Delete).await
            }
            Action::Refuse { object, reason } => {
                let event = if object.is_deletion_marker { Event::Delete } else { Event::Deploy };
                let about = (&*object.stack_id, &*object.id);
                self.retries.refused(about, reason, Instant::now());
                self.say_failure(about, event, reason).await
            }
            Action::Apply { object } => self.apply(object).await,
            Action::Sweep { stack } => self.sweep(stack).await,
            Action::Prune { stack } => {
                let object_id = self.entry(stack, "").object_id;
                self.remove(stack, &object_id, Event::Prune).await
            }
            Action::Forget { stack } => {
                self.backend.forget(stack).await?;
                self.known_health.remove(stack);
                if let Some(inventory) = &mut self.inventory {
                    inventory.remove(stack);
                }
                Ok(())
            }
        }
    }

    /// The stack as the inventory has it, or one that nothing was done about.
    fn entry(&self, stack: &str, object_id: &str) -> Entry {
        let known = self.inventory.as_ref().and_then(|inventory| inventory.get(stack));
        known.cloned().unwrap_or_else(|| Entry::new(object_id, ""))
    }

    /// Writes a stack to the inventory, unless it is so already.
    pub(super) async fn commit(&mut self, stack: &str, entry: Entry) -> Result<(), Fault> {
        let known = self.inventory.as_ref().and_then(|inventory| inventory.get(stack));
        if known == Some(&entry) {
            return Ok(());
        }
        self.backend.save(stack, &entry).await?;
        self.inventory.get_or_insert_default().insert(stack.to_owned(), entry);
        Ok(())
    }

    async fn apply(&mut self, object: &DeploymentObject) -> Result<(), Fault> {
        let (stack, id) = (&*object.stack_id, &*object.id);
        match self.try_apply(object).await {
            Ok(()) => Ok(()),
            Err(Fault::Refused(reason)) => {
                tracing::warn!(stack, object = id, reason, "a stack could not be applied");
                self.failed((stack, id), Event::Deploy, &reason, false).await
            }
            Err(fault) => Err(fault),
        }
    }

    async fn try_apply(&mut self, object: &DeploymentObject) -> Result<(), Fault> {
        let stack = &*object.stack_id;
        let manifests = manifest::read(&object.yaml_content).map_err(Fault::Refused)?;
        let manifests = self.backend.resolve(manifests).await?;
        let desired: Vec<Reference> = manifests.iter().map(|one| one.reference.clone()).collect();
        let stamp = Stamp { stack, object_id: &object.id, checksum: &object.yaml_checksum };
        let mut entry = self.entry(stack, &object.id);
        let known = entry.references.clone();
        let prepared = self.backend.prepare(&stamp, &manifests, &known).await?;
        entry.intend(&desired);
        (entry.phase, entry.event) = (Phase::Applying, Event::Deploy);
        (entry.object_id, entry.checksum) = (object.id.clone(), object.yaml_checksum.clone());
        self.commit(stack, entry.clone()).await?;
        let applied = self.backend.apply(&stamp, &manifests, &known, prepared).await?;
        entry.references.retain(|reference| reference.is_stale);
        entry.references.extend(applied);
        entry.phase = Phase::Applied;
        tracing::info!(stack, object = object.id, objects = manifests.len(), "a stack is applied");
        self.sweep_entry(stack, entry).await
    }

    /// Removes what was part of the stack and is not any more.
    async fn sweep(&mut self, stack: &str) -> Result<(), Fault> {
        let entry = self.entry(stack, "");
        self.sweep_entry(stack, entry).await
    }

    async fn sweep_entry(&mut self, stack: &str, mut entry: Entry) -> Result<(), Fault> {
        let stale = entry.stale();
        let mut removal = Removal::default();
        if !stale.is_empty() {
            removal = match self.backend.remove(stack, &stale).await {
                Ok(removal) => removal,
                Err(Fault::Refused(reason)) => {
                    Removal { left: stale, waiting: Some(reason), notes: Vec::new() }
                }
                Err(fault) => return Err(fault),
            };
            entry.references.retain(|reference| !reference.is_stale);
            entry.references.extend(removal.left);
        }
        let object_id = entry.object_id.clone();
        if let Some(waiting) = removal.waiting {
            self.commit(stack, entry).await?;
            return self.failed((stack, &object_id), Event::Deploy, &waiting, true).await;
        }
        self.succeeded(stack, entry, object_id, removal.notes).await
    }

    /// The stack of a marker. If the inventory does not have it, what carries its marks is
    /// searched for, each time until everything is done; and why that may not be all.
    async fn marked(
        &mut self,
        stack: &str,
        object_id: &str,
    ) -> Result<(Entry, Option<String>), Fault> {
        let known = self.inventory.as_ref().and_then(|inventory| inventory.get(stack));
        let mut entry = known.cloned().unwrap_or_else(|| Entry::lost(object_id));
        object_id.clone_into(&mut entry.object_id);
        if !entry.is_lost {
            return Ok((entry, None));
        }
        let Found { references, unlisted } = self.backend.find(stack).await?;
        if !references.is_empty() {
            let objects = references.len();
            tracing::warn!(stack, objects, "the inventory lacks objects that carry our marks");
        }
        let known: BTreeSet<_> = entry.references.iter().map(Reference::key).collect();
        entry.references.extend(references.into_iter().filter(|one| !known.contains(&one.key())));
        let unlisted = (!unlisted.is_empty()).then(|| {
            format!(
                "the inventory lacks the stack, and more of it may be there: {}",
                unlisted.join("; ")
            )
        });
        Ok((entry, unlisted))
    }

    /// Deletes everything of a stack.
    async fn remove(&mut self, stack: &str, object_id: &str, event: Event) -> Result<(), Fault> {
        let (mut entry, unlisted) = match self.marked(stack, object_id).await {
            Err(Fault::Refused(reason)) => {
                return self.failed_to_find((stack, object_id), event, &reason).await;
            }
            found => found?,
        };
        (entry.phase, entry.event) = (Phase::Removing, event);
        let mut removal = Removal::default();
        if !entry.references.is_empty() {
            self.commit(stack, entry.clone()).await?;
            removal = match self.backend.remove(stack, &entry.references).await {
                Ok(removal) => removal,
                Err(Fault::Refused(reason)) => {
                    return self.failed((stack, object_id), event, &reason, false).await;
                }
                Err(fault) => return Err(fault),
            };
        }
        entry.references = removal.left;
        if let Some(waiting) = removal.waiting {
            self.commit(stack, entry).await?;
            return self.failed((stack, object_id), event, &waiting, true).await;
        }
        if let Some(unlisted) = unlisted {
            self.commit(stack, entry).await?;
            return self.failed((stack, object_id), event, &unlisted, false).await;
        }
        tracing::info!(stack, event = event.as_str(), "a stack is removed");
        (entry.phase, entry.is_lost) = (Phase::Gone, false);
        self.succeeded(stack, entry, object_id.to_owned(), removal.notes).await
    }

    /// Lets go of everything of a stack.
    async fn release(&mut self, stack: &str, object_id: &str) -> Result<(), Fault> {
        let (mut entry, unlisted) = match self.marked(stack, object_id).await {
            Err(Fault::Refused(reason)) => {
                return self.failed_to_find((stack, object_id), Event::Keep, &reason).await;
            }
            found => found?,
        };
        (entry.phase, entry.event) = (Phase::Releasing, Event::Keep);
        if !entry.references.is_empty() {
            self.commit(stack, entry.clone()).await?;
            match self.backend.release(stack, &entry.references).await {
                Ok(()) => {}
                Err(Fault::Refused(reason)) => {
                    return self.failed((stack, object_id), Event::Keep, &reason, false).await;
                }
                Err(fault) => return Err(fault),
            }
        }
        entry.references.clear();
        if let Some(unlisted) = unlisted {
            self.commit(stack, entry).await?;
            return self.failed((stack, object_id), Event::Keep, &unlisted, false).await;
        }
        tracing::info!(stack, "a stack is let go; its objects stay");
        (entry.phase, entry.is_lost) = (Phase::Gone, false);
        self.succeeded(stack, entry, object_id.to_owned(), Vec::new()).await
    }

    /// Nothing is known of the stack, and nothing was found out.
    async fn failed_to_find(
        &mut self,
        (stack, object_id): (&str, &str),
        event: Event,
        reason: &str,
    ) -> Result<(), Fault> {
        if self.inventory.as_ref().is_none_or(|inventory| !inventory.contains_key(stack)) {
            let phase = if event == Event::Keep { Phase::Releasing } else { Phase::Removing };
            self.commit(stack, Entry { phase, event, ..Entry::lost(object_id) }).await?;
        }
        self.failed((stack, object_id), event, reason, false).await
    }

    async fn succeeded(
        &mut self,
        stack: &str,
        mut entry: Entry,
        object_id: String,
        notes: Vec<String>,
    ) -> Result<(), Fault> {
        self.retries.succeeded(stack);
        let message = (!notes.is_empty()).then(|| notes.join("; "));
        entry.say(Report { object_id, event: entry.event, is_success: true, message });
        self.commit(stack, entry).await
    }

    /// Tries again later. What only takes its time is a failure after a while.
    async fn failed(
        &mut self,
        (stack, object_id): (&str, &str),
        event: Event,
        reason: &str,
        is_waiting: bool,
    ) -> Result<(), Fault> {
        let now = Instant::now();
        self.retries
            .failed((stack, object_id), reason, is_waiting, now)
            .map_err(|error| Fault::Unreachable(format!("no random bytes: {error}")))?;
        let is_early =
            self.retries.since(stack).is_none_or(|since| now.duration_since(since) < OVERDUE);
        if is_waiting && is_early {
            return Ok(());
        }
        self.say_failure((stack, object_id), event, reason).await
    }

    async fn say_failure(
        &mut self,
        (stack, object_id): (&str, &str),
        event: Event,
        reason: &str,
    ) -> Result<(), Fault> {
        let known = self.inventory.as_ref().and_then(|inventory| inventory.get(stack));
        let mut entry = known.cloned().unwrap_or_else(|| Entry::lost(object_id));
        entry.say(Report {
            object_id: object_id.to_owned(),
            event,
            is_success: false,
            message: Some(reason.to_owned()),
        });
        self.commit(stack, entry).await
    }
}
