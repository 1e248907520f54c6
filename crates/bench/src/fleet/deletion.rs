//! Deleting a generator and bringing it back, beside the document's scheme in the same run.
//! Ours goes through the use-cases as an admin with a key, with the brake as shipped: a
//! deletion of this size has to say that it is meant.

use std::time::{Duration, Instant};

use anyhow::ensure;
use slipway_app::Context;
use slipway_app::access::authorise::Caller;
use slipway_app::deletion::request::DeleteOptions;
use slipway_app::deletion::restore::{self, RestoreOptions};
use slipway_app::fleet::generators;
use slipway_core::ids::{DeletionId, GeneratorId};

use super::document::Document;
use super::population::STACKS;
use super::{Ours, median};
use crate::database::{Kind, Pool};
use crate::report::Report;

/// The batch of the relay.
const RELAYED: u32 = 500;

/// Times and log bytes of one side, an entry for each round.
#[derive(Debug, Default)]
struct Side {
    deleted: Vec<Duration>,
    restored: Vec<Duration>,
    delete_log: Vec<i64>,
    restore_log: Vec<i64>,
}

pub(super) async fn measure(
    ours: &Ours,
    document: &Document,
    kind: Kind,
    rounds: usize,
    report: &mut Report,
) -> anyhow::Result<()> {
    let Ours { context, admin, pool, generator } = ours;
    let (mut own, mut theirs) = (Side::default(), Side::default());
    let mut numbered = Vec::new();
    relay(context).await?;
    // The first round fills caches and is not counted.
    for round in 0..=rounds {
        let before = Written::read(pool).await?;
        let log = Log::begin(pool).await?;
        let begun = Instant::now();
        let id = delete(context, admin, *generator).await?;
        let deleted = begun.elapsed();
        let bytes = log.bytes(pool).await?;
        let begun = Instant::now();
        relay(context).await?;
        let relayed = deleted + begun.elapsed();
        Written::read(pool).await?.check_since(&before)?;

        let log = Log::begin(&document.pool).await?;
        let their_deletion = document.delete().await?;
        let their_bytes = log.bytes(&document.pool).await?;

        let log = Log::begin(pool).await?;
        let begun = Instant::now();
        let restored = restore::restore(context, admin, id, RestoreOptions::default()).await?;
        let restored_in = begun.elapsed();
        let restore_bytes = log.bytes(pool).await?;
        let returned = restored.returning.len();
        ensure!(returned > STACKS as usize, "{returned} came back");
        relay(context).await?;

        let log = Log::begin(&document.pool).await?;
        let their_recovery = document.recover().await?;
        let their_restore_bytes = log.bytes(&document.pool).await?;
        document.drop_markers().await?;
        crate::population::analyse(pool).await?;

        if round > 0 {
            numbered.push(relayed);
            own.deleted.push(deleted);
            own.delete_log.push(bytes);
            own.restored.push(restored_in);
            own.restore_log.push(restore_bytes);
            theirs.deleted.push(their_deletion);
            theirs.delete_log.push(their_bytes);
            theirs.restored.push(their_recovery);
            theirs.restore_log.push(their_restore_bytes);
        }
    }
    note(kind, own, theirs, median(numbered), report);
    Ok(())
}

fn note(kind: Kind, own: Side, theirs: Side, numbered: Duration, report: &mut Report) {
    let suffix = match kind {
        Kind::Postgres => "",
        Kind::Sqlite => "_sqlite",
    };
    let speedup = |theirs: Duration, own: Duration| theirs.as_secs_f64() / own.as_secs_f64();
    let (deleted, their_deletion) = (median(own.deleted), median(theirs.deleted));
    let how = format!("{their_deletion:.1?} against {deleted:.1?}");
    report.note(&format!("delete_speedup{suffix}"), speedup(their_deletion, deleted), &how);
    let how = format!("{numbered:.1?} until the relay numbered the last event");
    let key = format!("delete_numbered_speedup{suffix}");
    report.note(&key, speedup(their_deletion, numbered), &how);
    let (restored, recovered) = (median(own.restored), median(theirs.restored));
    let how = format!("{recovered:.1?} against {restored:.1?}");
    report.note(&format!("restore_speedup{suffix}"), speedup(recovered, restored), &how);
    if kind == Kind::Postgres {
        let megabytes = |bytes: i64| bytes as f64 / 1e6;
        for (key, own, theirs) in [
            ("delete_wal_ratio", own.delete_log, theirs.delete_log),
            ("restore_wal_ratio", own.restore_log, theirs.restore_log),
        ] {
            let (own, theirs) = (megabytes(median(own)), megabytes(median(theirs)));
            report.note(key, own / theirs, &format!("{own:.2} MB against {theirs:.2} MB"));
        }
    }
}

async fn delete(
    context: &Context,
    admin: &Caller,
    generator: GeneratorId,
) -> anyhow::Result<DeletionId> {
    let options = DeleteOptions {
        reason: Some("the benchmark deletes and restores it"),
        break_glass: true,
        ..DeleteOptions::default()
    };
    Ok(generators::delete(context, admin, generator, options).await?)
}

/// Gives all events their positions, as the loop does when it is woken.
async fn relay(context: &Context) -> anyhow::Result<()> {
    while context.stores.events.outbox_relay(RELAYED).await? == u64::from(RELAYED) {}
    Ok(())
}

/// Rows that a deletion of ours adds.
#[derive(Debug)]
struct Written {
    markers: i64,
    events: i64,
    audit: i64,
    live: i64,
}

impl Written {
    async fn read(pool: &Pool) -> anyhow::Result<Self> {
        Ok(Self {
            markers: pool
                .count("SELECT count(*) FROM deployment_objects WHERE is_deletion_marker = 1")
                .await?,
            events: pool.count("SELECT count(*) FROM event_positions").await?,
            audit: pool.count("SELECT count(*) FROM audit_entries").await?,
            live: pool.count("SELECT count(*) FROM stacks WHERE deleted_at IS NULL").await?,
        })
    }

    /// A marker, an event and an audit entry for each stack, and those of the generator.
    fn check_since(&self, before: &Self) -> anyhow::Result<()> {
        let stacks = i64::from(STACKS);
        let gone = before.live == stacks && self.live == 0;
        ensure!(gone && self.markers - before.markers == stacks, "{before:?} became {self:?}");
        let told = |now: i64, before: i64| now - before > stacks;
        ensure!(told(self.events, before.events), "events: {before:?} became {self:?}");
        ensure!(told(self.audit, before.audit), "audit: {before:?} became {self:?}");
        Ok(())
    }
}

/// A position in PostgreSQL's write-ahead log.
struct Log(i64);

impl Log {
    /// After a checkpoint, so that none falls into what is measured, and both sides write the
    /// whole of each page that they touch first.
    async fn begin(pool: &Pool) -> anyhow::Result<Self> {
        if let Pool::Postgres(_) = pool {
            pool.run("CHECKPOINT".to_owned()).await?;
        }
        Ok(Self(Self::position(pool).await?))
    }

    async fn bytes(&self, pool: &Pool) -> anyhow::Result<i64> {
        Ok(Self::position(pool).await? - self.0)
    }

    async fn position(pool: &Pool) -> anyhow::Result<i64> {
        match pool {
            Pool::Postgres(_) => {
                let position = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint";
                pool.count(position).await
            }
            Pool::Sqlite(_) => Ok(0),
        }
    }
}
