//! Reads leaks, and what the rows of attempts say about their objects.

use std::collections::BTreeMap;

use slipway_app::deletion::port::LeakFilter;
use slipway_app::placement::port::ClusterIdentity;
use slipway_app::ports::store::Page;
use slipway_core::Phase;
use slipway_core::catalog::blueprint_version::Engine;
use slipway_core::deletion::leak::{Claimant, Leak, ObjectRef, Removal, Resolved};
use slipway_core::deletion::orphans::EXPECTING;
use slipway_core::ids::{ClusterId, LeakRecordId, ProvisionedResourceId};
use slipway_core::time::Timestamp;
use sqlx::{QueryBuilder, Row as _};
use uuid::Uuid;

use super::{Connection, Db, Row, rows};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::id_list::IdList;
use crate::micros::Micros;

/// An attempt stays on the cluster it was made for; one that an older version made
/// is on the cluster of its project's placement. The namespace is its project's.
macro_rules! claimant_columns {
    () => {
        "SELECT a.id, a.status, a.xr_name, \
         coalesce(a.partition, p.cluster_id) AS cluster_id, p.namespace \
         FROM provisioned_resources a "
    };
}

pub(crate) async fn now(connection: &mut Connection, (): ()) -> Result<Timestamp, Failure> {
    let row = sqlx::query(sql!("SELECT ", now, " AS now")).fetch_one(&mut *connection).await?;
    Ok(row.try_get::<Micros, _>("now")?.into())
}

/// A cluster of an engine that this version does not know is left to a replica
/// that knows it; it is logged and left out.
pub(crate) async fn clusters(
    connection: &mut Connection,
    (): (),
) -> Result<Vec<ClusterIdentity>, Failure> {
    let found = sqlx::query("SELECT id, name, engine, substrate_uid FROM clusters ORDER BY id")
        .fetch_all(&mut *connection)
        .await?;
    let mut clusters = Vec::with_capacity(found.len());
    for row in &found {
        let engine: String = row.try_get("engine")?;
        let name: String = row.try_get("name")?;
        match Engine::parse(&engine) {
            Some(engine) => clusters.push(ClusterIdentity {
                id: ClusterId::new(row.try_get("id")?),
                name,
                engine,
                substrate_uid: row.try_get("substrate_uid")?,
            }),
            None => tracing::warn!(name, engine, "left out a cluster of an unknown engine"),
        }
    }
    Ok(clusters)
}

pub(crate) async fn claimants(
    connection: &mut Connection,
    attempts: &[ProvisionedResourceId],
) -> Result<Vec<Claimant>, Failure> {
    if attempts.is_empty() {
        return Ok(Vec::new());
    }
    claimants_in(connection, attempts).await
}

pub(crate) async fn claimants_in(
    connection: &mut Connection,
    attempts: &[ProvisionedResourceId],
) -> Result<Vec<Claimant>, Failure> {
    let list: IdList = IdList(attempts.iter().map(|id| id.as_uuid()).collect());
    let found = sqlx::query(concat!(
        claimant_columns!(),
        "LEFT JOIN cluster_assignments p ON p.project_id = a.project_id WHERE a.id ",
        sql!((one_of "$1"))
    ))
    .bind(list)
    .fetch_all(connection)
    .await?;
    Ok(found.iter().map(claimant).collect::<Result<_, _>>()?)
}

pub(crate) async fn expecting(
    connection: &mut Connection,
    (cluster, page): (ClusterId, Page<ProvisionedResourceId>),
) -> Result<Vec<Claimant>, Failure> {
    let [first, second] = EXPECTING.map(Phase::as_str);
    let found = sqlx::query(concat!(
        claimant_columns!(),
        "JOIN cluster_assignments p ON p.project_id = a.project_id \
         WHERE coalesce(a.partition, p.cluster_id) = $1 AND a.status IN ($2, $3) AND ($4 IS NULL OR a.id > $4) \
         ORDER BY a.id LIMIT $5"
    ))
    .bind(cluster.as_uuid())
    .bind(first)
    .bind(second)
    .bind(page.after.map(|id| id.as_uuid()))
    .bind(i64::from(page.limit))
    .fetch_all(&mut *connection)
    .await?;
    Ok(found.iter().map(claimant).collect::<Result<_, _>>()?)
}

fn claimant(row: &Row) -> Result<Claimant, sqlx::Error> {
    let cluster: Option<Uuid> = row.try_get("cluster_id")?;
    let namespace: Option<String> = row.try_get("namespace")?;
    let name: String = row.try_get("xr_name")?;
    Ok(Claimant {
        id: ProvisionedResourceId::new(row.try_get("id")?),
        phase: Phase::parse(row.try_get("status")?),
        home: cluster
            .zip(namespace)
            .map(|(cluster, namespace)| (ClusterId::new(cluster), ObjectRef { namespace, name })),
    })
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
        subject_id: rows::get(row, "subject_id")?,
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
