//! Removes rows of Fleet that are purged, in the order of references and in batches.

use slipway_core::deletion::record::Deletion;
use slipway_core::ids::DeletionId;
use slipway_core::subject::SubjectKind;
use sqlx::Row as _;

use super::deletion::purge::forget;
use super::page::count;
use super::{Connection, OVERWRITE};
use crate::failure::Failure;
use crate::id_list::IdList;

/// The deleted stacks of a deletion `$1`: the target, or what went with its generator.
macro_rules! stacks {
    () => {
        "(SELECT id FROM stacks WHERE deletion_id = $1 AND deleted_at IS NOT NULL)"
    };
}

/// The objects of these stacks.
macro_rules! objects {
    () => {
        concat!("(SELECT id FROM deployment_objects WHERE stack_id IN ", stacks!(), ")")
    };
}

/// Deletes rows of a table, `$2` at most.
macro_rules! some_of {
    ($table:literal, $key:literal, $condition:expr) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE ",
            $key,
            " IN (SELECT ",
            $key,
            " FROM ",
            $table,
            " WHERE ",
            $condition,
            " LIMIT $2)"
        )
    };
}

/// The deleted rows of a table that carry the deletion `$1`.
macro_rules! members {
    ($table:literal) => {
        concat!("(SELECT id FROM ", $table, " WHERE deletion_id = $1 AND deleted_at IS NOT NULL)")
    };
}

/// Deletes members that have a name, `$2` at most.
macro_rules! removed {
    ($table:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE id IN (SELECT id FROM ",
            $table,
            " WHERE deletion_id = $1 AND deleted_at IS NOT NULL ORDER BY id LIMIT $2) RETURNING id"
        )
    };
}

/// Leaves before what they hang on, and what is in something before it. Every statement finds
/// its rows by the deletion, so that they are the same for each kind of target.
const LEAVES: [&str; 20] = [
    some_of!("agent_reports", "id", concat!("object_id IN ", objects!())),
    some_of!("agent_reports", "id", concat!("agent_id IN ", members!("fleet_agents"))),
    some_of!("object_health", "id", concat!("object_id IN ", objects!())),
    some_of!("object_health", "id", concat!("agent_id IN ", members!("fleet_agents"))),
    // Few rows for each stack: one for each agent.
    concat!("DELETE FROM holdings WHERE $2 = $2 AND stack_id IN ", stacks!()),
    concat!("DELETE FROM holdings WHERE $2 = $2 AND agent_id IN ", members!("fleet_agents")),
    some_of!("fleet_targets", "id", concat!("stack_id IN ", stacks!())),
    some_of!("fleet_targets", "id", concat!("agent_id IN ", members!("fleet_agents"))),
    some_of!("fleet_registrations", "id", concat!("agent_id IN ", members!("fleet_agents"))),
    some_of!("fleet_registrations", "id", concat!("generator_id IN ", members!("generators"))),
    some_of!("fleet_labels", "id", concat!("owner_id IN ", stacks!())),
    some_of!("fleet_labels", "id", concat!("owner_id IN ", members!("fleet_templates"))),
    some_of!("fleet_labels", "id", concat!("owner_id IN ", members!("fleet_agents"))),
    some_of!("fleet_annotations", "id", concat!("owner_id IN ", stacks!())),
    some_of!("fleet_annotations", "id", concat!("owner_id IN ", members!("fleet_templates"))),
    some_of!("fleet_annotations", "id", concat!("owner_id IN ", members!("fleet_agents"))),
    // Few rows for each object: one for each agent.
    concat!("DELETE FROM fleet_renderings WHERE $2 = $2 AND base_id IN ", objects!()),
    concat!(
        "DELETE FROM fleet_renderings WHERE $2 = $2 AND agent_id IN ",
        members!("fleet_agents")
    ),
    some_of!("deployment_objects", "id", concat!("stack_id IN ", stacks!())),
    some_of!("deployment_objects", "id", concat!("agent_id IN ", members!("fleet_agents"))),
];

/// What has a name, by its kind.
const NAMED: [(SubjectKind, &str); 4] = [
    (SubjectKind::Stack, removed!("stacks")),
    (SubjectKind::Template, removed!("fleet_templates")),
    (SubjectKind::Generator, removed!("generators")),
    (SubjectKind::Agent, removed!("fleet_agents")),
];

/// One batch of a purging deletion with things of Fleet; whether something is left.
pub(crate) async fn batch(
    connection: &mut Connection,
    deletion: &Deletion,
    limit: u32,
) -> Result<(u64, bool), Failure> {
    let kinds = [
        SubjectKind::Project,
        SubjectKind::Generator,
        SubjectKind::Stack,
        SubjectKind::Template,
        SubjectKind::Agent,
    ];
    if !kinds.contains(&deletion.target.kind) {
        return Ok((0, false));
    }
    let mut removed = 0;
    for statement in LEAVES {
        let rows = sqlx::query(statement)
            .bind(deletion.id.as_uuid())
            .bind(i64::from(limit))
            .execute(&mut *connection)
            .await?
            .rows_affected();
        removed += rows;
        if rows >= u64::from(limit) {
            return Ok((removed, true));
        }
    }
    for (kind, statement) in NAMED {
        let query = sqlx::query(statement).bind(deletion.id.as_uuid()).bind(i64::from(limit));
        let found = query.fetch_all(&mut *connection).await?;
        let ids = found.iter().map(|row| row.try_get("id")).collect::<Result<_, sqlx::Error>>()?;
        let ids = IdList(ids);
        removed += forget(connection, kind, &ids).await? + found.len() as u64;
        if found.len() >= limit as usize {
            return Ok((removed, true));
        }
    }
    Ok((removed, false))
}

/// Whether a generator of this deletion has something that was deleted by itself and is not
/// purged yet.
pub(crate) async fn is_needed(
    connection: &mut Connection,
    id: DeletionId,
) -> Result<bool, Failure> {
    let statement = "SELECT count(*) AS found FROM generators g WHERE g.deletion_id = $1 \
         AND g.deleted_at IS NOT NULL AND (EXISTS (SELECT 1 FROM stacks s \
            WHERE s.generator_id = g.id AND (s.deletion_id IS NULL OR s.deletion_id <> $1)) \
         OR EXISTS (SELECT 1 FROM fleet_templates t \
            WHERE t.generator_id = g.id AND (t.deletion_id IS NULL OR t.deletion_id <> $1)))";
    Ok(count(connection, statement, id.as_uuid()).await? > 0)
}

/// Overwrites content and removes what agents said about it, so that the bytes are gone while
/// rows are still needed. Answers how many rows there were.
pub(crate) async fn erase(
    connection: &mut Connection,
    id: DeletionId,
    limit: u32,
) -> Result<u64, Failure> {
    const ERASE: [&str; 5] = [
        sql!(
            "UPDATE deployment_objects SET yaml_content = '# erased', yaml_checksum = 'erased', \
             per_agent = NULL, erased_at = ",
            now,
            " WHERE id IN (SELECT id FROM deployment_objects WHERE is_deletion_marker = 0 \
             AND erased_at IS NULL AND stack_id IN (SELECT id FROM stacks \
                WHERE deletion_id = $1 AND deleted_at IS NOT NULL) LIMIT $2)"
        ),
        "UPDATE fleet_templates SET template_content = '', parameters_schema = '{}' \
         WHERE id IN (SELECT id FROM fleet_templates WHERE deletion_id = $1 \
         AND deleted_at IS NOT NULL AND template_content <> '' LIMIT $2)",
        some_of!("agent_reports", "id", concat!("object_id IN ", objects!())),
        some_of!("object_health", "id", concat!("object_id IN ", objects!())),
        // What is wrong with it may quote it.
        concat!("DELETE FROM fleet_renderings WHERE $2 = $2 AND base_id IN ", objects!()),
    ];
    if let Some((on, _)) = OVERWRITE {
        sqlx::query(on).execute(&mut *connection).await?;
    }
    let mut erased = 0;
    for statement in ERASE {
        let query = sqlx::query(statement).bind(id.as_uuid()).bind(i64::from(limit));
        erased += query.execute(&mut *connection).await?.rows_affected();
    }
    if let Some((_, off)) = OVERWRITE {
        sqlx::query(off).execute(&mut *connection).await?;
    }
    Ok(erased)
}
