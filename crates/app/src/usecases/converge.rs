//! Ticks: observed facts in, outside actions and records out. The loop in
//! `controller` brings the batch, the claims and the budget; this is what it
//! does with them.
//!
//! The order is the point, for each resource: decide (pure, `plan.rs`), record
//! the intent (token minted, old one revoked), act outside, record the outcome
//! and give the claim back. A crash between any two leaves a state that the
//! next tick recognises. Resources of a batch share transactions and nothing
//! else (`batch.rs`).

mod batch;
mod fault;
mod plan;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use slipway_core::blueprint::Engine;
use slipway_core::ids::Lane;
use slipway_core::observation::CompositeReport;
use slipway_core::snapshot::ResourceSnapshot;
use slipway_render::NodeSettings;

pub use self::batch::{Batch, Prepared, Ticked};
pub use self::fault::Fault;
pub use self::plan::Planned;
use crate::ports::substrate::{Address, Substrate};

/// The engines of this process, each with the lane that it serves, and what
/// they render with.
#[derive(Debug, Clone)]
pub struct Engines {
    /// The clusters that are served, by their names.
    clusters: BTreeMap<Lane, String>,
    substrates: BTreeMap<(Lane, Engine), Arc<dyn Substrate>>,
    pub node_settings: NodeSettings,
}

impl Engines {
    /// None yet.
    pub const fn new(node_settings: NodeSettings) -> Self {
        Self { clusters: BTreeMap::new(), substrates: BTreeMap::new(), node_settings }
    }

    /// With one more: it stands for its engine on the cluster of this name.
    #[must_use]
    pub fn serving(mut self, lane: Lane, cluster: &str, substrate: Arc<dyn Substrate>) -> Self {
        self.clusters.insert(lane, cluster.to_owned());
        self.substrates.insert((lane, substrate.engine()), substrate);
        self
    }

    /// What this process serves, with the names of the clusters; it claims
    /// nothing else.
    pub fn lanes(&self) -> impl Iterator<Item = (Lane, &str)> {
        self.clusters.iter().map(|(lane, cluster)| (*lane, cluster.as_str()))
    }

    pub fn iter(&self) -> impl Iterator<Item = (Lane, &Arc<dyn Substrate>)> {
        self.substrates.iter().map(|((lane, _), substrate)| (*lane, substrate))
    }

    /// What the composite of this resource is reached through. `None` if this
    /// process has no such engine there.
    pub fn of(&self, snapshot: &ResourceSnapshot) -> Option<&Arc<dyn Substrate>> {
        self.substrates.get(&(lane_of(snapshot)?, snapshot.blueprint.engine))
    }
}

/// An attempt stays in the lane it was made in, wherever its project is placed
/// later; one that an older version made goes by the placement.
fn lane_of(snapshot: &ResourceSnapshot) -> Option<Lane> {
    let placed = || snapshot.placement.as_ref().map(|placement| placement.cluster_id.into());
    snapshot.attempt.lane().or_else(placed)
}

/// How long one outside action, or one observation, may take under a lease of
/// this length. An action is started only with more lease left than this, and abandoned after it: the
/// actions are idempotent, and what became of it is seen by the next
/// observation. A third: the batch is loaded and observed before the action
/// and recorded after it, and each gets as much again.
pub fn action_deadline(lease: Duration) -> Duration {
    lease / 3
}

/// Where the composite of a snapshot lives. `None` without a placement.
pub fn address(snapshot: &ResourceSnapshot) -> Option<Address> {
    let placement = snapshot.placement.as_ref()?;
    Some(Address {
        provisioned_resource_id: snapshot.attempt.id(),
        namespace: placement.namespace.clone(),
        name: snapshot.attempt.xr_name().to_owned(),
        composite_type: snapshot.blueprint.composite_type.clone(),
        substrate_uid: placement.substrate_uid.clone(),
    })
}

/// Observes a batch: one call per lane and engine, whatever the number of
/// resources, all of them side by side. What was not answered by the deadline,
/// or made the engine panic, is Unknown: that is no absence.
pub async fn observe(
    engines: &Engines,
    snapshots: &[ResourceSnapshot],
    deadline: Duration,
) -> Vec<CompositeReport> {
    let mut reports: Vec<_> =
        snapshots.iter().map(|_| unknown("the project is not placed on a cluster")).collect();
    let mut groups: BTreeMap<_, Group<'_>> = BTreeMap::new();
    for (index, snapshot) in snapshots.iter().enumerate() {
        if let Some(address) = address(snapshot) {
            let key = (lane_of(snapshot), snapshot.blueprint.engine);
            let group = groups.entry(key).or_insert_with(|| Group::of(engines, snapshot));
            group.indexes.push(index);
            group.addresses.push(address);
        }
    }
    let seen = join_all(groups.values().map(|group| group.observe(deadline))).await;
    for (group, seen) in groups.values().zip(seen) {
        for (index, report) in group.indexes.iter().zip(seen) {
            reports[*index] = report;
        }
    }
    reports
}

/// What one substrate is asked about.
struct Group<'a> {
    substrate: Option<&'a Arc<dyn Substrate>>,
    indexes: Vec<usize>,
    addresses: Vec<Address>,
}

impl<'a> Group<'a> {
    fn of(engines: &'a Engines, snapshot: &ResourceSnapshot) -> Self {
        let substrate = engines.of(snapshot);
        Self { substrate, indexes: Vec::new(), addresses: Vec::new() }
    }

    /// One report for each address.
    async fn observe(&self, deadline: Duration) -> Vec<CompositeReport> {
        let all = |reason: &str| vec![unknown(reason); self.addresses.len()];
        let Some(substrate) = self.substrate else {
            return all("this process has no such engine on this cluster; start one that has");
        };
        let seen = AssertUnwindSafe(substrate.observe(&self.addresses)).catch_unwind();
        match tokio::time::timeout(deadline, seen).await {
            Ok(Ok(seen)) => seen,
            Ok(Err(_)) => all("the engine panicked while it looked"),
            Err(_) => {
                let limit = deadline.as_millis();
                all(&format!("the substrate did not answer within {limit} ms"))
            }
        }
    }
}

fn unknown(reason: &str) -> CompositeReport {
    CompositeReport::Unknown { reason: reason.to_owned() }
}
