//! Writes the seed: inserts what is missing and leaves existing rows unchanged.

use serde_json::json;
use slipway_app::seed::Seed;
use slipway_core::ids::ClusterId;
use slipway_core::placement::namespace::NamespacePhase;
use slipway_durable::database::End;
use sqlx::Row as _;
use sqlx::types::Json;
use uuid::Uuid;

use super::Connection;
use super::page::Query;
use crate::failure::Failure;

pub(crate) async fn seed(
    connection: &mut Connection,
    seed: &Seed,
) -> Result<End<ClusterId>, Failure> {
    let insert =
        sqlx::query("INSERT INTO projects (id, name) VALUES ($1, $2) ON CONFLICT DO NOTHING")
            .bind(seed.project_id.as_uuid())
            .bind(&seed.project);
    let find = "SELECT id FROM projects WHERE name = $1 AND deleted_at IS NULL";
    let project = ensure(connection, insert, sqlx::query(find).bind(&seed.project)).await?;
    let credential = credential(connection, seed).await?;
    sqlx::query(
        "INSERT INTO credential_assignments (project_id, cloud_credential_id) \
         VALUES ($1, $2) ON CONFLICT DO NOTHING",
    )
    .bind(project)
    .bind(credential)
    .execute(&mut *connection)
    .await?;
    let cluster = placement(connection, seed, project).await?;
    blueprint(connection, seed).await?;
    Ok(End::Commit(cluster))
}

/// Inserts a row unless its name is taken, and answers the id that the name then has.
async fn ensure(
    connection: &mut Connection,
    insert: Query<'_>,
    find: Query<'_>,
) -> Result<Uuid, sqlx::Error> {
    insert.execute(&mut *connection).await?;
    find.fetch_one(connection).await?.try_get("id")
}

async fn credential(connection: &mut Connection, seed: &Seed) -> Result<Uuid, sqlx::Error> {
    let insert = sqlx::query(
        "INSERT INTO clouds (id, name, provider, endpoint) VALUES ($1, $2, $3, $4) \
         ON CONFLICT DO NOTHING",
    )
    .bind(seed.cloud_id.as_uuid())
    .bind(&seed.cloud)
    .bind(&seed.provider)
    .bind(Json(json!({})));
    let find = "SELECT id FROM clouds WHERE name = $1 AND deleted_at IS NULL";
    let cloud = ensure(connection, insert, sqlx::query(find).bind(&seed.cloud)).await?;
    let insert = sqlx::query(
        "INSERT INTO cloud_credentials (id, cloud_id, name, kv_mount, kv_path) \
         VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
    )
    .bind(seed.credential_id.as_uuid())
    .bind(cloud)
    .bind(&seed.credential)
    .bind(&seed.kv_mount)
    .bind(&seed.kv_path);
    let find = "SELECT id FROM cloud_credentials \
         WHERE cloud_id = $1 AND name = $2 AND deleted_at IS NULL";
    ensure(connection, insert, sqlx::query(find).bind(cloud).bind(&seed.credential)).await
}

/// A seeded namespace is Ready from the start: the seeded engines create it
/// themselves when they first need it.
async fn placement(
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
    let find = sqlx::query("SELECT id FROM clusters WHERE name = $1").bind(&seed.cluster);
    let cluster = ensure(connection, insert, find).await?;
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

async fn blueprint(connection: &mut Connection, seed: &Seed) -> Result<(), sqlx::Error> {
    let version = &seed.blueprint;
    let insert = sqlx::query(
        "INSERT INTO blueprints (id, slug, display_name, description, engine) \
         VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
    )
    .bind(version.blueprint_id.as_uuid())
    .bind(&version.slug)
    .bind(&seed.blueprint_name)
    .bind(&seed.blueprint_description)
    .bind(version.engine.as_str());
    let find = sqlx::query("SELECT id FROM blueprints WHERE slug = $1").bind(&version.slug);
    let blueprint = ensure(connection, insert, find).await?;
    // The seeded engines know their blueprints; these two texts are for engines
    // that install them on a cluster.
    sqlx::query(
        "INSERT INTO blueprint_versions (id, blueprint_id, version, xrd, composition, \
         parameter_schema, injection_strategy, mesh_role, provider_kinds) \
         VALUES ($1, $2, $3, '', '', $4, $5, $6, $7) ON CONFLICT DO NOTHING",
    )
    .bind(version.id.as_uuid())
    .bind(blueprint)
    .bind(&version.version)
    .bind(Json(&version.parameter_schema))
    .bind(version.injection_strategy.as_str())
    .bind(version.mesh_role.as_str())
    .bind(Json(&version.provider_kinds))
    .execute(connection)
    .await?;
    Ok(())
}
