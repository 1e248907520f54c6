//! Removes the objects of a stack, or lets go of them.
//!
//! *Guarantees:* deletes only what carries this installation, this agent and this stack,
//! and has no owner within the cluster; what holds others (a namespace, the definition of
//! a kind) goes last, after the rest is proven gone, and is let go of if it was there
//! before us.

use std::time::Duration;

use slipway_cluster::{
    Error as ClusterError, ObjectMeta, ObjectRef, Reason, Version, api_resource,
};
use tokio::time::{Instant, sleep};

use super::super::backend::{Fault, Removal};
use super::super::inventory::Reference;
use super::apply::{Rank, rank};
use super::backend::{ClusterBackend, FIELD_MANAGER, fault, object_ref};
use super::marks::{Whose, is_adopted, unmarking, whose};

/// How long a pass waits for what is being deleted; then the next one does.
const GONE_WITHIN: Duration = Duration::from_secs(3);
const GONE_POLL: Duration = Duration::from_millis(100);

/// How often a write is repeated because the object was written in between.
const ATTEMPTS: u32 = 5;

/// What came of one object.
enum Outcome {
    Gone,
    /// It is being deleted; what holds it.
    Leaving(String),
    /// It stays on purpose; why.
    Left(String),
}

impl ClusterBackend {
    pub(super) async fn remove_all(
        &mut self,
        stack: &str,
        references: &[Reference],
    ) -> Result<Removal, Fault> {
        let mut ordered = references.to_vec();
        // In the reverse of the order in which they were applied.
        ordered.reverse();
        ordered.sort_by_key(|reference| std::cmp::Reverse(rank(reference)));
        let mut removal = Removal::default();
        for rank in [Rank::Rest, Rank::Definition, Rank::Namespace] {
            let (now, later): (Vec<_>, Vec<_>) =
                ordered.into_iter().partition(|reference| self::rank(reference) == rank);
            ordered = later;
            self.remove_rank(stack, now, &mut removal).await?;
            if !removal.left.is_empty() {
                removal.left.append(&mut ordered);
                break;
            }
        }
        self.require_same_cluster().await?;
        Ok(removal)
    }

    /// Deletes objects and waits a while until they are gone.
    async fn remove_rank(
        &mut self,
        stack: &str,
        mut references: Vec<Reference>,
        removal: &mut Removal,
    ) -> Result<(), Fault> {
        let begun = Instant::now();
        loop {
            let (mut left, mut waiting) = (Vec::new(), Vec::new());
            for reference in references {
                match self.remove_one(stack, &reference).await? {
                    Outcome::Gone => {}
                    Outcome::Left(note) => removal.notes.push(note),
                    Outcome::Leaving(what) => {
                        waiting.push(what);
                        left.push(reference);
                    }
                }
            }
            if left.is_empty() || begun.elapsed() > GONE_WITHIN {
                removal.waiting = waiting.into_iter().next();
                removal.left = left;
                return Ok(());
            }
            references = left;
            sleep(GONE_POLL).await;
        }
    }

    async fn remove_one(&mut self, stack: &str, reference: &Reference) -> Result<Outcome, Fault> {
        let object = object_ref(reference);
        let owner = self.owner()?.clone();
        let mut refused = None;
        for _ in 0..ATTEMPTS {
            let live = match self.live(&object).await {
                // It was intended and never applied, since this right was missing.
                Err(error) if error.is_forbidden() && reference.digest.is_none() => {
                    return Ok(Outcome::Left(format!("{reference} was left alone: {error}")));
                }
                live => live.map_err(fault)?,
            };
            let Some(live) = live else { return Ok(Outcome::Gone) };
            if whose(&live, &owner, stack) != Whose::Ours {
                let note = format!("{reference} was left alone: it does not carry our marks");
                return Ok(Outcome::Left(note));
            }
            if live.deletion_timestamp.is_some() {
                return Ok(Outcome::Leaving(leaving(reference, &live)));
            }
            if live.owner_references.as_ref().is_some_and(|owners| !owners.is_empty()) {
                let note =
                    format!("{reference} was left alone: it goes with its owner in the cluster");
                return Ok(Outcome::Left(note));
            }
            if is_adopted(&live) && rank(reference) != Rank::Rest {
                self.release_one(stack, reference).await?;
                let note = format!("{reference} was let go: it was there before the stack");
                return Ok(Outcome::Left(note));
            }
            let Some(version) = Version::of(&live) else { continue };
            match self.connection.delete_unchanged(&object, &version).await {
                Ok(None) => return Ok(Outcome::Gone),
                Ok(Some(left)) => {
                    return Ok(Outcome::Leaving(leaving(reference, &left.metadata)));
                }
                Err(error) if error.is_conflict() => refused = Some(error),
                Err(error) => return Err(fault(error)),
            }
        }
        let text = refused.map(ClusterError::into_message).unwrap_or_default();
        Ok(Outcome::Leaving(format!("{reference} is written all the time: {text}")))
    }

    /// The object; `None` if it is proven gone. A kind that is not served proves it only
    /// if its definition is gone as well.
    async fn live(&self, object: &ObjectRef) -> Result<Option<ObjectMeta>, ClusterError> {
        let error = match self.connection.get_metadata(object).await {
            Err(error) if *error.reason() == Reason::NotFound => error,
            found => return found,
        };
        let resource = &object.resource;
        let definition = ObjectRef {
            resource: api_resource(
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                "customresourcedefinitions",
            ),
            namespace: None,
            name: format!("{}.{}", resource.plural, resource.group),
        };
        match self.connection.get_metadata(&definition).await? {
            None if !resource.group.is_empty() => Ok(None),
            _ => Err(error),
        }
    }

    pub(super) async fn release_all(
        &mut self,
        stack: &str,
        references: &[Reference],
    ) -> Result<(), Fault> {
        for reference in references {
            self.release_one(stack, reference).await?;
        }
        self.require_same_cluster().await
    }

    /// Takes our marks off an object that has them.
    async fn release_one(&self, stack: &str, reference: &Reference) -> Result<(), Fault> {
        let object = object_ref(reference);
        let owner = self.owner()?;
        let mut refused = None;
        for _ in 0..ATTEMPTS {
            let Some(live) = self.live(&object).await.map_err(fault)? else { return Ok(()) };
            let version = Version::of(&live);
            let (Whose::Ours, Some(version)) = (whose(&live, owner, stack), version) else {
                return Ok(());
            };
            let merged =
                self.connection.merge("release", &object, &version, unmarking(), FIELD_MANAGER);
            match merged.await {
                Ok(_) => return Ok(()),
                Err(error) if error.is_conflict() => refused = Some(error),
                Err(error) => return Err(fault(error)),
            }
        }
        Err(Fault::Refused(refused.map(ClusterError::into_message).unwrap_or_default()))
    }
}

/// What holds an object that is being deleted.
fn leaving(reference: &Reference, live: &ObjectMeta) -> String {
    let finalizers = live.finalizers.clone().unwrap_or_default();
    match finalizers.is_empty() {
        true => format!("{reference} is being deleted"),
        false => format!("{reference} is being deleted and held by {}", finalizers.join(", ")),
    }
}
