//! Registering a cluster.

use serde_json::json;

use crate::access::audit::Actor;
use crate::catalog::Name;
use crate::catalog::blueprint_version::Engine;
use crate::catalog::rules::common::{about, audited, free};
use crate::commit::Commit;
use crate::error::Refusal;
use crate::ids::{ClusterId, Revision};
use crate::placement::PlacementWrite;
use crate::placement::cluster::{Cluster, ClusterAccess, NamespacePrefix};
use crate::time::Timestamp;

/// A cluster, its row locked.
#[derive(Debug, Clone)]
pub struct ClusterSnapshot {
    pub now: Timestamp,
    pub cluster: Option<Cluster>,
}

#[derive(Debug, Clone)]
pub struct NewCluster {
    pub id: ClusterId,
    pub name: Name,
    pub engine: Engine,
    pub namespace_prefix: NamespacePrefix,
    pub region: Option<Name>,
    pub access: Option<ClusterAccess>,
}

/// Creates it without `substrate_uid`: the replica that first serves the cluster sets it.
pub fn create(
    snapshot: &ClusterSnapshot,
    new: &NewCluster,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    free(&snapshot.cluster, "name", new.name.as_str())?;
    match (new.engine, &new.access) {
        (Engine::Crossplane, None) => {
            let problem =
                "is missing: say how the cluster is reached, in-cluster or kubeconfig/<name>";
            return Err(Refusal::invalid("access", problem));
        }
        (Engine::Local | Engine::Hetzner, Some(_)) => {
            let problem = format!(
                "is for the engine crossplane; a cluster of the engine {} takes none",
                new.engine
            );
            return Err(Refusal::invalid("access", problem));
        }
        _ => {}
    }
    let cluster = Cluster {
        id: new.id,
        name: new.name.clone(),
        engine: new.engine,
        substrate_uid: None,
        namespace_prefix: new.namespace_prefix.clone(),
        region: new.region.clone(),
        access: new.access.clone(),
        verification: None,
        revision: Revision::FIRST,
        created_at: snapshot.now,
        updated_at: snapshot.now,
    };
    let details = json!({ "name": cluster.name, "engine": cluster.engine });
    let about = about(&cluster);
    let write = PlacementWrite::ClusterInsert(cluster);
    Ok(audited(write, "cluster.create", about, actor, snapshot.now, details))
}
