//! The gateway's methods in terms of the port, and the one shape of a decision:
//! open a transaction, lock and load, call the rule, write what it answered,
//! commit. A refusal rolls back.
//!
//! *Order of locks.* Row locks are taken in one order, by whatever statement:
//! project → group → resource → node → attempt → mesh address. Several rows of
//! one table are locked by one statement, in the order of their ids. The rows of
//! a catalog or a placement are locked under the project's, or alone, or by an update, a
//! replacement or a retry under its resource's; who has locked one waits for neither. Of those
//! who lock a project, only its deletion, its restore and protection wait for its resources,
//! which come later in the order: declarations, the catalog, placements and the growth of a
//! pool of addresses only insert new ones. `locks_are_taken_in_one_order` reads
//! the order from the log of a server. The rows of Fleet come after the project: agent →
//! generator → stack → template.
//!
//! A new aggregate implements [`Load`] for its key, and [`Written`] if it has a
//! commit type of its own; nothing else opens a transaction for a rule.

use std::sync::Arc;

use slipway_app::files::port::Beside;
use slipway_app::ports::store::{Error, Rule};
use slipway_core::commit::Commit;
use slipway_core::files::write;
use slipway_durable::database::{End, Work};

use super::{Backend, Connection, Db, commit};
use crate::failure::Failure;

/// The key of the subject of a decision.
pub(crate) trait Load: Send + Sync {
    type Snapshot: Send + Sync;

    /// Locks the subject of the decision, and loads the snapshot for its rule.
    fn load(
        &self,
        connection: &mut Connection,
    ) -> impl Future<Output = Result<Self::Snapshot, Failure>> + Send;
}

/// What a rule answers, and how it is written.
pub(crate) trait Written: Send + Sync {
    fn is_empty(&self) -> bool;

    /// Adds what is written with every decision; see [`Beside`].
    fn add(&mut self, _beside: &Beside) {}

    fn write(
        &self,
        connection: &mut Connection,
    ) -> impl Future<Output = Result<(), Failure>> + Send;
}

impl Written for Commit {
    fn is_empty(&self) -> bool {
        Self::is_empty(self)
    }

    fn add(&mut self, beside: &Beside) {
        write::add(self, &beside.rows);
    }

    async fn write(&self, connection: &mut Connection) -> Result<(), Failure> {
        commit::apply(connection, std::slice::from_ref(self)).await
    }
}

/// One decision, as the work of a transaction.
pub(crate) struct Decision<'a, 'r, L: Load, C> {
    pub(crate) key: L,
    pub(crate) rule: &'a mut Rule<'r, L::Snapshot, C>,
    pub(crate) beside: Option<Arc<Beside>>,
}

impl<L: Load, C: Written> Decision<'_, '_, L, C> {
    /// Decides in a transaction that the caller ends.
    pub(crate) async fn in_txn(&mut self, connection: &mut Connection) -> Result<End<()>, Failure> {
        let snapshot = self.key.load(connection).await?;
        let mut decided = (self.rule)(&snapshot)?;
        if decided.is_empty() {
            return Ok(End::Rollback(()));
        }
        if let Some(beside) = &self.beside {
            if beside.dry_run {
                return Err(Failure::DryRun);
            }
            decided.add(beside);
        }
        decided.write(connection).await?;
        Ok(End::Commit(()))
    }
}

impl<L: Load, C: Written> Work<Db> for Decision<'_, '_, L, C> {
    type Answer = ();
    type Error = Failure;

    async fn run(&mut self, connection: &mut Connection) -> Result<End<()>, Failure> {
        self.in_txn(connection).await
    }
}

impl Backend {
    /// Decides about the subject of the key.
    pub(crate) async fn decided<L: Load, C: Written>(
        &self,
        key: L,
        rule: &mut Rule<'_, L::Snapshot, C>,
    ) -> Result<(), Error> {
        let beside = self.beside.clone();
        Ok(self.database.transact(Decision { key, rule, beside }).await?)
    }

    /// See [`slipway_durable::database::Gateway::read`].
    pub(crate) async fn read<A: Copy, T>(
        &self,
        arguments: A,
        run: impl AsyncFn(&mut Connection, A) -> Result<T, Failure>,
    ) -> Result<T, Error> {
        Ok(self.database.read(arguments, run).await?)
    }

    /// See [`slipway_durable::database::Gateway::read_snapshot`].
    pub(crate) async fn read_snapshot<A: Copy, T>(
        &self,
        arguments: A,
        run: impl AsyncFn(&mut Connection, A) -> Result<T, Failure>,
    ) -> Result<T, Error> {
        Ok(self.database.read_snapshot(arguments, run).await?)
    }

    /// See [`slipway_durable::database::Gateway::statement`].
    pub(crate) async fn statement<A: Copy, T>(
        &self,
        arguments: A,
        run: impl AsyncFn(&mut Connection, A) -> Result<T, Failure>,
    ) -> Result<T, Error> {
        Ok(self.database.statement(arguments, run).await?)
    }

    /// See [`slipway_durable::database::Gateway::write`].
    pub(crate) async fn write<A: Copy, T>(
        &self,
        arguments: A,
        run: impl AsyncFn(&mut Connection, A) -> Result<End<T>, Failure>,
    ) -> Result<T, Error> {
        Ok(self.database.write(arguments, run).await?)
    }
}

/// Implements a port of the application. A row has the way of an operation to the database,
/// which is a method of [`Backend`], the method of the port, and the function that runs with
/// the arguments: `read task_list() -> Vec<Task> = tasks::list;`. Methods with a body of their
/// own stand in `by_hand`.
macro_rules! port {
    ($port:ident {
        $($way:ident $method:ident($($argument:ident: $kind:ty),* $(,)?) -> $answer:ty = $run:path;)*
     }
     $(by_hand { $($by_hand:tt)* })?) => {
        #[async_trait::async_trait]
        impl $port for Backend {
            $(async fn $method(&self, $($argument: $kind),*) -> Result<$answer, Error> {
                self.$way(($($argument),*), $run).await
            })*

            $($($by_hand)*)?
        }
    };
}
