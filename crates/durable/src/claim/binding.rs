//! Runs the statements of a [`Table`]. Compiled once for each database, which
//! names its types: a function generic over the database would need more lines
//! for its bounds than for its body.

use serde::Serialize;
use sqlx::types::Json;
use sqlx::{Decode, Encode, Row as _, Type};
use std::time::Duration;

use super::{Connection, Db, Row};
use crate::claim::table::{GivenKey, GivenRelease};
use crate::claim::{Claim, Demand, Release, Table, micros};

impl Table<Db> {
    /// Claims rows of a partition that are due and under no live lease, the
    /// longest due first. Each gets a new claim token.
    pub async fn claim<'q, P: Encode<'q, Db> + Type<Db> + 'q>(
        &self,
        connection: &mut Connection,
        partition: P,
        Demand { worker, limit, lease }: Demand<'q>,
    ) -> Result<Vec<Row>, sqlx::Error> {
        sqlx::query(self.statements.claim)
            .bind(worker)
            .bind(micros(lease))
            .bind(i64::from(limit))
            .bind(partition)
            .fetch_all(connection)
            .await
    }

    /// Whether a claim of this partition would find a row. Takes no lock: a
    /// table that is mostly idle must not occupy the only writer of SQLite.
    pub async fn is_due<'q, P: Encode<'q, Db> + Type<Db> + 'q>(
        &self,
        connection: &mut Connection,
        partition: P,
    ) -> Result<bool, sqlx::Error> {
        let found = sqlx::query(self.statements.is_due).bind(partition);
        Ok(found.fetch_optional(connection).await?.is_some())
    }

    /// Renews those of these claims that the worker still holds, and answers
    /// their keys. Leaves a row alone that somebody writes at this moment.
    pub async fn renew<K: Serialize + for<'r> Decode<'r, Db> + Type<Db>>(
        &self,
        connection: &mut Connection,
        worker: &str,
        claims: &[Claim<K>],
        lease: Duration,
    ) -> Result<Vec<K>, sqlx::Error> {
        if claims.is_empty() {
            return Ok(Vec::new());
        }
        let renewed = sqlx::query(self.statements.renew)
            .bind(worker)
            .bind(micros(lease))
            .bind(Json(claims))
            .fetch_all(connection)
            .await?;
        renewed.iter().map(|row| row.try_get(0)).collect()
    }

    /// Releases those of these claims that are still held, in the order of their
    /// keys, and answers how many. A row whose wake moved since its claim is due
    /// at once, whatever the release says.
    pub async fn release<K: Serialize + Ord>(
        &self,
        connection: &mut Connection,
        releases: &[Release<'_, K>],
    ) -> Result<u64, sqlx::Error> {
        if releases.is_empty() {
            return Ok(0);
        }
        let mut releases: Vec<_> = releases.iter().collect();
        releases.sort_by(|left, right| left.claim.cmp(&right.claim));
        let given: Vec<_> = releases.into_iter().map(GivenRelease::from).collect();
        let released = sqlx::query(self.statements.release).bind(Json(given));
        Ok(released.execute(connection).await?.rows_affected())
    }

    /// Wakes these rows: they are due now, or when their claim ends.
    pub async fn wake<K: Serialize>(
        &self,
        connection: &mut Connection,
        keys: &[K],
    ) -> Result<(), sqlx::Error> {
        if keys.is_empty() {
            return Ok(());
        }
        let given: Vec<_> = keys.iter().map(|key| GivenKey { key }).collect();
        sqlx::query(self.statements.wake).bind(Json(given)).execute(connection).await?;
        Ok(())
    }

    /// Ends the claims of a worker that is known to be dead: the rows are due
    /// now. Answers how many.
    pub async fn reclaim(
        &self,
        connection: &mut Connection,
        worker: &str,
    ) -> Result<u64, sqlx::Error> {
        let ended = sqlx::query(self.statements.reclaim).bind(worker);
        Ok(ended.execute(connection).await?.rows_affected())
    }

    /// The same for the claims of one partition.
    pub async fn reclaim_in<'q, P: Encode<'q, Db> + Type<Db> + 'q>(
        &self,
        connection: &mut Connection,
        worker: &'q str,
        partition: P,
    ) -> Result<u64, sqlx::Error> {
        let ended = sqlx::query(self.statements.reclaim_in).bind(worker).bind(partition);
        Ok(ended.execute(connection).await?.rows_affected())
    }

    /// Moves every time by which the database's clock went back. `lease` is the
    /// longest that a claim lasts; a longer one was taken before the jump.
    pub async fn pull_in(
        &self,
        connection: &mut Connection,
        jump: Duration,
        lease: Duration,
    ) -> Result<u64, sqlx::Error> {
        let pulled = sqlx::query(self.statements.pull_in).bind(micros(jump)).bind(micros(lease));
        Ok(pulled.execute(connection).await?.rows_affected())
    }
}
