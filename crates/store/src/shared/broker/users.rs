//! Counts the resources that use a project, a credential, an assignment or a blueprint.

use slipway_core::catalog::blueprint::BlueprintUsers;
use slipway_core::catalog::blueprint_version::Engine;
use slipway_core::ids::{BlueprintId, CloudCredentialId, Partition, ProjectId};
use sqlx::Row as _;

use super::Connection;
use super::page::count;

/// Declarations lock the project, so under its lock this count cannot change.
pub(crate) async fn live_resources(
    connection: &mut Connection,
    project: ProjectId,
) -> Result<i64, sqlx::Error> {
    let statement =
        "SELECT count(*) AS found FROM resources WHERE project_id = $1 AND deleted_at IS NULL";
    count(connection, statement, project.as_uuid()).await
}

/// The engines of the blueprints that these resources are made from, each once. One that
/// this version does not know is left out: no cluster that it knows can serve it.
pub(crate) async fn live_engines(
    connection: &mut Connection,
    project: ProjectId,
) -> Result<Vec<Engine>, sqlx::Error> {
    let found = sqlx::query(
        "SELECT DISTINCT b.engine FROM resources r \
         JOIN provisioned_resources a ON a.resource_id = r.id \
         JOIN blueprint_versions v ON v.id = a.blueprint_version_id \
         JOIN blueprints b ON b.id = v.blueprint_id \
         WHERE r.project_id = $1 AND r.deleted_at IS NULL ORDER BY b.engine",
    )
    .bind(project.as_uuid())
    .fetch_all(connection)
    .await?;
    let engines = found.iter().map(|row| Ok(Engine::parse(row.try_get("engine")?)));
    engines.filter_map(Result::transpose).collect()
}

/// As [`live_resources`], plus those that still await their deletion verification, which
/// observes the cluster of the project.
pub(crate) async fn placed_resources(
    connection: &mut Connection,
    project: ProjectId,
) -> Result<i64, sqlx::Error> {
    let statement = "SELECT count(*) AS found FROM resources AS r WHERE r.project_id = $1 \
         AND (r.deleted_at IS NULL OR EXISTS (SELECT 1 FROM provisioned_resources AS a \
            WHERE a.resource_id = r.id AND a.status = 'Deleted' \
            AND a.absence_proven_at IS NULL AND a.due_at IS NOT NULL))";
    count(connection, statement, project.as_uuid()).await
}

/// Attempts of a partition that are not proven gone.
pub(crate) async fn of_partition(
    connection: &mut Connection,
    partition: Partition,
) -> Result<i64, sqlx::Error> {
    let statement = "SELECT count(*) AS found FROM provisioned_resources WHERE partition = $1 \
         AND (status <> 'Deleted' OR (absence_proven_at IS NULL AND due_at IS NOT NULL))";
    count(connection, statement, partition.as_uuid()).await
}

/// How many live resources were made with this credential, of any project.
pub(crate) async fn of_credential(
    connection: &mut Connection,
    credential: CloudCredentialId,
) -> Result<i64, sqlx::Error> {
    let statement = "SELECT count(DISTINCT r.id) AS found FROM provisioned_resources a \
         JOIN resources r ON r.id = a.resource_id AND r.deleted_at IS NULL \
         WHERE a.cloud_credential_id = $1";
    count(connection, statement, credential.as_uuid()).await
}

/// A declaration locks the assignment that it uses for share, so under the lock
/// for update this count cannot change.
pub(crate) async fn of_assignment(
    connection: &mut Connection,
    project: ProjectId,
    credential: CloudCredentialId,
) -> Result<i64, sqlx::Error> {
    sqlx::query(
        "SELECT count(DISTINCT r.id) AS found FROM resources r \
         JOIN provisioned_resources a ON a.resource_id = r.id \
         WHERE r.project_id = $1 AND r.deleted_at IS NULL AND a.cloud_credential_id = $2",
    )
    .bind(project.as_uuid())
    .bind(credential.as_uuid())
    .fetch_one(connection)
    .await?
    .try_get("found")
}

/// Resources with an attempt of one of its versions that are live or not proven gone. A
/// declaration locks the blueprint for share, so under the lock for update none can come.
pub(crate) async fn of_blueprint(
    connection: &mut Connection,
    blueprint: BlueprintId,
) -> Result<BlueprintUsers, sqlx::Error> {
    let found = sqlx::query(
        "SELECT p.name || '/' || r.handle AS name, count(*) OVER () AS found FROM resources r \
         JOIN projects p ON p.id = r.project_id \
         WHERE EXISTS (SELECT 1 FROM provisioned_resources a \
            JOIN blueprint_versions v ON v.id = a.blueprint_version_id \
            WHERE a.resource_id = r.id AND v.blueprint_id = $1 \
            AND (r.deleted_at IS NULL OR a.status <> 'Deleted' \
                OR (a.absence_proven_at IS NULL AND a.due_at IS NOT NULL))) \
         ORDER BY p.name, r.handle, r.id LIMIT $2",
    )
    .bind(blueprint.as_uuid())
    .bind(BlueprintUsers::NAMED)
    .fetch_all(connection)
    .await?;
    Ok(BlueprintUsers {
        count: found.first().map_or(Ok(0), |row| row.try_get("found"))?,
        names: found.iter().map(|row| row.try_get("name")).collect::<Result<_, _>>()?,
    })
}
