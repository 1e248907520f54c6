//! Dispatches each write of Fleet to the function of its table. What a deletion writes over
//! many rows is one statement whatever their number.

use slipway_core::fleet::FleetWrite;
use slipway_core::fleet::write::{MemberLeaves, MembersLeave};
use slipway_core::ids::{DeploymentObjectId, StackId};
use slipway_core::subject::SubjectKind;
use slipway_core::{ErrorKind, Refusal, Timestamp};

use super::page::taken;
use super::table::{insert, update};
use super::{
    Connection, agent, generator, links, objects, offers, prunes, renderings, stack, tags,
    template, writes,
};
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
        FleetWrite::MembersLeave(members) => Box::pin(leave(connection, members)).await,
        FleetWrite::StacksNumber(numbers) => number(connection, NUMBER, numbers).await,
        FleetWrite::StacksReturn(numbers) => number(connection, RETURN, numbers).await,
        FleetWrite::LabelInsert(row) => {
            let exists = |_: &_| exists("label");
            tags::LABEL_INSERT.write_guarded(connection, &[row], exists).await?;
            tags::count(connection, row.owner).await
        }
        FleetWrite::AnnotationInsert(row) => {
            let exists = |_: &_| exists("key");
            tags::ANNOTATION_INSERT.write_guarded(connection, &[row], exists).await?;
            tags::count(connection, row.owner).await
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
        FleetWrite::Renderings(rows) => renderings::record(connection, rows).await,
        FleetWrite::PruneConfirm(confirmed) => prunes::confirm(connection, confirmed).await,
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

/// With what it is for each agent.
async fn withdraw(
    connection: &mut Connection,
    id: DeploymentObjectId,
    at: Timestamp,
) -> Result<(), Failure> {
    sqlx::query(
        "UPDATE deployment_objects SET withdrawn_at = $2 WHERE id = $1 OR id IN \
         (SELECT object_id FROM fleet_renderings WHERE base_id = $1)",
    )
    .bind(id.as_uuid())
    .bind(Micros::from(at))
    .execute(connection)
    .await?;
    Ok(())
}

/// Marks members, each unless it was written since it was read: a statement for each table.
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
    const TABLES: [(SubjectKind, &str); 4] = [
        (SubjectKind::Agent, mark!("fleet_agents", "", ())),
        (SubjectKind::Generator, mark!("generators", "", ())),
        (SubjectKind::Stack, STACKS),
        (SubjectKind::Template, mark!("fleet_templates", "", ())),
    ];
    let MembersLeave { deletion_id, deleted_at, rows } = members;
    let row = |member: &MemberLeaves| {
        let row = json_row!(
            id: uuid = member.subject.id,
            revision: bigint = member.revision,
            deletion_id: uuid = deletion_id,
            deleted_at: time = *deleted_at,
            last_sequence: bigint = member.sequence,
        );
        (member.subject.id, row)
    };
    for (kind, statement) in TABLES {
        let of_kind: Vec<_> = rows.iter().filter(|member| member.subject.kind == kind).collect();
        writes::write_guarded(connection, statement, &of_kind, row, |member| {
            writes::stale(kind.as_str(), member.subject.id, member.revision)
        })
        .await?;
    }
    Ok(())
}

const NUMBER: &str = concat!(
    "UPDATE stacks SET last_sequence = given.last_sequence FROM ",
    rows_from_json!(id: uuid, last_sequence: bigint),
    " WHERE stacks.id = given.id"
);

/// The same, and everybody may have that object.
const RETURN: &str = concat!(
    "UPDATE stacks SET last_sequence = given.last_sequence, rollout_id = NULL, \
     settled_object_id = NULL, rolls_back = 0 FROM ",
    rows_from_json!(id: uuid, last_sequence: bigint),
    " WHERE stacks.id = given.id"
);

/// The number of the newest object of stacks whose rows are locked.
async fn number(
    connection: &mut Connection,
    statement: &'static str,
    numbers: &[(StackId, i64)],
) -> Result<(), Failure> {
    let rows: Vec<_> = numbers
        .iter()
        .map(|(id, sequence)| json_row!(id: uuid = id, last_sequence: bigint = sequence,))
        .collect();
    Ok(writes::write(connection, statement, &rows).await?)
}
