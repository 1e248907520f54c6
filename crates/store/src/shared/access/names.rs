//! Names of things of every kind, and what has a name. The rows of all rooms are read and
//! none is written.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use slipway_core::ids::ProjectId;
use slipway_core::operations::reference::Candidate;
use slipway_core::subject::SubjectKind;
use sqlx::Row as _;
use uuid::Uuid;

use super::Connection;
use crate::failure::Failure;
use crate::id_list::IdList;

/// More than a person can tell apart.
const MOST: i64 = 10;

pub(crate) async fn names(
    connection: &mut Connection,
    ids: &[Uuid],
) -> Result<BTreeMap<Uuid, String>, Failure> {
    macro_rules! named {
        ($name:literal, $table:literal) => {
            sql!("SELECT d.id, ", $name, " AS name FROM ", $table, " WHERE d.id ", (one_of "$1"))
        };
    }
    const NAMES: &str = concat!(
        named!("d.name", "projects d"),
        " UNION ALL ",
        named!("d.name", "clouds d"),
        " UNION ALL ",
        named!("d.name", "cloud_credentials d"),
        " UNION ALL ",
        named!("d.name", "clusters d"),
        " UNION ALL ",
        named!("d.slug", "blueprints d"),
        " UNION ALL ",
        named!(
            "b.slug || '@' || d.version",
            "blueprint_versions d JOIN blueprints b ON b.id = d.blueprint_id"
        ),
        " UNION ALL ",
        named!("d.key", "label_definitions d"),
        " UNION ALL ",
        named!("d.handle", "resources d"),
        " UNION ALL ",
        named!("r.handle", "provisioned_resources d JOIN resources r ON r.id = d.resource_id"),
        " UNION ALL ",
        named!(
            "r.handle",
            "bootstrap_tokens d JOIN provisioned_resources a ON a.id = d.provisioned_resource_id \
             JOIN resources r ON r.id = a.resource_id"
        ),
        " UNION ALL ",
        named!("d.hostname", "nodes d"),
        " UNION ALL ",
        named!("d.name", "api_keys d"),
        " UNION ALL ",
        named!("d.name", "event_subscriptions d"),
    );
    let list: IdList = ids.iter().copied().collect();
    let found = sqlx::query(NAMES).bind(list).fetch_all(connection).await?;
    let mut names = BTreeMap::new();
    for row in &found {
        names.insert(row.try_get("id")?, row.try_get("name")?);
    }
    Ok(names)
}

pub(crate) async fn candidates(
    connection: &mut Connection,
    (kind, name, ids, within): (SubjectKind, &str, &RangeInclusive<Uuid>, Option<ProjectId>),
) -> Result<Vec<Candidate>, Failure> {
    let Some(statement) = statement(kind) else { return Ok(Vec::new()) };
    let found = sqlx::query(statement)
        .bind(name)
        .bind(*ids.start())
        .bind(*ids.end())
        .bind(within.map(|project| project.as_uuid()))
        .bind(MOST)
        .fetch_all(connection)
        .await?;
    let candidate = |row: &super::Row| {
        Ok(Candidate {
            id: row.try_get("id")?,
            name: row.try_get("name")?,
            is_named: row.try_get::<i32, _>("named")? == 1,
            is_live: row.try_get::<i32, _>("live")? == 1,
        })
    };
    found.iter().map(candidate).collect()
}

/// `None` for a kind that nobody names.
fn statement(kind: SubjectKind) -> Option<&'static str> {
    macro_rules! fitting {
        ($table:literal, $name:literal, $named:literal, $live:literal, $project:expr) => {
            concat!(
                "SELECT d.id, ",
                $name,
                " AS name, CASE WHEN ",
                $named,
                " THEN 1 ELSE 0 END AS named, CASE WHEN ",
                $live,
                " THEN 1 ELSE 0 END AS live FROM ",
                $table,
                " WHERE (",
                $named,
                " OR d.id BETWEEN $2 AND $3) AND ($4 IS NULL OR ",
                $project,
                ") ORDER BY live DESC, d.id DESC LIMIT $5"
            )
        };
    }
    // A kind without names; the parameter of the name has to occur.
    macro_rules! by_id {
        ($table:literal, $project:expr) => {
            fitting!($table, "NULL", "$1 IS NULL", "1 = 1", $project)
        };
    }
    Some(match kind {
        SubjectKind::Project => {
            fitting!("projects d", "d.name", "d.name = $1", "d.deleted_at IS NULL", "d.id = $4")
        }
        SubjectKind::Cloud => {
            fitting!("clouds d", "d.name", "d.name = $1", "d.deleted_at IS NULL", "1 = 1")
        }
        SubjectKind::Credential => fitting!(
            "cloud_credentials d JOIN clouds c ON c.id = d.cloud_id",
            "d.name || ' of cloud ' || c.name",
            "d.name = $1",
            "d.deleted_at IS NULL",
            "1 = 1"
        ),
        SubjectKind::Cluster => fitting!("clusters d", "d.name", "d.name = $1", "1 = 1", "1 = 1"),
        SubjectKind::Blueprint => {
            fitting!("blueprints d", "d.slug", "d.slug = $1", "1 = 1", "1 = 1")
        }
        SubjectKind::Resource => fitting!(
            "resources d JOIN projects p ON p.id = d.project_id",
            "d.handle || ' of project ' || p.name",
            "d.handle = $1",
            "d.deleted_at IS NULL",
            "d.project_id = $4"
        ),
        SubjectKind::Node => fitting!(
            "nodes d JOIN resources r ON r.id = d.resource_id",
            "d.hostname || ' of resource ' || r.handle",
            "(d.hostname = $1 OR r.handle = $1)",
            "d.deregistered_at IS NULL",
            "d.project_id = $4"
        ),
        SubjectKind::ApiKey => fitting!(
            "api_keys d",
            "d.name",
            "d.name = $1",
            "d.revoked_at IS NULL",
            "d.project_id = $4"
        ),
        SubjectKind::ProvisionedResource => by_id!("provisioned_resources d", "d.project_id = $4"),
        SubjectKind::BootstrapToken => by_id!("bootstrap_tokens d", "d.project_id = $4"),
        SubjectKind::Deletion => by_id!("deletions d", "d.project_id = $4"),
        SubjectKind::LeakRecord => by_id!("leak_records d", "1 = 0"),
        _ => return None,
    })
}
