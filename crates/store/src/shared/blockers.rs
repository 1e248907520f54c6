//! The table of blockers, of every kind of subject.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use slipway_core::blocker::{Blocker, BlockerCode};
use slipway_core::subject::{Subject, SubjectKind};
use sqlx::types::Json;
use uuid::Uuid;

use super::json_values::JsonTime;
use super::page::{count_by, readable};
use super::{Connection, Row, rows, writes};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::id_list::IdList;
use crate::micros::Micros;

#[derive(Serialize)]
struct BlockerRow<'a> {
    subject_kind: &'static str,
    subject_id: Uuid,
    code: &'static str,
    since: JsonTime,
    owner: &'static str,
    message: &'a str,
    evidence: &'a Value,
    next_retry_at: Option<JsonTime>,
}

/// Replaces the whole sets of blockers of these subjects.
pub(crate) async fn replace(
    connection: &mut Connection,
    sets: &[(Subject, &[Blocker])],
) -> Result<(), Failure> {
    let mut by_kind: BTreeMap<SubjectKind, Vec<Uuid>> = BTreeMap::new();
    for (subject, _) in sets {
        by_kind.entry(subject.kind).or_default().push(subject.id);
    }
    for (kind, subjects) in by_kind {
        sqlx::query(sql!(
            "DELETE FROM blockers WHERE subject_kind = $1 AND subject_id ",
            (one_of "$2")
        ))
        .bind(kind.as_str())
        .bind(IdList(subjects))
        .execute(&mut *connection)
        .await?;
    }
    let rows: Vec<_> = sets
        .iter()
        .flat_map(|(subject, blockers)| blockers.iter().map(|blocker| (*subject, blocker)))
        .map(|(subject, blocker)| BlockerRow {
            subject_kind: subject.kind.as_str(),
            subject_id: subject.id,
            code: blocker.code.as_str(),
            since: blocker.since.into(),
            owner: blocker.code.owner(),
            message: &blocker.message,
            evidence: &blocker.evidence,
            next_retry_at: blocker.next_retry_at.map(JsonTime::from),
        })
        .collect();
    const INSERT: &str = concat!(
        "INSERT INTO blockers (subject_kind, subject_id, code, since, owner, message, \
         evidence, next_retry_at) SELECT given.subject_kind, given.subject_id, given.code, \
         given.since, given.owner, given.message, coalesce(given.evidence, 'null'), \
         given.next_retry_at FROM ",
        rows_from_json!(
            subject_kind: text,
            subject_id: uuid,
            code: text,
            since: time,
            owner: text,
            message: text,
            evidence: json,
            next_retry_at: time,
        ),
    );
    Ok(writes::write(connection, INSERT, &rows).await?)
}

/// Adds a blocker, or updates the one of the same code, which keeps its age.
pub(crate) async fn put(
    connection: &mut Connection,
    subject: Subject,
    blocker: &Blocker,
) -> Result<(), Failure> {
    sqlx::query(
        "INSERT INTO blockers (subject_kind, subject_id, code, since, owner, message, evidence, \
         next_retry_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) \
         ON CONFLICT (subject_kind, subject_id, code) DO UPDATE SET owner = excluded.owner, \
         message = excluded.message, evidence = excluded.evidence, \
         next_retry_at = excluded.next_retry_at",
    )
    .bind(subject.kind.as_str())
    .bind(subject.id)
    .bind(blocker.code.as_str())
    .bind(Micros::from(blocker.since))
    .bind(blocker.code.owner())
    .bind(&blocker.message)
    .bind(Json(&blocker.evidence))
    .bind(writes::optional(blocker.next_retry_at))
    .execute(connection)
    .await?;
    Ok(())
}

/// The readable blockers of a subject.
pub(crate) async fn of_subject(
    connection: &mut Connection,
    subject: Subject,
) -> Result<Vec<Blocker>, Failure> {
    let found = sqlx::query(
        "SELECT subject_id AS id, code, message, since, evidence, next_retry_at FROM blockers \
         WHERE subject_kind = $1 AND subject_id = $2 ORDER BY code",
    )
    .bind(subject.kind.as_str())
    .bind(subject.id)
    .fetch_all(connection)
    .await?;
    Ok(readable(subject.kind.as_str(), &found, hydrate))
}

pub(crate) fn hydrate(row: &Row) -> Result<Blocker, Fault> {
    Ok(Blocker {
        code: rows::member(row, "code", BlockerCode::parse)?,
        message: rows::get(row, "message")?,
        since: rows::time(row, "since")?,
        evidence: rows::json(row, "evidence")?,
        next_retry_at: rows::time_or_null(row, "next_retry_at")?,
    })
}

/// How many blockers there are of each code that this version knows.
pub(crate) async fn count_by_code(
    connection: &mut Connection,
) -> Result<BTreeMap<BlockerCode, u64>, sqlx::Error> {
    let statement = "SELECT code AS name, count(*) AS found FROM blockers GROUP BY code";
    count_by(connection, statement, BlockerCode::parse).await
}
