//! Tenants in database files of one folder.
//!
//! A tenant is `<folder>/<name>.db`. Its ledger and its fence are tables in that file, so they
//! change in the transaction of the effect. What happens to the file as a whole (it is made,
//! moved aside, removed) has no transaction: there a small file `<folder>/.slipway/<name>` is the
//! lock and keeps the fence, also when the tenant is gone. [`files`] has that half, [`migrate`]
//! the other, [`drift`] compares.
//!
//! The folder is on one machine: SQLite's locks and ours do not work over a network.

mod files;
mod migrate;

mod drift;

mod target;

pub(crate) use target::SqliteTarget;
