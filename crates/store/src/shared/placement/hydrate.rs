//! Hydrates the placement of a project from a row, by the names of its columns.

use slipway_core::catalog::blueprint_version::Engine;
use slipway_core::ids::ClusterId;
use slipway_core::placement::namespace::{NamespacePhase, NamespaceStatus, Placement};
use uuid::Uuid;

use super::{Row, cluster, rows};
use crate::fault::Fault;

/// The placements `s` of projects on clusters `c`, with the columns that [`placement`] reads.
macro_rules! select_placements {
    () => {
        "SELECT s.project_id, s.cluster_id AS p_cluster_id, c.name AS p_cluster, \
         c.engine AS p_engine, c.access AS p_access, \
         s.namespace AS p_namespace, s.namespace_phase AS p_namespace_phase, \
         c.substrate_uid AS p_substrate_uid, s.status AS p_status \
         FROM cluster_assignments s JOIN clusters c ON c.id = s.cluster_id "
    };
}
pub(crate) use select_placements;

/// `None` if the project is not assigned to a cluster.
pub(crate) fn placement(row: &Row) -> Result<Option<Placement>, Fault> {
    let Some(cluster_id) = rows::get::<Option<Uuid>>(row, "p_cluster_id")? else {
        return Ok(None);
    };
    let NamespaceStatus { providers, problems, .. } =
        rows::json_or_null::<NamespaceStatus>(row, "p_status")?.unwrap_or_default();
    Ok(Some(Placement {
        cluster_id: ClusterId::new(cluster_id),
        cluster: rows::get(row, "p_cluster")?,
        engine: rows::member(row, "p_engine", Engine::parse)?,
        access: cluster::access(row, "p_access")?,
        namespace: rows::get(row, "p_namespace")?,
        namespace_phase: rows::member(row, "p_namespace_phase", NamespacePhase::parse)?,
        substrate_uid: rows::get(row, "p_substrate_uid")?,
        providers,
        problems,
    }))
}
