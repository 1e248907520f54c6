//! The project that something belongs to, and what has an id.

use std::ops::RangeInclusive;

use slipway_app::access::port::Owned;
use slipway_core::ids::ProjectId;
use slipway_core::operations::explanation::ExplainedKind;
use sqlx::Row as _;
use uuid::Uuid;

use super::Connection;
use crate::failure::Failure;

pub(crate) async fn project_of(
    connection: &mut Connection,
    owned: Owned,
) -> Result<Option<ProjectId>, Failure> {
    let query = match owned {
        Owned::Resource(id) => {
            sqlx::query("SELECT project_id FROM resources WHERE id = $1").bind(id.as_uuid())
        }
        Owned::Node(id) => {
            sqlx::query("SELECT project_id FROM nodes WHERE id = $1").bind(id.as_uuid())
        }
        Owned::Token(id) => {
            sqlx::query("SELECT project_id FROM bootstrap_tokens WHERE id = $1").bind(id.as_uuid())
        }
        Owned::Plan(id) => {
            sqlx::query("SELECT project_id FROM deletion_plans WHERE id = $1").bind(id.as_uuid())
        }
        Owned::Deletion(id) => {
            sqlx::query("SELECT project_id FROM deletions WHERE id = $1").bind(id.as_uuid())
        }
    };
    let row = query.fetch_optional(&mut *connection).await?;
    let project = match row {
        Some(row) => row.try_get::<Option<Uuid>, _>("project_id")?,
        None => None,
    };
    Ok(project.map(ProjectId::new))
}

/// Of each table the rows with an id in the range `$1` to `$2`, up to `$4`, as far as
/// their project is `$3`.
macro_rules! ids_of {
    ($kind:literal, $table:literal, $project:expr) => {
        concat!(
            "SELECT kind, id FROM (SELECT '",
            $kind,
            "' AS kind, d.id FROM ",
            $table,
            " d WHERE d.id BETWEEN $1 AND $2 AND ($3 IS NULL OR ",
            $project,
            ") ORDER BY d.id LIMIT $4) AS ",
            $kind
        )
    };
}

pub(crate) async fn id_find(
    connection: &mut Connection,
    (ids, within, limit): (&RangeInclusive<Uuid>, Option<ProjectId>, u32),
) -> Result<Vec<(ExplainedKind, Uuid)>, Failure> {
    const FIND: &str = concat!(
        ids_of!("resource", "resources", "d.project_id = $3"),
        " UNION ALL ",
        ids_of!("attempt", "provisioned_resources", "d.project_id = $3"),
        " UNION ALL ",
        ids_of!("node", "nodes", "d.project_id = $3"),
        " UNION ALL ",
        ids_of!("token", "bootstrap_tokens", "d.project_id = $3"),
        " UNION ALL ",
        ids_of!("project", "projects", "d.id = $3"),
        " UNION ALL ",
        ids_of!("deletion", "deletions", "d.project_id = $3"),
        " UNION ALL ",
        ids_of!("cluster", "clusters", "1 = 1"),
        " UNION ALL ",
        ids_of!("leak", "leak_records", "1 = 0"),
        " UNION ALL ",
        ids_of!("rollout", "rollouts", "d.project_id = $3"),
        " UNION ALL ",
        ids_of!("stack", "stacks", "d.project_id = $3"),
        " UNION ALL ",
        ids_of!("agent", "fleet_agents", "d.project_id = $3"),
        " UNION ALL ",
        ids_of!("generator", "generators", "d.project_id = $3"),
        " UNION ALL ",
        ids_of!("tenant", "tenants", "d.project_id = $3"),
        " UNION ALL ",
        ids_of!("workspace", "workspaces", "d.project_id = $3"),
    );
    let found = sqlx::query(FIND)
        .bind(*ids.start())
        .bind(*ids.end())
        .bind(within.map(|project| project.as_uuid()))
        .bind(i64::from(limit))
        .fetch_all(connection)
        .await?;
    let mut subjects = Vec::with_capacity(found.len());
    for row in &found {
        let kind: String = row.try_get("kind")?;
        subjects.extend(ExplainedKind::parse(&kind).zip(Some(row.try_get("id")?)));
    }
    Ok(subjects)
}
