//! Beginning a transaction so that a caller may go away at any moment.
//!
//! A caller's future can be dropped wherever it waits: a client hangs up, a
//! timeout ends. Once a transaction is begun, the driver rolls it back when it
//! is dropped. While BEGIN itself is under way the driver does not know of it
//! yet; a connection dropped there goes back to the pool inside a transaction,
//! and whoever gets it next writes into one that nobody will commit.

use sqlx::{Pool, Transaction};

use super::Db;
use crate::patience::limited;

/// Begins in a task of its own, which runs to its end (or that of all patience)
/// whoever still waits for it; a transaction that nobody takes is dropped, and thereby rolled back.
pub(super) async fn begin(
    pool: &Pool<Db>,
    statement: &'static str,
) -> Result<Transaction<'static, Db>, sqlx::Error> {
    let pool = pool.clone();
    let begun = tokio::spawn(async move { limited(pool.begin_with(statement)).await });
    begun.await.map_err(|error| sqlx::Error::Io(std::io::Error::other(error)))?
}
