//! The only way to a database. Every statement of a store goes through a method
//! of a [`Gateway`], which alone owns the pools. The time limit, the retry of
//! transactions that the database rolled back by chance, and the replacement of
//! a pool whose connections do not answer are written here and nowhere else.
//!
//! [`errors`] classifies the driver's errors, [`health`] counts the generations
//! of pools, [`outage`] logs when the database cannot be used, [`pools`] owns the
//! connections, [`retry`] retries. [`postgres`] and [`sqlite`] make a gateway to a database
//! of theirs; [`TableName`] lets a statement name a table that is known at run time.

mod errors;
mod gateway;
mod health;
mod idle;
mod outage;
mod pools;
pub mod postgres;
mod retry;
pub mod sqlite;
mod table_name;

#[cfg(test)]
mod tests;

pub use errors::{ErrorClass, OperationError, POSTGRES, SQLITE, class};
pub use gateway::{Begin, End, Gateway, Work};
pub use health::{IdlePing, STATEMENT_LIMIT};
pub use pools::Source;
pub use retry::{retried, retried_on};
pub use table_name::{TableName, interned};
