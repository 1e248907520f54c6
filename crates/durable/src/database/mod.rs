//! The choke point to a database. Every statement of a store goes through a
//! door of a [`Gateway`], which alone has the pools. The time limit, the retry
//! of what the database rolled back by chance, and the replacement of a pool
//! whose connections went silent are written here and nowhere else.
//!
//! [`errors`] says what an error of the driver means, [`health`] counts the
//! generations of pools, [`pools`] has the connections, [`retry`] runs again.

mod errors;
mod gateway;
mod health;
mod idle;
mod pools;
mod retry;

#[cfg(test)]
mod tests;

pub use errors::{
    Condition, OperationError, concerns_the_database, condition, has_no_connection, is_temporary,
    is_transient,
};
pub use gateway::{Begin, End, Gateway, Work};
pub use health::STATEMENT_LIMIT;
pub use pools::Source;
pub use retry::{retried, retried_on};
