//! Writes the placement of the seed: inserts what is missing, and adopts a cluster that
//! was registered before a process served it.

use slipway_app::seed::Seed;
use slipway_core::ids::ClusterId;
use slipway_core::placement::namespace::NamespacePhase;
use uuid::Uuid;

use super::Connection;
use super::page::ensure;

/// A seeded namespace is Ready from the start: the seeded engines create it
/// themselves when they first need it.
pub(crate) async fn seed(
    connection: &mut Connection,
    seed: &Seed,
    project: Uuid,
) -> Result<ClusterId, sqlx::Error> {
    let insert = sqlx::query(
        "INSERT INTO clusters (id, name, engine, substrate_uid, namespace_prefix) \
         VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
    )
    .bind(seed.cluster_id.as_uuid())
    .bind(&seed.cluster)
    .bind(seed.engine.as_str())
    .bind(&seed.substrate_uid)
    .bind(&seed.namespace_prefix);
    let find = "SELECT id FROM clusters WHERE name = $1 AND deleted_at IS NULL";
    let cluster = ensure(connection, insert, sqlx::query(find).bind(&seed.cluster)).await?;
    adopt(connection, seed, cluster).await?;
    sqlx::query(
        "INSERT INTO cluster_assignments (project_id, cluster_id, namespace, namespace_phase) \
         VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
    )
    .bind(project)
    .bind(cluster)
    .bind(format!("{}{project}", seed.namespace_prefix))
    .bind(NamespacePhase::Ready.as_str())
    .execute(connection)
    .await?;
    Ok(ClusterId::new(cluster))
}

/// Adopts a cluster that was registered before a process served it: it gets its
/// identity, and the projects placed on it stop waiting. The boot sweep that
/// follows wakes their attempts. A cluster that has an identity keeps it.
async fn adopt(connection: &mut Connection, seed: &Seed, cluster: Uuid) -> Result<(), sqlx::Error> {
    let adopted = sqlx::query(sql!(
        "UPDATE clusters SET substrate_uid = $2, revision = revision + 1, updated_at = ",
        greatest,
        "(",
        now,
        ", updated_at) WHERE id = $1 AND engine = $3 AND substrate_uid IS NULL"
    ))
    .bind(cluster)
    .bind(&seed.substrate_uid)
    .bind(seed.engine.as_str())
    .execute(&mut *connection)
    .await?
    .rows_affected();
    if adopted == 0 {
        return Ok(());
    }
    sqlx::query(sql!(
        "UPDATE cluster_assignments SET namespace_phase = $2, revision = revision + 1, \
         updated_at = ",
        greatest,
        "(",
        now,
        ", updated_at) WHERE cluster_id = $1 AND namespace_phase = $3"
    ))
    .bind(cluster)
    .bind(NamespacePhase::Ready.as_str())
    .bind(NamespacePhase::Pending.as_str())
    .execute(connection)
    .await?;
    Ok(())
}
