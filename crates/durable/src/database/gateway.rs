//! The methods through which operations reach a database. An operation is a
//! function that gets a connection; no other code ever has one.
//!
//! *Expected flow:* a method takes a connection or begins a transaction, runs
//! the operation within the limit, and ends the transaction. If the database
//! rolled it back by chance, the method runs it again.
//!
//! *Guarantees:* an operation ends within the limit, even if the server does not
//! answer; the pools are then replaced. An operation that fails writes nothing.
//!
//! *Caveats:* a method takes a plain function and its arguments, or a [`Work`]
//! where each run borrows something. Closures were rejected: the compiler
//! cannot prove that the future of a closure is `Send` for every lifetime of
//! the connection that it gets.

use std::io::{Error as IoError, ErrorKind};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use sqlx::{Database, Pool, Transaction};

use super::errors::{ErrorClass, OperationError, class};
use super::health::Health;
use super::outage::Proof;
use super::pools::{Current, Pools, Source};
use super::retry::Retries;

/// How a dialect begins its transactions.
#[derive(Debug, Clone, Copy)]
pub struct Begin {
    pub write: &'static str,
    /// A transaction that reads one state of the database and writes nothing.
    pub read: &'static str,
}

/// How a transaction ends if its operation did not fail.
#[derive(Debug)]
pub enum End<T> {
    Commit(T),
    /// Nothing was written. Rolling back spares the flush of a commit.
    Rollback(T),
}

/// An operation whose runs borrow something, such as the rule that decides.
pub trait Work<Db: Database>: Send {
    type Answer: Send;
    type Error: OperationError + Send;

    fn run(
        &mut self,
        connection: &mut Db::Connection,
    ) -> impl Future<Output = Result<End<Self::Answer>, Self::Error>> + Send;
}

/// Owns the pools, the limit, and the health of the connections.
#[derive(Debug)]
pub struct Gateway<Db: Database> {
    pools: Pools<Db>,
    begin: Begin,
    health: Arc<Health>,
}

/// What an operation does to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Read,
    /// A statement that may write, its own transaction.
    Statement,
    /// It may write; a commit is noted where it happens.
    Transaction,
}

/// Runs an expression that yields a future, within the limit, and again while
/// the error is a conflict. It is a macro for the reason in the module docs, and
/// used in this file only.
macro_rules! limited_and_retried {
    ($gateway:expr, $operation:expr, $run:expr) => {{
        let mut retries = Retries::new();
        loop {
            match $gateway.limited($run).await {
                Err(error) if retries.again(&error).await => {}
                outcome => break noted(&$gateway.health, $operation, outcome),
            }
        }
    }};
}

impl<Db: Database> Gateway<Db> {
    pub fn new(source: Source<Db>, begin: Begin, statement_limit: Duration) -> Self {
        let health = Arc::new(Health::new(statement_limit));
        Self { pools: Pools::new(source, &health), begin, health }
    }

    /// Reads by statements that need not see the same state of the database.
    pub async fn read<A: Copy, T, E: OperationError>(
        &self,
        arguments: A,
        run: impl AsyncFn(&mut Db::Connection, A) -> Result<T, E>,
    ) -> Result<T, E> {
        limited_and_retried!(self, Operation::Read, async {
            let mut connection = self.current().readers.acquire().await?;
            run(&mut connection, arguments).await
        })
    }

    /// Reads by statements that see one state of the database.
    pub async fn read_snapshot<A: Copy, T, E: OperationError>(
        &self,
        arguments: A,
        run: impl AsyncFn(&mut Db::Connection, A) -> Result<T, E>,
    ) -> Result<T, E> {
        limited_and_retried!(self, Operation::Read, async {
            let pool = self.current().readers;
            let mut transaction = self.begin(pool, self.begin.read).await?;
            let answer = run(&mut transaction, arguments).await?;
            transaction.rollback().await?;
            Ok(answer)
        })
    }

    /// Writes by one statement, which is its own transaction.
    pub async fn statement<A: Copy, T, E: OperationError>(
        &self,
        arguments: A,
        run: impl AsyncFn(&mut Db::Connection, A) -> Result<T, E>,
    ) -> Result<T, E> {
        limited_and_retried!(self, Operation::Statement, async {
            let mut connection = self.current().writer.acquire().await?;
            run(&mut connection, arguments).await
        })
    }

    /// The same for a hot statement: if it succeeds, its connection stays in
    /// the idle cache for the next one.
    pub async fn hot_statement<A: Copy, T, E: OperationError>(
        &self,
        arguments: A,
        run: impl AsyncFn(&mut Db::Connection, A) -> Result<T, E>,
    ) -> Result<T, E> {
        limited_and_retried!(self, Operation::Statement, async {
            let current = self.pools.current(&self.health);
            let mut connection = current.idle.take(&current.writer).await?;
            let answer = run(&mut connection, arguments).await?;
            current.idle.give_back(connection);
            Ok(answer)
        })
    }

    /// Writes in a transaction, and commits unless the operation answers that
    /// it wrote nothing.
    pub async fn write<A: Copy, T, E: OperationError>(
        &self,
        arguments: A,
        run: impl AsyncFn(&mut Db::Connection, A) -> Result<End<T>, E>,
    ) -> Result<T, E> {
        limited_and_retried!(self, Operation::Transaction, async {
            let mut transaction = self.begin_write().await?;
            let end = run(&mut transaction, arguments).await;
            end_transaction(&self.health, transaction, end).await
        })
    }

    /// The same for an operation whose runs borrow something.
    pub async fn transact<W: Work<Db>>(&self, mut work: W) -> Result<W::Answer, W::Error> {
        limited_and_retried!(self, Operation::Transaction, async {
            let mut transaction = self.begin_write().await?;
            let end = work.run(&mut transaction).await;
            end_transaction(&self.health, transaction, end).await
        })
    }

    /// Whether the database was read-only since the last call. If so, later
    /// operations use new connections: an old one would still refuse writes.
    pub fn leave_read_only(&self) -> bool {
        self.health.leave_read_only()
    }

    /// The state in which the database answers and refuses writes, by what the operations
    /// of this process met. A cheap statement does not meet a full one.
    pub fn refuses_writes(&self) -> Option<ErrorClass> {
        self.health.outages.refuses_writes()
    }

    /// Limits a whole call, which may run several operations, to `limit`, where
    /// that is shorter than the limit of one.
    pub async fn within<T, E: OperationError>(
        &self,
        limit: Duration,
        operation: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let outcome = limited(&self.health, limit, operation).await;
        noted(&self.health, Operation::Transaction, outcome)
    }

    /// Opens `wanted` connections. The error has the number that could be
    /// opened, and why there were no more.
    pub async fn fill(&self, wanted: u32) -> Result<(), (usize, sqlx::Error)> {
        let pool = self.pools.current(&self.health).writer;
        let mut connections = Vec::new();
        for _ in 0..wanted {
            match pool.acquire().await {
                Ok(connection) => connections.push(connection),
                Err(error) => return Err((connections.len(), error)),
            }
        }
        Ok(())
    }

    /// The pools, for an operation that is not a hot statement.
    fn current(&self) -> Current<Db> {
        let current = self.pools.current(&self.health);
        current.idle.make_room(&current.writer);
        current
    }

    async fn begin_write(&self) -> Result<Transaction<'static, Db>, sqlx::Error> {
        self.begin(self.current().writer, self.begin.write).await
    }

    /// Runs BEGIN in a task of its own, which finishes (or reaches the limit)
    /// even if the caller is gone.
    ///
    /// A caller's future can be dropped at any await: a client hangs up, a
    /// timeout ends. Once a transaction is begun, the driver rolls it back on
    /// drop. While BEGIN itself is under way the driver does not know of it yet;
    /// a connection dropped there would return to the pool inside a transaction,
    /// and its next user would write into a transaction that nobody commits.
    async fn begin(
        &self,
        pool: Pool<Db>,
        statement: &'static str,
    ) -> Result<Transaction<'static, Db>, sqlx::Error> {
        let health = Arc::clone(&self.health);
        let begun = tokio::spawn(async move {
            limited(&health, health.limit, pool.begin_with(statement)).await
        });
        begun.await.map_err(|error| sqlx::Error::Io(IoError::other(error)))?
    }

    /// Applies the limit, and notes a read-only database.
    async fn limited<T, E: OperationError>(
        &self,
        operation: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let outcome = limited(&self.health, self.health.limit, operation).await;
        let error = outcome.as_ref().err().and_then(OperationError::database_error);
        if error.map(class) == Some(ErrorClass::ReadOnly) {
            self.health.note_read_only();
        }
        outcome
    }
}

async fn limited<T, E: From<sqlx::Error>>(
    health: &Health,
    limit: Duration,
    operation: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    // The operation is dropped at the end of this function and not before, so
    // that the pool is already replaced when the connection returns to it.
    let mut operation = pin!(operation);
    tokio::select! {
        outcome = &mut operation => outcome,
        () = tokio::time::sleep(limit) => {
            health.replace_pools();
            tracing::debug!(?limit, "the database does not answer; its connections are closed");
            let text = format!("the database did not answer within {limit:?}");
            Err(sqlx::Error::Io(IoError::new(ErrorKind::TimedOut, text)).into())
        }
    }
}

/// Logs a state of the database that begins or ends with this outcome.
fn noted<T, E: OperationError>(
    health: &Health,
    operation: Operation,
    outcome: Result<T, E>,
) -> Result<T, E> {
    match &outcome {
        Ok(_) if operation == Operation::Statement => health.outages.succeeded(Proof::Accepted),
        Ok(_) => health.outages.succeeded(Proof::Read),
        Err(error) => match error.database_error() {
            Some(error) => {
                health.outages.failed(class(error), operation != Operation::Read, error);
            }
            // A rule refused, so the database answered.
            None => health.outages.succeeded(Proof::Read),
        },
    }
    outcome
}

/// An error rolls back before it is answered: dropped, the transaction would keep its
/// locks for a moment, and the next call of the same caller would meet them.
async fn end_transaction<Db: Database, T, E: OperationError>(
    health: &Health,
    transaction: Transaction<'static, Db>,
    end: Result<End<T>, E>,
) -> Result<T, E> {
    match end {
        Ok(End::Commit(answer)) => {
            transaction.commit().await?;
            health.outages.succeeded(Proof::Committed);
            Ok(answer)
        }
        Ok(End::Rollback(answer)) => transaction.rollback().await.map(|()| answer).map_err(E::from),
        Err(error) => {
            if let Err(failed) = transaction.rollback().await {
                tracing::debug!(%failed, "a rollback failed; its connection is closed");
            }
            Err(error)
        }
    }
}
