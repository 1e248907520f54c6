//! The mode of the installation, and its replicas.
//!
//! Heartbeats, changes of the mode and decisions about API keys lock the one
//! row, a few times a minute. Claims, decisions about resources and records
//! never lock it; the loop reads it without a lock.

use std::collections::BTreeMap;
use std::time::Duration;

use slipway_app::operations::port::Replica;
use slipway_core::Timestamp;
use slipway_core::catalog::blueprint_version::Engine;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{InstallationId, Partition, Revision};
use slipway_core::operations::control::{
    Control, ControlCommit, Freeze, LockedControl, MarkKey, Observing, ReplicaReport,
};
use slipway_durable::claim::micros;
use sqlx::Row as _;
use uuid::Uuid;

use super::access::audit;
use super::broker::claims;
use super::fleet::objects;
use super::transaction::{Load, Written};
use super::{Connection, Row, rows, tasks, tenants};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::micros::Micros;

/// The row of a replica that was silent for this long is deleted.
const FORGOTTEN: Duration = Duration::from_secs(24 * 3_600);

/// The columns from which [`mode_parts`] reads the mode, with the clock.
macro_rules! mode_columns {
    () => {
        sql!(
            now,
            " AS now, c.frozen_since, c.frozen_until, c.frozen_by, c.frozen_reason, \
             c.observing_since, c.observing_by, c.observing_reason"
        )
    };
}
pub(crate) use mode_columns;

/// The columns of the row, and the clock; the id is the installation's.
const CONTROL: &str = concat!(
    "SELECT ",
    mode_columns!(),
    ", i.id, c.revision, c.heartbeat, c.public_url \
     FROM control c JOIN installation i ON i.singleton = c.singleton WHERE c.singleton = 1"
);

/// Locks the row of the installation.
pub(crate) async fn lock(connection: &mut Connection) -> Result<(), sqlx::Error> {
    sqlx::query(sql!("SELECT singleton FROM control WHERE singleton = 1", for_update))
        .fetch_one(connection)
        .await?;
    Ok(())
}

/// Refuses commits whose permits were given under another mode than the present
/// one.
///
/// *Guarantees:* on SQLite, no such commit follows a change of the mode. On
/// PostgreSQL this reads without a lock: a transaction that has come this far when
/// the mode changes may still commit. Its replica does not acknowledge the new mode
/// before that, and if it is stopped, the server ends the idle transaction.
pub(crate) async fn require_mode(
    connection: &mut Connection,
    mut permitted: impl Iterator<Item = Revision>,
) -> Result<(), Failure> {
    let Some(first) = permitted.next() else { return Ok(()) };
    let present: i64 = sqlx::query_scalar("SELECT revision FROM control WHERE singleton = 1")
        .fetch_one(connection)
        .await?;
    if first.0 == present && permitted.all(|revision| revision.0 == present) {
        return Ok(());
    }
    let message = "the mode of the installation changed; nothing is written, it is decided again";
    Err(Refusal::new(ErrorKind::RevisionStale, message).into())
}

pub(crate) async fn fetch(connection: &mut Connection, (): ()) -> Result<Control, Failure> {
    let row = sqlx::query(CONTROL).fetch_one(connection).await?;
    let id: Uuid = row.try_get("id")?;
    control(&row, id).map_err(|fault| Failure::Corrupt { id, fault })
}

/// The clock, the freeze and what is observed, from [`mode_columns`].
pub(crate) fn mode_parts(
    row: &Row,
) -> Result<(Timestamp, Option<Freeze>, Option<Observing>), Fault> {
    let freeze = match rows::time_or_null(row, "frozen_until")? {
        None => None,
        Some(until) => Some(Freeze {
            since: rows::time(row, "frozen_since")?,
            until,
            by: rows::get(row, "frozen_by")?,
            reason: rows::get(row, "frozen_reason")?,
        }),
    };
    let observing = match rows::time_or_null(row, "observing_since")? {
        None => None,
        Some(since) => Some(Observing {
            since,
            by: rows::get(row, "observing_by")?,
            reason: rows::get(row, "observing_reason")?,
        }),
    };
    Ok((rows::time(row, "now")?, freeze, observing))
}

fn control(row: &Row, installation: Uuid) -> Result<Control, Fault> {
    let (now, freeze, observing) = mode_parts(row)?;
    Ok(Control {
        now,
        installation: InstallationId::new(installation),
        revision: Revision(rows::get(row, "revision")?),
        freeze,
        observing,
        heartbeat: rows::get(row, "heartbeat")?,
        public_url: rows::get(row, "public_url")?,
    })
}

/// The row of the installation.
pub(crate) struct Installation;

impl Load for Installation {
    type Snapshot = LockedControl;

    async fn load(&self, connection: &mut Connection) -> Result<LockedControl, Failure> {
        lock(connection).await?;
        // Statements of their own, so that they read clock and rows after the lock
        // was granted.
        let control = fetch(connection, ()).await?;
        let id = control.installation.as_uuid();
        let found = sqlx::query("SELECT partition, engine, heartbeat FROM mark_counters")
            .fetch_all(connection)
            .await?;
        let counters = found.iter().map(counter).collect::<Result<_, Fault>>();
        let counters = counters.map_err(|fault| Failure::Corrupt { id, fault })?;
        Ok(LockedControl { control, counters })
    }
}

fn counter(row: &Row) -> Result<(MarkKey, i64), Fault> {
    let partition = Partition::new(rows::get(row, "partition")?);
    Ok(((partition, rows::member(row, "engine", Engine::parse)?), rows::get(row, "heartbeat")?))
}

/// Counters only grow under the lock of the row of the mode.
async fn counters_upsert(
    connection: &mut Connection,
    counters: &BTreeMap<MarkKey, i64>,
) -> Result<(), sqlx::Error> {
    for ((partition, engine), heartbeat) in counters {
        sqlx::query(
            "INSERT INTO mark_counters (partition, engine, heartbeat) VALUES ($1, $2, $3) \
             ON CONFLICT (partition, engine) DO UPDATE SET heartbeat = excluded.heartbeat",
        )
        .bind(partition.as_uuid())
        .bind(engine.as_str())
        .bind(heartbeat)
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

impl Written for Option<ControlCommit> {
    fn is_empty(&self) -> bool {
        self.is_none()
    }

    async fn write(&self, connection: &mut Connection) -> Result<(), Failure> {
        match self {
            Some(decided) => write(connection, decided).await,
            None => Ok(()),
        }
    }
}

async fn write(connection: &mut Connection, decided: &ControlCommit) -> Result<(), Failure> {
    let control = &decided.control;
    let (freeze, observing) = (control.freeze.as_ref(), control.observing.as_ref());
    sqlx::query(
        "UPDATE control SET revision = $1, frozen_since = $2, frozen_until = $3, frozen_by = $4, \
         frozen_reason = $5, observing_since = $6, observing_by = $7, observing_reason = $8, \
         heartbeat = $9, public_url = $10 WHERE singleton = 1",
    )
    .bind(control.revision.0)
    .bind(freeze.map(|freeze| Micros::from(freeze.since)))
    .bind(freeze.map(|freeze| Micros::from(freeze.until)))
    .bind(freeze.map(|freeze| freeze.by.as_str()))
    .bind(freeze.map(|freeze| freeze.reason.as_str()))
    .bind(observing.map(|observing| Micros::from(observing.since)))
    .bind(observing.map(|observing| observing.by.as_str()))
    .bind(observing.map(|observing| observing.reason.as_str()))
    .bind(control.heartbeat)
    .bind(control.public_url.as_deref())
    .execute(&mut *connection)
    .await?;
    counters_upsert(connection, &decided.counters).await?;
    if let Some(replica_report) = &decided.replica {
        replica_upsert(connection, replica_report).await?;
    }
    let audit: Vec<_> = decided.audit.iter().collect();
    audit::insert(connection, &audit).await?;
    if let Some(floor) = decided.claim_floor {
        claims::raise_tokens(connection, floor).await?;
        objects::raise_numbers(connection).await?;
        tenants::tasks::lose_work(connection, floor).await?;
    }
    if decided.wake_all {
        claims::wake_all(connection).await?;
        // Placements and removals of leaks wait for the mode, too.
        tasks::wake_all(connection).await?;
    }
    Ok(())
}

async fn replica_upsert(
    connection: &mut Connection,
    replica_report: &ReplicaReport,
) -> Result<(), sqlx::Error> {
    sqlx::query(sql!(
        "INSERT INTO replicas (worker, seen_at, lease_micros, acknowledged) VALUES ($1, ",
        now,
        ", $2, $3) ON CONFLICT (worker) DO UPDATE SET seen_at = excluded.seen_at, \
         lease_micros = excluded.lease_micros, acknowledged = excluded.acknowledged"
    ))
    .bind(&replica_report.worker)
    .bind(micros(replica_report.outlives))
    .bind(replica_report.acknowledged.0)
    .execute(&mut *connection)
    .await?;
    sqlx::query(sql!("DELETE FROM replicas WHERE seen_at", (plus_micros "$1"), " < ", now))
        .bind(micros(FORGOTTEN))
        .execute(connection)
        .await?;
    Ok(())
}

pub(crate) async fn replicas(connection: &mut Connection, (): ()) -> Result<Vec<Replica>, Failure> {
    let found = sqlx::query(
        "SELECT worker, seen_at, lease_micros, acknowledged FROM replicas ORDER BY worker",
    )
    .fetch_all(&mut *connection)
    .await?;
    found
        .iter()
        .map(|row| {
            let outlives: i64 = row.try_get("lease_micros")?;
            Ok(Replica {
                worker: row.try_get("worker")?,
                seen_at: row.try_get::<Micros, _>("seen_at")?.into(),
                outlives: Duration::from_micros(u64::try_from(outlives).unwrap_or(0)),
                acknowledged: Revision(row.try_get("acknowledged")?),
            })
        })
        .collect()
}

/// Moves the beginnings of waits that a clock that went back left in the future: a wait
/// would end that much later.
pub(crate) const STARTS: [&str; 1] =
    [sql!("UPDATE replicas SET seen_at = ", now, " WHERE seen_at > ", now)];
