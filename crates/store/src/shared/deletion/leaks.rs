//! Findings and leak records: notes what a scan found, records what lasts,
//! resolves what is gone.
//!
//! Several replicas may scan at once (a person asks, a task is taken over), so
//! each statement is correct whatever the others do: a finding is one row by
//! its key, an open leak is one row by the key of its finding, and a scan
//! resolves only what no scan has found since it began.

use std::time::Duration;

use serde_json::{Value, json};
use slipway_app::deletion::port::{RecordedFindings, ReportedFinding};
use slipway_app::placement::port::ClusterIdentity;
use slipway_core::access::audit::Actor;
use slipway_core::deletion::leak::{Leak, LeakSnapshot};
use slipway_core::deletion::orphans::{self, LeakCommit};
use slipway_core::ids::{ClusterId, GroupId, LeakRecordId, ProvisionedResourceId};
use slipway_core::time::Timestamp;
use slipway_durable::database::End;
use sqlx::Row as _;
use sqlx::types::Json;
use uuid::Uuid;

use super::access::audit;
use super::broker::claimants;
use super::json_values::JsonTime;
use super::page::now;
use super::transaction::{Load, Written};
use super::{Connection, leak_rows, topology};
use crate::failure::Failure;
use crate::id_list::IdList;
use crate::micros::Micros;

pub(crate) async fn reported(
    connection: &mut Connection,
    (cluster, reported, apart): (&ClusterIdentity, &[ReportedFinding], Duration),
) -> Result<End<RecordedFindings>, Failure> {
    if reported.is_empty() {
        return Ok(End::Rollback(RecordedFindings::default()));
    }
    note(connection, cluster.id, reported).await?;
    let keys = IdList(reported.iter().map(|one| one.finding.key).collect());
    let seen = sqlx::query(sql!(
        "SELECT finding, first_seen_at, ",
        now,
        " AS now FROM leak_suspicions WHERE finding ",
        (one_of "$1")
    ))
    .bind(keys.clone())
    .fetch_all(&mut *connection)
    .await?;
    let mut suspected = Vec::new();
    let mut given = Vec::new();
    for row in &seen {
        let key: Uuid = row.try_get("finding")?;
        let first: Timestamp = row.try_get::<Micros, _>("first_seen_at")?.into();
        let now: Timestamp = row.try_get::<Micros, _>("now")?.into();
        let known = reported.iter().find(|one| one.finding.key == key);
        match known {
            Some(one) if orphans::is_confirmed(first, now, apart) => {
                given.push(document(cluster, one, first));
            }
            _ => suspected.push((key, first)),
        }
    }
    refresh(connection, reported).await?;
    record(connection, given).await?;
    let open = sqlx::query(sql!(
        "SELECT * FROM leak_records WHERE resolved_at IS NULL AND finding ",
        (one_of "$1"),
        " ORDER BY id"
    ))
    .bind(keys)
    .fetch_all(&mut *connection)
    .await?;
    let leaks: Vec<Leak> = open.iter().map(leak_rows::read).collect::<Result<_, _>>()?;
    // A finding with an open leak is no suspicion, even if its suspicion was lost.
    suspected.retain(|(key, _)| leaks.iter().all(|leak| leak.finding != Some(*key)));
    Ok(End::Commit(RecordedFindings { leaks, suspected }))
}

/// In the order of their keys, so that two scans lock the rows in one order.
async fn note(
    connection: &mut Connection,
    cluster: ClusterId,
    reported: &[ReportedFinding],
) -> Result<(), Failure> {
    let given: Vec<_> = reported
        .iter()
        .map(|one| json!({ "finding": one.finding.key, "cluster_id": cluster }))
        .collect();
    sqlx::query(concat!(
        "INSERT INTO leak_suspicions (finding, cluster_id, first_seen_at, last_seen_at) \
         SELECT given.finding, given.cluster_id, ",
        sql!(now, ", ", now),
        " FROM ",
        rows_from_json!(finding: uuid, cluster_id: uuid),
        " WHERE true ORDER BY given.finding ON CONFLICT (finding) DO UPDATE SET last_seen_at = ",
        sql!(now),
    ))
    .bind(Json(given))
    .execute(connection)
    .await?;
    Ok(())
}

fn document(cluster: &ClusterIdentity, one: &ReportedFinding, first_seen: Timestamp) -> Value {
    let finding = &one.finding;
    json!({
        "id": one.fresh_id,
        "finding": finding.key,
        "kind": finding.kind.as_str(),
        "subject_kind": finding.subject.kind,
        "subject_id": finding.subject.id,
        "found_at": JsonTime::from(first_seen),
        "evidence": finding.evidence,
        "cluster_id": cluster.id,
        "cluster": cluster.name,
        "namespace": finding.object_ref.namespace,
        "object_name": finding.object_ref.name,
        "object_uid": finding.uid,
    })
}

/// Updates open leaks to the latest finding, even if that is not confirmed yet.
async fn refresh(connection: &mut Connection, reported: &[ReportedFinding]) -> Result<(), Failure> {
    let given: Vec<_> = reported
        .iter()
        .map(|one| json!({ "finding": one.finding.key, "evidence": one.finding.evidence }))
        .collect();
    sqlx::query(concat!(
        "UPDATE leak_records SET last_seen_at = ",
        sql!(now),
        ", evidence = given.evidence FROM ",
        rows_from_json!(finding: uuid, evidence: json),
        " WHERE leak_records.finding = given.finding AND leak_records.resolved_at IS NULL",
    ))
    .bind(Json(given))
    .execute(connection)
    .await?;
    Ok(())
}

async fn record(connection: &mut Connection, given: Vec<Value>) -> Result<(), Failure> {
    if given.is_empty() {
        return Ok(());
    }
    sqlx::query(concat!(
        "INSERT INTO leak_records (id, finding, kind, subject_kind, subject_id, found_at, \
         last_seen_at, evidence, cluster_id, cluster, namespace, object_name, object_uid) \
         SELECT given.id, given.finding, given.kind, given.subject_kind, given.subject_id, \
         given.found_at, ",
        sql!(now),
        ", given.evidence, given.cluster_id, given.cluster, given.namespace, \
         given.object_name, given.object_uid FROM ",
        rows_from_json!(
            id: uuid,
            finding: uuid,
            kind: text,
            subject_kind: text,
            subject_id: uuid,
            found_at: time,
            evidence: json,
            cluster_id: uuid,
            cluster: text,
            namespace: text,
            object_name: text,
            object_uid: text,
        ),
        " WHERE true ORDER BY given.finding \
         ON CONFLICT (finding) WHERE resolved_at IS NULL DO NOTHING",
    ))
    .bind(Json(given))
    .execute(connection)
    .await?;
    Ok(())
}

/// Resolves what the scan did not find. A leak that another transaction
/// resolves at this moment is left to it.
pub(crate) async fn scan_end(
    connection: &mut Connection,
    (cluster, begun_at, actor): (ClusterId, Timestamp, &Actor),
) -> Result<End<u64>, Failure> {
    let unseen = sqlx::query(sql!(
        "SELECT *, ",
        now,
        " AS now FROM leak_records WHERE cluster_id = $1 AND resolved_at IS NULL \
         AND finding IS NOT NULL AND last_seen_at < $2 ORDER BY id",
        for_update
    ))
    .bind(cluster.as_uuid())
    .bind(Micros::from(begun_at))
    .fetch_all(&mut *connection)
    .await?;
    let mut ended = Vec::with_capacity(unseen.len());
    for row in &unseen {
        let now: Timestamp = row.try_get::<Micros, _>("now")?.into();
        ended.push(orphans::vanished(&leak_rows::read(row)?, now, actor));
    }
    write(connection, &ended).await?;
    sqlx::query("DELETE FROM leak_suspicions WHERE cluster_id = $1 AND last_seen_at < $2")
        .bind(cluster.as_uuid())
        .bind(Micros::from(begun_at))
        .execute(&mut *connection)
        .await?;
    Ok(End::Commit(u64::try_from(ended.len()).unwrap_or(u64::MAX)))
}

/// A leak record.
pub(crate) struct ById(pub(crate) LeakRecordId);

impl Load for ById {
    type Snapshot = LeakSnapshot;

    async fn load(&self, connection: &mut Connection) -> Result<LeakSnapshot, Failure> {
        let row = sqlx::query(sql!("SELECT * FROM leak_records WHERE id = $1", for_update))
            .bind(self.0.as_uuid())
            .fetch_optional(&mut *connection)
            .await?
            .ok_or(Failure::NotFound { kind: LeakRecordId::KIND })?;
        let leak = leak_rows::read(&row)?;
        let attempt = ProvisionedResourceId::new(leak.subject.id);
        let claimant = claimants::load(connection, &[attempt]).await?.pop();
        let group = leak.evidence["group"]
            .as_str()
            .and_then(|id| Uuid::parse_str(id).ok())
            .map(GroupId::new);
        let owner = match group {
            Some(group) => topology::group::owner(connection, group).await?,
            None => None,
        };
        Ok(LeakSnapshot { now: now(connection).await?, leak, claimant, owner })
    }
}

impl Written for LeakCommit {
    fn is_empty(&self) -> bool {
        false
    }

    async fn write(&self, connection: &mut Connection) -> Result<(), Failure> {
        write(connection, std::slice::from_ref(self)).await
    }
}

/// Writes the columns of a leak that may change. A resolved leak also deletes
/// its suspicion, so that it counts as new if it is found once more.
async fn write(connection: &mut Connection, commits: &[LeakCommit]) -> Result<(), Failure> {
    if commits.is_empty() {
        return Ok(());
    }
    let given: Vec<_> = commits
        .iter()
        .map(|LeakCommit { leak, .. }| {
            let (removal, resolved) = (leak.removal.as_ref(), leak.resolved.as_ref());
            json!({
                "id": leak.id,
                "removal_requested_at": removal.map(|removal| JsonTime::from(removal.at)),
                "removal_requested_by": removal.map(|removal| &removal.by),
                "removal_reason": removal.map(|removal| &removal.reason),
                "resolved_at": resolved.map(|resolved| JsonTime::from(resolved.at)),
                "resolved_by": resolved.and_then(|resolved| resolved.by.as_ref()),
                "resolution": resolved.and_then(|resolved| resolved.resolution.as_ref()),
            })
        })
        .collect();
    sqlx::query(concat!(
        "UPDATE leak_records SET removal_requested_at = given.removal_requested_at, \
         removal_requested_by = given.removal_requested_by, \
         removal_reason = given.removal_reason, resolved_at = given.resolved_at, \
         resolved_by = given.resolved_by, resolution = given.resolution FROM ",
        rows_from_json!(
            id: uuid,
            removal_requested_at: time,
            removal_requested_by: text,
            removal_reason: text,
            resolved_at: time,
            resolved_by: text,
            resolution: text,
        ),
        " WHERE leak_records.id = given.id",
    ))
    .bind(Json(given))
    .execute(&mut *connection)
    .await?;
    let ended = commits.iter().filter(|commit| !commit.leak.is_open());
    let keys = IdList(ended.filter_map(|commit| commit.leak.finding).collect());
    sqlx::query(sql!("DELETE FROM leak_suspicions WHERE finding ", (one_of "$1")))
        .bind(keys)
        .execute(&mut *connection)
        .await?;
    let audit: Vec<_> = commits.iter().map(|commit| &commit.audit).collect();
    audit::insert(connection, &audit).await
}

/// The findings on a cluster that is purged.
pub(crate) async fn forget_suspicions(
    connection: &mut Connection,
    cluster: Uuid,
) -> Result<u64, Failure> {
    let removed = sqlx::query("DELETE FROM leak_suspicions WHERE cluster_id = $1")
        .bind(cluster)
        .execute(connection)
        .await?;
    Ok(removed.rows_affected())
}
