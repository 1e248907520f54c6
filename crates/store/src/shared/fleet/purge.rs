//! Removes rows of Fleet that are purged, in the order of references and in batches.

use slipway_core::deletion::record::Deletion;
use slipway_core::subject::SubjectKind;

use super::Connection;
use crate::failure::Failure;

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

/// Deletes rows of a table, `$3` at most.
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
            " WHERE $1 = $1 AND $2 = $2 AND ",
            $condition,
            " LIMIT $3)"
        )
    };
}

const OF_STACKS: [&str; 8] = [
    some_of!("agent_reports", "id", concat!("object_id IN ", objects!())),
    some_of!("object_health", "id", concat!("object_id IN ", objects!())),
    // Few rows for each stack: one for each agent.
    concat!("DELETE FROM holdings WHERE $2 = $2 AND $3 = $3 AND stack_id IN ", stacks!()),
    some_of!("fleet_targets", "id", concat!("stack_id IN ", stacks!())),
    some_of!("fleet_labels", "id", concat!("owner_id IN ", stacks!())),
    some_of!("fleet_annotations", "id", concat!("owner_id IN ", stacks!())),
    some_of!("deployment_objects", "id", concat!("stack_id IN ", stacks!())),
    some_of!("stacks", "id", "deletion_id = $1 AND deleted_at IS NOT NULL"),
];

/// The deleted templates of a deletion `$1`.
macro_rules! templates {
    () => {
        "(SELECT id FROM fleet_templates WHERE deletion_id = $1 AND deleted_at IS NOT NULL)"
    };
}

const OF_TEMPLATES: [&str; 3] = [
    some_of!("fleet_labels", "id", concat!("owner_id IN ", templates!())),
    some_of!("fleet_annotations", "id", concat!("owner_id IN ", templates!())),
    some_of!("fleet_templates", "id", "deletion_id = $1 AND deleted_at IS NOT NULL"),
];

const OF_GENERATOR: [&str; 2] = [
    some_of!("fleet_registrations", "id", "generator_id = $2"),
    some_of!("generators", "id", "id = $2 AND deletion_id = $1 AND deleted_at IS NOT NULL"),
];

const OF_AGENT: [&str; 9] = [
    some_of!("agent_reports", "id", "agent_id = $2"),
    some_of!("object_health", "id", "agent_id = $2"),
    "DELETE FROM holdings WHERE $1 = $1 AND $3 = $3 AND agent_id = $2",
    some_of!("deployment_objects", "id", "agent_id = $2"),
    some_of!("fleet_registrations", "id", "agent_id = $2"),
    some_of!("fleet_targets", "id", "agent_id = $2"),
    some_of!("fleet_labels", "id", "owner_id = $2"),
    some_of!("fleet_annotations", "id", "owner_id = $2"),
    some_of!("fleet_agents", "id", "id = $2 AND deletion_id = $1 AND deleted_at IS NOT NULL"),
];

/// One batch of a purging deletion of Fleet; whether something is left.
pub(crate) async fn batch(
    connection: &mut Connection,
    deletion: &Deletion,
    limit: u32,
) -> Result<(u64, bool), Failure> {
    let steps: Vec<&'static str> = match deletion.target.kind {
        SubjectKind::Generator => {
            OF_STACKS.into_iter().chain(OF_TEMPLATES).chain(OF_GENERATOR).collect()
        }
        SubjectKind::Stack => OF_STACKS.to_vec(),
        SubjectKind::Template => OF_TEMPLATES.to_vec(),
        SubjectKind::Agent => OF_AGENT.to_vec(),
        _ => return Ok((0, false)),
    };
    let mut removed = 0;
    for statement in steps {
        let rows = sqlx::query(statement)
            .bind(deletion.id.as_uuid())
            .bind(deletion.target.id)
            .bind(i64::from(limit))
            .execute(&mut *connection)
            .await?
            .rows_affected();
        removed += rows;
        if rows >= u64::from(limit) {
            return Ok((removed, true));
        }
    }
    Ok((removed, false))
}
