//! Attempts as their rows are, for explanations. No row is hydrated here, so
//! one that breaks an invariant is shown like any other.

use std::collections::BTreeMap;

use serde_json::Value;
use slipway_app::broker::port::AttemptFilter;
use slipway_core::Phase;
use slipway_core::ids::{Partition, ProvisionedResourceId, ResourceId};
use slipway_core::operations::explanation::{AttemptLine, FailureLine, Holder, PhaseCount};
use sqlx::types::Json;
use sqlx::{QueryBuilder, Row as _};
use uuid::Uuid;

use super::page::count_by;
use super::{Connection, Db, Row, rows, snapshot};
use crate::failure::Failure;
use crate::fault::Fault;

/// Restricts the statement to the attempts `a` of the filter.
fn narrow(query: &mut QueryBuilder<Db>, filter: AttemptFilter) {
    let AttemptFilter { attempt, resource, project, partition, number, in_use, blocked, before } =
        filter;
    if let Some(id) = attempt {
        query.push(" AND a.id = ").push_bind(id.as_uuid());
    }
    if let Some(id) = resource {
        query.push(" AND a.resource_id = ").push_bind(id.as_uuid());
    }
    if let Some(id) = project {
        query.push(" AND a.project_id = ").push_bind(id.as_uuid());
    }
    if let Some(partition) = partition {
        query.push(" AND a.partition = ").push_bind(partition.as_uuid());
    }
    if let Some(number) = number {
        query.push(" AND a.attempt = ").push_bind(number);
    }
    if let Some(number) = before {
        query.push(" AND a.attempt < ").push_bind(number);
    }
    if in_use {
        query.push(" AND a.in_use <> 0");
    }
    if blocked {
        query.push(" AND ");
        is_blocked(query);
    }
}

fn is_blocked(query: &mut QueryBuilder<Db>) {
    query
        .push("EXISTS (SELECT 1 FROM blockers k WHERE k.subject_id = a.id AND k.subject_kind = ")
        .push_bind(ProvisionedResourceId::KIND)
        .push(")");
}

pub(crate) async fn lines(
    connection: &mut Connection,
    (filter, limit): (AttemptFilter, u32),
) -> Result<Vec<AttemptLine>, Failure> {
    let mut query: QueryBuilder<Db> = QueryBuilder::new(sql!(
        "SELECT ",
        now,
        " AS now, a.id, a.resource_id, r.handle, a.attempt, a.status, a.phase_since, \
         a.absence_proven_at, a.abandoned_at, a.due_at, a.claimed_by, a.lease_until, \
         a.created_at, a.in_use, v.version, a.parameter_values, a.failure_reason, \
         coalesce(a.failed_at, a.updated_at) AS failed_at, a.failure_observed \
         FROM provisioned_resources a JOIN resources r ON r.id = a.resource_id \
         LEFT JOIN blueprint_versions v ON v.id = a.blueprint_version_id WHERE 1 = 1"
    ));
    narrow(&mut query, filter);
    query.push(" ORDER BY a.resource_id DESC, a.attempt DESC LIMIT ").push_bind(i64::from(limit));
    let found = query.build().fetch_all(&mut *connection).await?;
    let ids = found.iter().map(|row| row.try_get::<Uuid, _>("id")).collect::<Result<_, _>>()?;
    let mut blockers = snapshot::blockers(connection, ids).await?;
    found
        .iter()
        .map(|row| {
            let id: Uuid = row.try_get("id")?;
            // A code that this version does not know must not hide the row.
            let blockers = blockers.remove(&id).and_then(Result::ok).unwrap_or_default();
            line(row, blockers).map_err(|fault| Failure::Corrupt { id, fault })
        })
        .collect()
}

fn line(row: &Row, blockers: Vec<slipway_core::blocker::Blocker>) -> Result<AttemptLine, Fault> {
    let now = rows::time(row, "now")?;
    let worker: Option<String> = rows::get(row, "claimed_by")?;
    let until = rows::time_or_null(row, "lease_until")?.filter(|until| *until > now);
    Ok(AttemptLine {
        now,
        id: ProvisionedResourceId::new(rows::get(row, "id")?),
        resource_id: ResourceId::new(rows::get(row, "resource_id")?),
        handle: rows::get(row, "handle")?,
        number: rows::get(row, "attempt")?,
        phase: rows::get(row, "status")?,
        since: rows::time(row, "phase_since")?,
        created_at: rows::time(row, "created_at")?,
        in_use: rows::get::<i32>(row, "in_use")? != 0,
        blueprint_version: rows::get::<Option<String>>(row, "version")?.unwrap_or_default(),
        parameters: rows::json(row, "parameter_values")?,
        failure: failure(row)?,
        absence_proven_at: rows::time_or_null(row, "absence_proven_at")?,
        abandoned_at: rows::time_or_null(row, "abandoned_at")?,
        due_at: rows::time_or_null(row, "due_at")?,
        holder: worker.zip(until).map(|(worker, until)| Holder { worker, until }),
        blockers,
    })
}

fn failure(row: &Row) -> Result<Option<FailureLine>, Fault> {
    let Some(reason) = rows::get::<Option<String>>(row, "failure_reason")? else {
        return Ok(None);
    };
    let observed: Option<Json<Value>> = rows::get(row, "failure_observed")?;
    let observed = observed.map(|observed| observed.0).unwrap_or_default();
    Ok(Some(FailureLine { at: rows::time(row, "failed_at")?, reason, observed }))
}

pub(crate) async fn counts(
    connection: &mut Connection,
    filter: AttemptFilter,
) -> Result<Vec<PhaseCount>, Failure> {
    let mut query: QueryBuilder<Db> =
        QueryBuilder::new("SELECT a.status, count(*) AS total, sum(CASE WHEN ");
    is_blocked(&mut query);
    query
        .push(
            " THEN 1 ELSE 0 END) AS blocked FROM provisioned_resources a \
             WHERE ((a.absence_proven_at IS NULL AND a.abandoned_at IS NULL) OR a.status <> ",
        )
        .push_bind(Phase::Deleted.as_str())
        .push(")");
    narrow(&mut query, filter);
    query.push(" GROUP BY a.status ORDER BY a.status");
    let found = query.build().fetch_all(&mut *connection).await?;
    let count = |row: &Row, column| {
        Ok::<_, sqlx::Error>(u64::try_from(row.try_get::<i64, _>(column)?).unwrap_or(0))
    };
    found
        .iter()
        .map(|row| {
            Ok(PhaseCount {
                phase: row.try_get("status")?,
                total: count(row, "total")?,
                blocked: count(row, "blocked")?,
            })
        })
        .collect()
}

/// A phase that this version does not know is a quarantined row, and shown as a blocker.
/// No index supports this scan: every change of phase would write it, and it would be
/// read a few times a minute.
pub(crate) async fn count_by_phase(
    connection: &mut Connection,
) -> Result<BTreeMap<Phase, u64>, sqlx::Error> {
    let statement =
        "SELECT status AS name, count(*) AS found FROM provisioned_resources GROUP BY status";
    count_by(connection, statement, Phase::parse).await
}

pub(crate) async fn holders(
    connection: &mut Connection,
    partition: Partition,
) -> Result<Vec<(String, u64)>, Failure> {
    let found = sqlx::query(sql!(
        "SELECT claimed_by, count(*) AS held FROM provisioned_resources \
         WHERE partition = $1 AND claimed_by IS NOT NULL AND lease_until > ",
        now,
        " GROUP BY claimed_by ORDER BY claimed_by"
    ))
    .bind(partition.as_uuid())
    .fetch_all(&mut *connection)
    .await?;
    found
        .iter()
        .map(|row| {
            let held: i64 = row.try_get("held")?;
            Ok((row.try_get("claimed_by")?, u64::try_from(held).unwrap_or(0)))
        })
        .collect()
}
