//! Reads leaks.

use std::collections::BTreeMap;

use slipway_app::deletion::port::LeakFilter;
use slipway_app::ports::store::Page;
use slipway_core::deletion::leak::{Leak, ObjectRef, Removal, Resolved};
use slipway_core::ids::{ClusterId, LeakRecordId};
use slipway_core::subject::{Subject, SubjectKind};
use slipway_core::time::Timestamp;
use sqlx::{QueryBuilder, Row as _};
use uuid::Uuid;

use super::{Connection, Db, Row, rows};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::micros::Micros;

/// There is an open leak `l` with this condition.
macro_rules! open_leak {
    ($condition:literal) => {
        concat!(
            "EXISTS (SELECT 1 FROM leak_records l WHERE ",
            $condition,
            " AND l.resolved_at IS NULL)"
        )
    };
}
pub(crate) use open_leak;

pub(crate) async fn now(connection: &mut Connection, (): ()) -> Result<Timestamp, Failure> {
    let row = sqlx::query(sql!("SELECT ", now, " AS now")).fetch_one(&mut *connection).await?;
    Ok(row.try_get::<Micros, _>("now")?.into())
}

pub(crate) async fn fetch(
    connection: &mut Connection,
    id: LeakRecordId,
) -> Result<Option<Leak>, Failure> {
    let row = sqlx::query("SELECT * FROM leak_records WHERE id = $1")
        .bind(id.as_uuid())
        .fetch_optional(&mut *connection)
        .await?;
    row.map(|row| read(&row)).transpose()
}

pub(crate) async fn list(
    connection: &mut Connection,
    (filter, page): (&LeakFilter, Page<LeakRecordId>),
) -> Result<Vec<Leak>, Failure> {
    let mut query: QueryBuilder<Db> = QueryBuilder::new("SELECT * FROM leak_records WHERE true");
    if let Some(after) = page.after {
        query.push(" AND id > ").push_bind(after.as_uuid());
    }
    match filter.open {
        Some(true) => query.push(" AND resolved_at IS NULL"),
        Some(false) => query.push(" AND resolved_at IS NOT NULL"),
        None => &mut query,
    };
    if let Some(kind) = &filter.kind {
        query.push(" AND kind = ").push_bind(kind);
    }
    query.push(" ORDER BY id LIMIT ").push_bind(i64::from(page.limit));
    let found = query.build().fetch_all(&mut *connection).await?;
    found.iter().map(read).collect()
}

pub(crate) async fn removals(
    connection: &mut Connection,
    (cluster, limit): (ClusterId, u32),
) -> Result<Vec<Leak>, Failure> {
    let found = sqlx::query(
        "SELECT * FROM leak_records WHERE cluster_id = $1 AND resolved_at IS NULL \
         AND removal_requested_at IS NOT NULL ORDER BY id LIMIT $2",
    )
    .bind(cluster.as_uuid())
    .bind(i64::from(limit))
    .fetch_all(&mut *connection)
    .await?;
    found.iter().map(read).collect()
}

pub(crate) async fn open_counts(
    connection: &mut Connection,
    (): (),
) -> Result<BTreeMap<String, u64>, Failure> {
    let found = sqlx::query(
        "SELECT kind, count(*) AS open FROM leak_records WHERE resolved_at IS NULL GROUP BY kind",
    )
    .fetch_all(&mut *connection)
    .await?;
    let counts = found.iter().map(|row| {
        let open: i64 = row.try_get("open")?;
        Ok((row.try_get("kind")?, u64::try_from(open).unwrap_or(0)))
    });
    Ok(counts.collect::<Result<_, sqlx::Error>>()?)
}

pub(crate) fn read(row: &Row) -> Result<Leak, Failure> {
    let id: Uuid = row.try_get("id")?;
    leak(row, id).map_err(|fault| Failure::Corrupt { id, fault })
}

fn leak(row: &Row, id: Uuid) -> Result<Leak, Fault> {
    let namespace: Option<String> = rows::get(row, "namespace")?;
    let name: Option<String> = rows::get(row, "object_name")?;
    let removal_by: Option<String> = rows::get(row, "removal_requested_by")?;
    let removal_reason: Option<String> = rows::get(row, "removal_reason")?;
    let removal_at = rows::time_or_null(row, "removal_requested_at")?;
    let resolved = match rows::time_or_null(row, "resolved_at")? {
        None => None,
        Some(at) => Some(Resolved {
            at,
            by: rows::get(row, "resolved_by")?,
            resolution: rows::get(row, "resolution")?,
        }),
    };
    Ok(Leak {
        id: LeakRecordId::new(id),
        kind: rows::get(row, "kind")?,
        finding: rows::get(row, "finding")?,
        subject: Subject {
            kind: rows::member(row, "subject_kind", SubjectKind::parse)?,
            id: rows::get(row, "subject_id")?,
        },
        found_at: rows::time(row, "found_at")?,
        last_seen_at: rows::time_or_null(row, "last_seen_at")?,
        cluster_id: rows::get::<Option<Uuid>>(row, "cluster_id")?.map(ClusterId::new),
        cluster: rows::get(row, "cluster")?,
        object_ref: namespace.zip(name).map(|(namespace, name)| ObjectRef { namespace, name }),
        uid: rows::get(row, "object_uid")?,
        evidence: rows::json(row, "evidence")?,
        removal: removal_at.map(|at| Removal {
            at,
            by: removal_by.unwrap_or_default(),
            reason: removal_reason.unwrap_or_default(),
        }),
        resolved,
    })
}

/// Moves the beginnings of waits that a clock that went back left in the future: a wait
/// would end that much later.
pub(crate) const STARTS: [&str; 3] = [
    sql!("UPDATE leak_suspicions SET first_seen_at = ", now, " WHERE first_seen_at > ", now),
    sql!("UPDATE leak_suspicions SET last_seen_at = ", now, " WHERE last_seen_at > ", now),
    sql!("UPDATE leak_records SET last_seen_at = ", now, " WHERE last_seen_at > ", now),
];
