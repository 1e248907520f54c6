//! The only way to a database. Every statement of a store goes through a method
//! of a [`Gateway`], which alone owns the pools. The time limit, the retry of
//! transactions that the database rolled back by chance, and the replacement of
//! a pool whose connections do not answer are written here and nowhere else.
//!
//! [`errors`] classifies the driver's errors, [`health`] counts the generations
//! of pools, [`outage`] logs when the database cannot be used, [`pools`] owns the
//! connections, [`retry`] retries.

mod errors;
mod gateway;
mod health;
mod idle;
mod outage;
mod pools;
mod retry;

#[cfg(test)]
mod tests;

pub use errors::{ErrorClass, OperationError, POSTGRES, SQLITE, class};
pub use gateway::{Begin, End, Gateway, Work};
pub use health::{IdlePing, STATEMENT_LIMIT};
pub use pools::Source;
pub use retry::{retried, retried_on};
