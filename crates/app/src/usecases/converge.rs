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
mod plan;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use slipway_core::blueprint::Engine;
use slipway_core::observation::CompositeReport;
use slipway_core::snapshot::ResourceSnapshot;
use slipway_render::local_node::NodeSettings;

pub use self::batch::{Batch, Prepared, Ticked};
pub use self::plan::Planned;
use crate::ports::substrate::{Address, Substrate};

/// The engines of this process and what they render with.
#[derive(Debug, Clone)]
pub struct Engines {
    engines: HashMap<Engine, Arc<dyn Substrate>>,
    pub node_settings: NodeSettings,
}

impl Engines {
    pub fn new(engines: Vec<Arc<dyn Substrate>>, node_settings: NodeSettings) -> Self {
        let engines = engines.into_iter().map(|engine| (engine.engine(), engine)).collect();
        Self { engines, node_settings }
    }

    pub fn get(&self, engine: Engine) -> Option<&Arc<dyn Substrate>> {
        self.engines.get(&engine)
    }
}

/// How long one outside action may take under a lease of this length. It is
/// started only with more lease left than this, and abandoned after it: the
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
        substrate_uid: placement.substrate_uid.clone(),
    })
}

/// Observes a batch: one call per engine, whatever the number of resources.
pub async fn observe(engines: &Engines, snapshots: &[ResourceSnapshot]) -> Vec<CompositeReport> {
    let unknown = |reason: &str| CompositeReport::Unknown { reason: reason.to_owned() };
    let mut reports: Vec<_> =
        snapshots.iter().map(|_| unknown("the project is not placed on a cluster")).collect();
    let mut groups: HashMap<Engine, (Vec<usize>, Vec<Address>)> = HashMap::new();
    for (index, snapshot) in snapshots.iter().enumerate() {
        if let Some(address) = address(snapshot) {
            let (indexes, addresses) = groups.entry(snapshot.blueprint.engine).or_default();
            indexes.push(index);
            addresses.push(address);
        }
    }
    for (engine, (indexes, addresses)) in groups {
        match engines.get(engine) {
            Some(substrate) => {
                let seen = substrate.observe(&addresses).await;
                for (index, report) in indexes.into_iter().zip(seen) {
                    reports[index] = report;
                }
            }
            None => {
                for index in indexes {
                    reports[index] = unknown("this process has no such engine; start one that has");
                }
            }
        }
    }
    reports
}
