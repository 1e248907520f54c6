//! Writes the catalog of the seed: inserts what is missing and leaves existing rows
//! unchanged.

use serde_json::json;
use slipway_app::seed::Seed;
use slipway_core::catalog::blueprint_version::BlueprintVersion;
use sqlx::types::Json;
use uuid::Uuid;

use super::Connection;
use super::page::ensure;

/// Answers the project of the seed.
pub(crate) async fn seed(connection: &mut Connection, seed: &Seed) -> Result<Uuid, sqlx::Error> {
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
    let texts = (&*seed.blueprint_name, &*seed.blueprint_description);
    blueprint(connection, &seed.blueprint, texts).await?;
    if let Some(version) = &seed.manual_blueprint {
        let texts = ("Manual node", "A machine that somebody boots by hand.");
        blueprint(connection, version, texts).await?;
    }
    Ok(project)
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

async fn blueprint(
    connection: &mut Connection,
    version: &BlueprintVersion,
    (name, description): (&str, &str),
) -> Result<(), sqlx::Error> {
    let insert = sqlx::query(
        "INSERT INTO blueprints (id, slug, display_name, description, engine) \
         VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
    )
    .bind(version.blueprint_id.as_uuid())
    .bind(&version.slug)
    .bind(name)
    .bind(description)
    .bind(version.engine.as_str());
    let find = "SELECT id FROM blueprints WHERE slug = $1 AND deleted_at IS NULL";
    let blueprint = ensure(connection, insert, sqlx::query(find).bind(&version.slug)).await?;
    // The seeded engines know their blueprints; these two texts are for engines
    // that install them on a cluster.
    sqlx::query(
        "INSERT INTO blueprint_versions (id, blueprint_id, version, xrd, composition, \
         parameter_schema, injection_strategy, mesh_role, provider_kinds, surge) \
         VALUES ($1, $2, $3, '', '', $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING",
    )
    .bind(version.id.as_uuid())
    .bind(blueprint)
    .bind(&version.version)
    .bind(Json(&version.parameter_schema))
    .bind(version.injection_strategy.as_str())
    .bind(version.mesh_role.as_str())
    .bind(Json(&version.provider_kinds))
    .bind(i32::from(version.surge))
    .execute(connection)
    .await?;
    Ok(())
}
