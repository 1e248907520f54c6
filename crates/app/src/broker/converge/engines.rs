//! The engines of this process: which substrate serves a resource, where its
//! composite lives there, and the observation of a batch through them.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use slipway_core::broker::observation::CompositeReport;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::catalog::blueprint_version::Engine;
use slipway_core::ids::Partition;
use slipway_render::NodeSettings;

use crate::ports::substrate::{Address, Substrate};

/// The engines of this process, each with the partition that it serves, and the
/// settings for rendering. Clones share the registry: a cluster added later is
/// visible to all of them.
#[derive(Debug, Clone)]
pub struct Engines {
    served: Arc<RwLock<Served>>,
    pub node_settings: NodeSettings,
}

#[derive(Debug, Default)]
struct Served {
    /// The names of the served clusters.
    clusters: BTreeMap<Partition, String>,
    substrates: BTreeMap<(Partition, Engine), Arc<dyn Substrate>>,
}

impl Engines {
    /// Without engines.
    pub fn new(node_settings: NodeSettings) -> Self {
        Self { served: Arc::default(), node_settings }
    }

    /// With one more engine, see [`Self::serve`].
    #[must_use]
    pub fn serving(
        self,
        partition: Partition,
        cluster: &str,
        substrate: Arc<dyn Substrate>,
    ) -> Self {
        self.serve(partition, cluster, substrate);
        self
    }

    /// Adds the engine of the cluster with this name. A caller may keep the one it
    /// received, also after [`Self::leave`].
    pub fn serve(&self, partition: Partition, cluster: &str, substrate: Arc<dyn Substrate>) {
        let mut served = self.served.write().unwrap_or_else(PoisonError::into_inner);
        served.clusters.insert(partition, cluster.to_owned());
        served.substrates.insert((partition, substrate.engine()), substrate);
    }

    /// Serves the partition of a deleted cluster no longer.
    pub fn leave(&self, partition: Partition) {
        let mut served = self.served.write().unwrap_or_else(PoisonError::into_inner);
        served.clusters.remove(&partition);
        served.substrates.retain(|(of, _), _| *of != partition);
    }

    /// The partitions that this process serves now, with the names of their
    /// clusters; it claims in no others.
    pub fn partitions(&self) -> Vec<(Partition, String)> {
        let served = self.served();
        served.clusters.iter().map(|(partition, cluster)| (*partition, cluster.clone())).collect()
    }

    /// The name of the cluster behind a partition, if it is served.
    pub fn cluster(&self, partition: Partition) -> Option<String> {
        self.served().clusters.get(&partition).cloned()
    }

    pub fn iter(&self) -> Vec<(Partition, Arc<dyn Substrate>)> {
        let served = self.served();
        let substrates = served.substrates.iter();
        substrates.map(|((partition, _), substrate)| (*partition, Arc::clone(substrate))).collect()
    }

    /// The substrate of this engine in this partition.
    pub fn at(&self, partition: Partition, engine: Engine) -> Option<Arc<dyn Substrate>> {
        self.served().substrates.get(&(partition, engine)).cloned()
    }

    /// The substrate of this resource's composite: an attempt stays in the partition
    /// that it was made in, wherever its project is placed later. `None` if this process has
    /// no such engine there.
    pub fn of(&self, snapshot: &ResourceSnapshot) -> Option<Arc<dyn Substrate>> {
        self.at(snapshot.attempt.partition(), snapshot.blueprint.engine)
    }

    /// Locked for short reads only, never across an await.
    fn served(&self) -> RwLockReadGuard<'_, Served> {
        self.served.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the composite of a snapshot lives. `None` without a placement.
pub(crate) fn address(snapshot: &ResourceSnapshot) -> Option<Address> {
    let placement = snapshot.placement.as_ref()?;
    Some(Address {
        provisioned_resource_id: snapshot.attempt.id(),
        namespace: placement.namespace.clone(),
        name: snapshot.attempt.xr_name().to_owned(),
        composite_type: snapshot.blueprint.composite_type.clone(),
        substrate_uid: placement.substrate_uid.clone(),
    })
}

/// Observes a batch: one concurrent call per partition and engine, whatever the
/// number of resources. A report that missed the deadline, or whose engine
/// panicked, is Unknown, which is not absence.
pub async fn observe(
    engines: &Engines,
    snapshots: &[ResourceSnapshot],
    deadline: Duration,
) -> Vec<CompositeReport> {
    let mut reports: Vec<_> =
        snapshots.iter().map(|_| unknown("the project is not placed on a cluster")).collect();
    let mut groups: BTreeMap<_, Group> = BTreeMap::new();
    for (index, snapshot) in snapshots.iter().enumerate() {
        if let Some(address) = address(snapshot) {
            let key = (snapshot.attempt.partition(), snapshot.blueprint.engine);
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

/// The addresses that one substrate observes in one call.
struct Group {
    substrate: Option<Arc<dyn Substrate>>,
    indexes: Vec<usize>,
    addresses: Vec<Address>,
}

impl Group {
    fn of(engines: &Engines, snapshot: &ResourceSnapshot) -> Self {
        let substrate = engines.of(snapshot);
        Self { substrate, indexes: Vec::new(), addresses: Vec::new() }
    }

    /// One report for each address.
    async fn observe(&self, deadline: Duration) -> Vec<CompositeReport> {
        let all = |reason: &str| vec![unknown(reason); self.addresses.len()];
        let Some(substrate) = &self.substrate else {
            return all("this process has no such engine on this cluster; start one that has");
        };
        let seen = AssertUnwindSafe(substrate.observe(&self.addresses)).catch_unwind();
        match tokio::time::timeout(deadline, seen).await {
            Ok(Ok(seen)) => seen,
            Ok(Err(_)) => all("the engine panicked while it observed"),
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
