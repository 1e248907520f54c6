//! Dispatches each write of Fleet to the function of its table. What a deletion writes over
//! many rows is one statement whatever their number.

use slipway_core::fleet::FleetWrite;
use slipway_core::fleet::write::MembersLeave;
use slipway_core::ids::{DeploymentObjectId, Revision, StackId, TemplateId};
use slipway_core::{ErrorKind, Refusal, Timestamp};

use super::page::taken;
use super::table::{insert, update};
use super::{Connection, agent, generator, links, objects, offers, stack, tags, template, writes};
use crate::failure::Failure;
use crate::micros::Micros;

pub(crate) async fn apply(connection: &mut Connection, write: &FleetWrite) -> Result<(), Failure> {
    match write {
        FleetWrite::GeneratorInsert(row) => {
            insert(connection, &generator::INSERT, row, "name").await
        }
        FleetWrite::GeneratorUpdate(row) => {
            renamed(update(connection, &generator::UPDATE, row).await, row.name.as_str())
        }
        FleetWrite::StackInsert(row) => insert(connection, &stack::INSERT, row, "name").await,
        FleetWrite::StackUpdate(row) => {
            renamed(update(connection, &stack::UPDATE, row).await, row.name.as_str())
        }
        FleetWrite::TemplateInsert(row) => insert(connection, &template::INSERT, row, "name").await,
        FleetWrite::AgentInsert(row) => insert(connection, &agent::INSERT, row, "name").await,
        FleetWrite::AgentUpdate(row) => {
            renamed(update(connection, &agent::UPDATE, row).await, row.name.as_str())
        }
        FleetWrite::ObjectInsert(row) => objects::INSERT.write(connection, &[row]).await,
        FleetWrite::ObjectsMake(rows) => objects::make(connection, rows).await,
        FleetWrite::ObjectWithdraw(id, at) => withdraw(connection, *id, *at).await,
        FleetWrite::MembersLeave(members) => leave(connection, members).await,
        FleetWrite::StacksNumber(numbers) => number(connection, numbers).await,
        FleetWrite::LabelInsert(row) => {
            let exists = |_: &_| exists("label");
            tags::LABEL_INSERT.write_guarded(connection, &[row], exists).await
        }
        FleetWrite::AnnotationInsert(row) => {
            let exists = |_: &_| exists("key");
            tags::ANNOTATION_INSERT.write_guarded(connection, &[row], exists).await
        }
        FleetWrite::RegistrationInsert(row) => {
            let exists = |_: &_| exists("agent_id");
            links::REGISTRATION_INSERT.write_guarded(connection, &[row], exists).await
        }
        FleetWrite::TargetInsert(row) => {
            let exists = |_: &_| exists("stack_id");
            links::TARGET_INSERT.write_guarded(connection, &[row], exists).await
        }
        FleetWrite::LabelRemove(id) => removed(tags::remove_label(connection, *id).await?),
        FleetWrite::AnnotationRemove(id) => {
            removed(tags::remove_annotation(connection, *id).await?)
        }
        FleetWrite::RegistrationRemove(id) => {
            removed(links::remove_registration(connection, *id).await?)
        }
        FleetWrite::TargetRemove(id) => removed(links::remove_target(connection, *id).await?),
        FleetWrite::Offer(offered) => offers::hold(connection, offered).await,
    }
}

/// Somebody has the new name. The transaction ends with it.
fn renamed(written: Result<(), Failure>, name: &str) -> Result<(), Failure> {
    match written {
        Err(Failure::Database(sqlx::Error::Database(error))) if error.is_unique_violation() => {
            Err(Failure::Refused(taken("name", name)))
        }
        written => written,
    }
}

/// The unique index refused: somebody else added it a moment ago.
fn exists(field: &str) -> Refusal {
    let message = "somebody else added it a moment ago; there is nothing left to do";
    Refusal::new(ErrorKind::EntryExists, message).at(field)
}

fn removed(rows: u64) -> Result<(), Failure> {
    writes::one_row(rows, || {
        let message = "somebody else removed it a moment ago; there is nothing left to do";
        Refusal::new(ErrorKind::EntryNotFound, message)
    })
}

async fn withdraw(
    connection: &mut Connection,
    id: DeploymentObjectId,
    at: Timestamp,
) -> Result<(), Failure> {
    sqlx::query("UPDATE deployment_objects SET withdrawn_at = $2 WHERE id = $1")
        .bind(id.as_uuid())
        .bind(Micros::from(at))
        .execute(connection)
        .await?;
    Ok(())
}

/// Marks stacks and templates, each unless it was written since it was read.
async fn leave(connection: &mut Connection, members: &MembersLeave) -> Result<(), Failure> {
    macro_rules! mark {
        ($table:literal, $more:literal, ($($column:ident: $kind:ident),*)) => {
            concat!(
                "UPDATE ", $table, " SET deletion_id = given.deletion_id, \
                 deleted_at = given.deleted_at, ", $more, "revision = ", $table,
                ".revision + 1, updated_at = ", sql!(greatest, "(", now, ", updated_at)"),
                " FROM ",
                rows_from_json!(
                    id: uuid, revision: bigint, deletion_id: uuid, deleted_at: time
                    $(, $column: $kind)*
                ),
                " WHERE ", $table, ".id = given.id AND ", $table, ".revision = given.revision \
                 RETURNING ", $table, ".id AS id"
            )
        };
    }
    const STACKS: &str =
        mark!("stacks", "last_sequence = given.last_sequence, ", (last_sequence: bigint));
    const TEMPLATES: &str = mark!("fleet_templates", "", ());
    let MembersLeave { deletion_id, deleted_at, stacks, templates } = members;
    let stacks: Vec<_> = stacks.iter().collect();
    let row = |stack: &slipway_core::fleet::write::StackLeaves| {
        let row = json_row!(
            id: uuid = stack.id,
            revision: bigint = stack.revision,
            deletion_id: uuid = deletion_id,
            deleted_at: time = *deleted_at,
            last_sequence: bigint = stack.sequence,
        );
        (stack.id.as_uuid(), row)
    };
    writes::write_guarded(connection, STACKS, &stacks, row, |stack| {
        writes::stale(StackId::KIND, stack.id, stack.revision)
    })
    .await?;
    let templates: Vec<_> = templates.iter().collect();
    let row = |(id, revision): &(TemplateId, Revision)| {
        let row = json_row!(
            id: uuid = id,
            revision: bigint = revision,
            deletion_id: uuid = deletion_id,
            deleted_at: time = *deleted_at,
        );
        (id.as_uuid(), row)
    };
    writes::write_guarded(connection, TEMPLATES, &templates, row, |(id, revision)| {
        writes::stale(TemplateId::KIND, id, *revision)
    })
    .await
}

/// The number of the newest object of stacks whose rows are locked.
async fn number(connection: &mut Connection, numbers: &[(StackId, i64)]) -> Result<(), Failure> {
    const NUMBER: &str = concat!(
        "UPDATE stacks SET last_sequence = given.last_sequence FROM ",
        rows_from_json!(id: uuid, last_sequence: bigint),
        " WHERE stacks.id = given.id"
    );
    let rows: Vec<_> = numbers
        .iter()
        .map(|(id, sequence)| json_row!(id: uuid = id, last_sequence: bigint = sequence,))
        .collect();
    Ok(writes::write(connection, NUMBER, &rows).await?)
}
