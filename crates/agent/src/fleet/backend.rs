//! What an agent deploys to: a cluster or a folder. The core decides and reports; a
//! backend applies, removes and keeps the inventory beside what it deployed.

use std::future::Future;
use std::time::Duration;

use super::inventory::{Entry, Inventory, Reference};
use super::manifest::Manifest;

/// Whom everything belongs to that this agent deploys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) installation: String,
    pub(crate) agent: String,
}

/// What every deployed object carries.
#[derive(Debug, Clone)]
pub(crate) struct Stamp<'a> {
    pub(crate) stack: &'a str,
    pub(crate) object_id: &'a str,
    pub(crate) checksum: &'a str,
}

/// Why a backend could not do something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The backend as a whole does not answer; whatever else is asked of it now would
    /// be in vain.
    Unreachable(String),
    /// It does not take this, for this reason.
    Refused(String),
    /// The inventory is not as it was read: it has to be read again.
    Moved(String),
    /// The inventory is another owner's.
    Foreign(String),
}

/// What carries the marks of a stack.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    pub(crate) references: Vec<Reference>,
    /// Why it is not known whether that is all.
    pub(crate) unlisted: Vec<String>,
}

/// What came of a removal.
#[derive(Debug, Clone, Default)]
pub(crate) struct Removal {
    /// What is not gone yet.
    pub(crate) left: Vec<Reference>,
    /// Why it is not.
    pub(crate) waiting: Option<String>,
    /// What was left alone on purpose, and why.
    pub(crate) notes: Vec<String>,
}

/// How healthy the objects of a stack are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Health {
    pub(crate) pods_ready: i32,
    pub(crate) pods_total: i32,
    /// What is wrong for good, such as a deadline that passed.
    pub(crate) failures: Vec<String>,
}

impl Health {
    pub(crate) fn status(&self) -> &'static str {
        match (self.failures.is_empty(), self.pods_ready >= self.pods_total) {
            (false, _) => "failing",
            (true, false) => "degraded",
            (true, true) => "healthy",
        }
    }
}

/// The answer of a backend that it is there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Contact {
    /// Time of an answer of the API server; `None` where there is none.
    pub(crate) latency: Option<Duration>,
    /// It is not the one that the inventory was read from.
    pub(crate) is_new: bool,
}

pub(crate) trait Backend: Send {
    /// Whether there is an API server, whose health a heartbeat tells.
    const HAS_CLUSTER: bool;

    /// How many objects are checked for drift in an idle pass.
    const DRIFT_CHECKS: usize;

    /// What it is, for people.
    fn name(&self) -> String;

    /// Asks whether it is there, and whether it is the same still.
    fn contact(&mut self) -> impl Future<Output = Result<Contact, Fault>> + Send;

    /// Reads the inventory of this owner. What another cluster recorded counts as
    /// unknown.
    fn load(&mut self, owner: &Owner) -> impl Future<Output = Result<Inventory, Fault>> + Send;

    /// Writes one stack of the inventory, if it is as this process read or wrote it.
    fn save(
        &mut self,
        stack: &str,
        entry: &Entry,
    ) -> impl Future<Output = Result<(), Fault>> + Send;

    /// Removes one stack of the inventory.
    fn forget(&mut self, stack: &str) -> impl Future<Output = Result<(), Fault>> + Send;

    /// Completes the references of manifests, which then are their identity here.
    fn resolve(
        &mut self,
        manifests: Vec<Manifest>,
    ) -> impl Future<Output = Result<Vec<Manifest>, Fault>> + Send;

    /// What [`Self::prepare`] found out for [`Self::apply`].
    type Prepared: Send;

    /// Checks that objects can be applied, as far as that is possible without changing
    /// anything, and that none is another owner's or stack's. `known` are those that the
    /// inventory has of this stack.
    fn prepare(
        &mut self,
        stamp: &Stamp<'_>,
        manifests: &[Manifest],
        known: &[Reference],
    ) -> impl Future<Output = Result<Self::Prepared, Fault>> + Send;

    /// Applies objects. If one object would be refused, nothing but namespaces and
    /// definitions of kinds was applied. Returns the references with what drift is
    /// noticed by.
    fn apply(
        &mut self,
        stamp: &Stamp<'_>,
        manifests: &[Manifest],
        known: &[Reference],
        prepared: Self::Prepared,
    ) -> impl Future<Output = Result<Vec<Reference>, Fault>> + Send;

    /// Finds what carries this owner and stack without the inventory. It is expensive.
    fn find(&mut self, stack: &str) -> impl Future<Output = Result<Found, Fault>> + Send;

    /// Removes what carries this owner and stack of these references, and says what is
    /// not gone yet.
    fn remove(
        &mut self,
        stack: &str,
        references: &[Reference],
    ) -> impl Future<Output = Result<Removal, Fault>> + Send;

    /// Takes our marks off these objects, which stay.
    fn release(
        &mut self,
        stack: &str,
        references: &[Reference],
    ) -> impl Future<Output = Result<(), Fault>> + Send;

    /// What is not as it was applied; `None` if nothing is.
    fn drift(
        &mut self,
        reference: &Reference,
    ) -> impl Future<Output = Result<Option<String>, Fault>> + Send;

    /// Whether the health of such an object can change by itself.
    fn has_health(&self, reference: &Reference) -> bool;

    fn health(
        &mut self,
        references: &[Reference],
    ) -> impl Future<Output = Result<Health, Fault>> + Send;
}
