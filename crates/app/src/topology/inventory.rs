//! What the provider lists of a group, gathered at the door: our rows, the list, our rows again.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use slipway_core::catalog::blueprint_version::Engine;
use slipway_core::ids::{GroupId, Partition};
use slipway_core::topology::inventory::{Inventory, Known, Listed, compare};

use super::port::AttemptRow;
use crate::broker::converge::Engines;
use crate::ports::store::{Error, Stores};
use crate::ports::substrate::InventoryRequest;

/// Objects in a page of a list.
const PAGE: usize = 1_000;

/// A list, and since when it ages.
#[derive(Debug, Clone)]
pub struct Gathered {
    inventory: Inventory,
    since: Instant,
}

impl Gathered {
    /// There is no list, since nobody asked for one.
    pub(crate) fn not_asked_for() -> Self {
        let inventory = Inventory::Unavailable { reason: "it was not asked for".to_owned() };
        Self { inventory, since: Instant::now() }
    }

    /// The list with its age, for a decision that is made now. A decision may wait for a lock.
    pub fn now(&self) -> Inventory {
        self.inventory.aged(self.since.elapsed())
    }
}

/// Reads the lists of groups from the engines of this process, once it has connected them. Before
/// that no list can be read, and no gate passes.
#[derive(Debug, Clone, Default)]
pub struct Inventories {
    connected: Arc<OnceLock<Connected>>,
}

#[derive(Debug)]
struct Connected {
    engines: Engines,
    within: Duration,
}

impl Inventories {
    /// Reads from these engines from now on; a list that takes longer than `within` is given up.
    pub fn connect(&self, engines: Engines, within: Duration) {
        // The engines of a process never change as a whole.
        self.connected.get_or_init(|| Connected { engines, within });
    }

    /// The list of one group, compared with our rows, and when that was.
    pub async fn of_group(&self, stores: &Stores, group: GroupId) -> Result<Gathered, Error> {
        let since = Instant::now();
        Ok(Gathered { inventory: self.compared(stores, group).await?, since })
    }

    async fn compared(&self, stores: &Stores, group: GroupId) -> Result<Inventory, Error> {
        let before = stores.topology.server_attempts(group).await?;
        let Some(connected) = self.connected.get() else {
            let reason = "this process serves no engine".to_owned();
            return Ok(Inventory::Unavailable { reason });
        };
        let listed = connected.listed(stores, group, &before);
        let listed = match tokio::time::timeout(connected.within, listed).await {
            Ok(listed) => listed?,
            Err(_) => Err(format!("no answer within {} ms", connected.within.as_millis())),
        };
        let listed = match listed {
            Ok(listed) => listed,
            Err(reason) => return Ok(Inventory::Unavailable { reason }),
        };
        let after = stores.topology.server_attempts(group).await?;
        Ok(compare(&known(before), &listed, &known(after)))
    }
}

impl Connected {
    async fn listed(
        &self,
        stores: &Stores,
        group: GroupId,
        rows: &[AttemptRow],
    ) -> Result<Result<Vec<Listed>, String>, Error> {
        let served: BTreeSet<(Partition, Engine)> =
            rows.iter().map(|row| (row.partition, row.engine)).collect();
        if served.is_empty() {
            return Ok(Ok(Vec::new()));
        }
        let clusters = stores.placement.cluster_list().await?;
        let mut listed = Vec::new();
        for (partition, engine) in served {
            let cluster = clusters.iter().find(|cluster| Partition::from(cluster.id) == partition);
            let Some(cluster) = cluster else {
                return Ok(Err("its cluster is not registered any more".to_owned()));
            };
            // People keep these machines, and our rows are the only list of them.
            if engine == Engine::Manual {
                let here =
                    rows.iter().filter(|row| row.partition == partition && row.engine == engine);
                listed.extend(
                    here.map(|row| Listed {
                        name: row.known.server.clone(),
                        id: Some(row.known.id),
                    }),
                );
                continue;
            }
            let Some(substrate) = self.engines.at(partition, engine) else {
                let name = &cluster.name;
                return Ok(Err(format!(
                    "this control plane does not serve cluster `{name}`; ask one that does"
                )));
            };
            let mut after = None;
            loop {
                let request = InventoryRequest {
                    substrate_uid: cluster.substrate_uid.clone(),
                    after,
                    limit: PAGE,
                };
                let page = match substrate.group_inventory(group, &request).await {
                    Ok(page) => page,
                    Err(error) => return Ok(Err(error.to_string())),
                };
                if let Some((object, reason)) = page.unreadable.first() {
                    return Ok(Err(format!("`{}` could not be read: {reason}", object.name)));
                }
                listed.extend(page.found.into_iter().map(|found| Listed {
                    name: found.object_ref.name,
                    id: found.provisioned_resource_id,
                }));
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(Ok(listed))
    }
}

fn known(rows: Vec<AttemptRow>) -> Vec<Known> {
    rows.into_iter().map(|row| row.known).collect()
}
