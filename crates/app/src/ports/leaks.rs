//! The leak side of the store: what rows say about objects, sightings, and leak
//! records. A leak is decided about as a resource is: its row locked, a pure
//! rule asked, the answer and its audit entry written in one transaction.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use slipway_core::audit::Actor;
use slipway_core::blueprint::Engine;
use slipway_core::error::Refusal;
use slipway_core::ids::{ClusterId, LeakRecordId, ProvisionedResourceId};
use slipway_core::leak::{Claimant, Finding, Leak, LeakSnapshot};
use slipway_core::rules::orphans::LeakCommit;
use slipway_core::time::Timestamp;
use uuid::Uuid;

use super::store::{Error, Page};

/// A cluster or root, as it was registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    pub id: ClusterId,
    pub name: String,
    pub engine: Engine,
    pub substrate_uid: Option<String>,
}

/// A finding, and the id of its leak record if it becomes one.
#[derive(Debug, Clone, PartialEq)]
pub struct Sighted {
    pub finding: Finding,
    pub fresh_id: LeakRecordId,
}

/// What became of the findings of a page.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sightings {
    /// Open leaks, new ones and ones that were known.
    pub leaks: Vec<Leak>,
    /// Findings that do not count yet, by key, and since when they are seen.
    pub suspected: Vec<(Uuid, Timestamp)>,
}

/// Which leaks to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeakFilter {
    /// Only open ones, only resolved ones, or both.
    pub open: Option<bool>,
    pub kind: Option<String>,
}

/// Called inside the transaction, maybe twice.
pub type LeakRule<'a> = dyn FnMut(&LeakSnapshot) -> Result<LeakCommit, Refusal> + Send + 'a;

#[async_trait]
pub trait LeakStore {
    /// Every cluster and root that is registered.
    async fn cluster_list(&self) -> Result<Vec<Cluster>, Error>;

    /// What the rows of these attempts say about their objects; an attempt
    /// without a row is left out.
    async fn claimant_load(
        &self,
        attempts: &[ProvisionedResourceId],
    ) -> Result<Vec<Claimant>, Error>;

    /// Attempts of this cluster in a phase that wants an object there.
    async fn claimant_expecting(
        &self,
        cluster: ClusterId,
        page: Page<ProvisionedResourceId>,
    ) -> Result<Vec<Claimant>, Error>;

    /// Makes these attempts due, settled or not. What was proven of their
    /// absence is not touched: the tick that follows takes it back if it sees
    /// the object too, under its claim.
    async fn attempt_wake(&self, attempts: &[ProvisionedResourceId]) -> Result<(), Error>;

    /// The database's clock, for what a look began with.
    async fn leak_look_begin(&self) -> Result<Timestamp, Error>;

    /// Notes these findings as seen now, and records those that count: first
    /// seen no less than `apart` ago. The same finding is one open leak,
    /// whoever reports it and how often.
    async fn leak_sighted(
        &self,
        cluster: &Cluster,
        sighted: &[Sighted],
        apart: Duration,
    ) -> Result<Sightings, Error>;

    /// Ends a look at the whole cluster that began then: what it did not see is
    /// resolved or forgotten. Says how many leaks were resolved.
    async fn leak_look_end(
        &self,
        cluster: ClusterId,
        begun_at: Timestamp,
        actor: &Actor,
    ) -> Result<u64, Error>;

    /// Open leaks of this cluster whose object somebody wants removed.
    async fn leak_removals(&self, cluster: ClusterId, limit: u32) -> Result<Vec<Leak>, Error>;

    async fn leak_list(
        &self,
        filter: &LeakFilter,
        page: Page<LeakRecordId>,
    ) -> Result<Vec<Leak>, Error>;

    async fn leak_fetch(&self, id: LeakRecordId) -> Result<Option<Leak>, Error>;

    /// Decides about one leak, its row locked.
    async fn leak_decide(&self, id: LeakRecordId, rule: &mut LeakRule<'_>) -> Result<(), Error>;

    /// How many leaks are open, by kind.
    async fn leak_open_counts(&self) -> Result<BTreeMap<String, u64>, Error>;
}
