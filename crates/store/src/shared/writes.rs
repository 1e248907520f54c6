//! Writing by sets, and the conditions of writes.
//!
//! A statement takes its rows as one JSON parameter, whatever their number, so
//! a cascade over a thousand rows costs as many statements as one over two. A
//! conditional statement answers the ids of the rows that it wrote; the first
//! that is missing gives the refusal of the whole commit.

use std::collections::HashSet;

use serde::Serialize;
use slipway_core::ids::Revision;
use slipway_core::{ErrorKind, Refusal, Timestamp};
use sqlx::Row as _;
use sqlx::types::Json;
use uuid::Uuid;

use super::Connection;
use crate::failure::Failure;
use crate::micros::Micros;

/// Refuses unless a conditional write changed its row.
pub(crate) fn one_row(affected: u64, refusal: impl FnOnce() -> Refusal) -> Result<(), Failure> {
    if affected == 1 { Ok(()) } else { Err(Failure::Refused(refusal())) }
}

pub(crate) fn stale(kind: &str, id: impl std::fmt::Display, revision: Revision) -> Refusal {
    Refusal::new(
        ErrorKind::RevisionStale,
        format!("{kind} {id} is no longer at revision {}; read it again", revision.0),
    )
}

pub(crate) fn optional(time: Option<Timestamp>) -> Option<Micros> {
    time.map(Micros::from)
}

/// Writes rows that no condition guards. Without rows it sends nothing.
pub(crate) async fn write<R: Serialize + Sync>(
    connection: &mut Connection,
    statement: &'static str,
    rows: &[R],
) -> Result<(), sqlx::Error> {
    if !rows.is_empty() {
        sqlx::query(statement).bind(Json(rows)).execute(connection).await?;
    }
    Ok(())
}

/// Writes rows under a condition; the statement answers the `id` of each row
/// that it wrote. Refuses by the first item whose row is missing. An item that
/// is in the set twice is written once and refused, as its second write would
/// be alone.
pub(crate) async fn write_guarded<'a, T, R: Serialize + Sync>(
    connection: &mut Connection,
    statement: &'static str,
    items: &[&'a T],
    row: impl Fn(&'a T) -> (Uuid, R),
    refusal: impl FnOnce(&T) -> Refusal,
) -> Result<(), Failure> {
    let (ids, rows): (Vec<Uuid>, Vec<R>) = items.iter().map(|item| row(item)).unzip();
    match first_missing(connection, statement, &ids, &rows).await? {
        None => Ok(()),
        Some(missing) => Err(Failure::Refused(refusal(items[missing]))),
    }
}

/// The index of the first row that the statement did not write.
pub(crate) async fn first_missing<R: Serialize + Sync>(
    connection: &mut Connection,
    statement: &'static str,
    ids: &[Uuid],
    rows: &[R],
) -> Result<Option<usize>, sqlx::Error> {
    if rows.is_empty() {
        return Ok(None);
    }
    let written = sqlx::query(statement).bind(Json(rows)).fetch_all(connection).await?;
    let mut written =
        written.iter().map(|row| row.try_get("id")).collect::<Result<HashSet<Uuid>, _>>()?;
    Ok(ids.iter().position(|id| !written.remove(id)))
}
