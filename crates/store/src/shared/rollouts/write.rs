//! Writes roll-outs and their members. Only this room writes these tables.

use std::time::Duration;

use serde_json::{Value, json};
use slipway_core::ids::RolloutId;
use slipway_core::rollouts::RolloutsWrite;
use slipway_core::rollouts::next::MemberChange;
use slipway_core::rollouts::record::{Member, MemberState, Rollout};
use slipway_core::rollouts::rules::under_way;
use slipway_core::rollouts::write::Begin;
use slipway_core::{ErrorKind, Refusal};
use slipway_durable::claim::micros;
use slipway_durable::database::End;
use sqlx::Row as _;
use sqlx::types::Json;

use super::row_set::RowSet;
use super::{Connection, writes};
use crate::failure::Failure;
use crate::id_list::IdList;

pub(crate) async fn apply(
    connection: &mut Connection,
    write: &RolloutsWrite,
) -> Result<(), Failure> {
    match write {
        RolloutsWrite::RolloutInsert(rollout, members) => {
            INSERT.write_guarded(connection, &[rollout], under_way).await?;
            insert_members(connection, rollout.id, members).await
        }
        RolloutsWrite::RolloutUpdate(rollout) => {
            UPDATE.write_guarded(connection, &[rollout], stale).await
        }
        RolloutsWrite::MemberBegin(begun) => begin(connection, begun).await,
        RolloutsWrite::MembersEnd(id, changes) => end(connection, *id, changes).await,
        RolloutsWrite::FailedBecome(id, state) => become_(connection, *id, *state).await,
    }
}

fn stale(rollout: &Rollout) -> Refusal {
    writes::stale(RolloutId::KIND, rollout.id, rollout.revision)
}

const INSERT: RowSet<Rollout> = insert_rows!(guarded, "rollouts", |rollout: &Rollout| {
    id: uuid = rollout.id,
    revision: bigint = rollout.revision,
    purpose: text = rollout.purpose,
    subject_kind: text = rollout.subject.kind,
    subject_id: uuid = rollout.subject.id,
    name: text = rollout.name,
    project_id: uuid = rollout.project_id,
    change: json = rollout.change,
    strategy: json = rollout.strategy,
    state: text = rollout.state,
    message: text = rollout.message,
    requested_by: text = rollout.requested_by,
    reason: text = rollout.reason,
    requested_at: time = rollout.requested_at,
    ended_at: time = rollout.ended_at,
});

const UPDATE: RowSet<Rollout> = update_rows!(undated, "rollouts" by id, |rollout: &Rollout| {
    state: text = rollout.state,
    message: text = rollout.message,
    ended_at: time = rollout.ended_at,
});

const MEMBERS: &str = concat!(
    "INSERT INTO rollout_members (rollout_id, subject_kind, subject_id, name, wave, position, \
     state, before) SELECT given.rollout_id, given.subject_kind, given.subject_id, given.name, \
     given.wave, given.position, given.state, given.before FROM ",
    rows_from_json!(
        rollout_id: uuid,
        subject_kind: text,
        subject_id: uuid,
        name: text,
        wave: integer,
        position: integer,
        state: text,
        before: json
    )
);

async fn insert_members(
    connection: &mut Connection,
    id: RolloutId,
    members: &[Member],
) -> Result<(), Failure> {
    let row = |member: &Member| {
        json!({
            "rollout_id": id,
            "subject_kind": member.subject.kind,
            "subject_id": member.subject.id,
            "name": member.name,
            "wave": member.wave,
            "position": member.position,
            "state": member.state,
            "before": member.before,
        })
    };
    let rows: Vec<Value> = members.iter().map(row).collect();
    Ok(writes::write(connection, MEMBERS, &rows).await?)
}

/// The roll-out is locked, so that a pause that was answered lets nobody begin any more.
async fn begin(connection: &mut Connection, begun: &Begin) -> Result<(), Failure> {
    let Begin { rollout, member, from, to, before } = begun;
    let current =
        sqlx::query(sql!("SELECT id FROM rollouts WHERE id = $1 AND revision = $2", for_share))
            .bind(rollout.id.as_uuid())
            .bind(rollout.revision.0)
            .fetch_optional(&mut *connection)
            .await?;
    if current.is_none() {
        return Err(Failure::Refused(stale(rollout)));
    }
    let written = sqlx::query(sql!(
        "UPDATE rollout_members SET state = $4, changed_at = ",
        now,
        ", message = NULL, before = coalesce($5, before) \
         WHERE rollout_id = $1 AND subject_id = $2 AND state = $3"
    ))
    .bind(rollout.id.as_uuid())
    .bind(member.id)
    .bind(from.as_str())
    .bind(to.as_str())
    .bind(before.as_ref().map(Json))
    .execute(connection)
    .await?;
    writes::one_row(written.rows_affected(), || {
        let message = format!("a member of the {} is not {from} any more", rollout.title());
        Refusal::new(ErrorKind::RevisionStale, message)
    })
}

const ENDS: &str = concat!(
    "UPDATE rollout_members SET state = given.state, message = given.message FROM ",
    rows_from_json!(rollout_id: uuid, subject_id: uuid, state: text, message: text),
    " WHERE rollout_members.rollout_id = given.rollout_id \
     AND rollout_members.subject_id = given.subject_id"
);

async fn end(
    connection: &mut Connection,
    id: RolloutId,
    changes: &[MemberChange],
) -> Result<(), Failure> {
    let row = |change: &MemberChange| {
        json!({
            "rollout_id": id,
            "subject_id": change.member.id,
            "state": change.to,
            "message": change.message,
        })
    };
    let rows: Vec<Value> = changes.iter().map(row).collect();
    Ok(writes::write(connection, ENDS, &rows).await?)
}

/// The time of a member counts from when it was changed.
pub(crate) const STARTS: [&str; 1] =
    [sql!("UPDATE rollout_members SET changed_at = ", now, " WHERE changed_at > ", now)];

/// Members that are observed again have all of their time again; one that could not even be
/// changed waits for its turn.
async fn become_(
    connection: &mut Connection,
    id: RolloutId,
    state: MemberState,
) -> Result<(), Failure> {
    sqlx::query(sql!(
        "UPDATE rollout_members SET message = NULL, \
         state = CASE WHEN changed_at IS NULL AND $2 = 'changing' THEN 'waiting' ELSE $2 END, \
         changed_at = CASE WHEN changed_at IS NULL THEN NULL ELSE ",
        now,
        " END WHERE rollout_id = $1 AND state = 'failed'"
    ))
    .bind(id.as_uuid())
    .bind(state.as_str())
    .execute(connection)
    .await?;
    Ok(())
}

/// Members first, since each refers to its roll-out.
pub(crate) async fn prune(
    connection: &mut Connection,
    (keep, limit): (Duration, u32),
) -> Result<End<u64>, Failure> {
    const OLD: &str = sql!(
        "SELECT id FROM rollouts WHERE ended_at IS NOT NULL AND ended_at <= ",
        now,
        (minus_micros "$1"),
        " AND NOT EXISTS (SELECT 1 FROM stacks s WHERE s.rollout_id = rollouts.id) \
         ORDER BY ended_at, id LIMIT $2"
    );
    let found = sqlx::query(OLD).bind(micros(keep)).bind(i64::from(limit));
    let found = found.fetch_all(&mut *connection).await?;
    if found.is_empty() {
        return Ok(End::Rollback(0));
    }
    let ids = found.iter().map(|row| row.try_get("id"));
    let ids = IdList(ids.collect::<Result<_, _>>()?);
    for statement in [
        sql!("DELETE FROM rollout_members WHERE rollout_id ", (one_of "$1")),
        sql!("DELETE FROM rollouts WHERE id ", (one_of "$1")),
    ] {
        sqlx::query(statement).bind(ids.clone()).execute(&mut *connection).await?;
    }
    Ok(End::Commit(found.len() as u64))
}
