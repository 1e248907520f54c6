//! A real PostgreSQL for tests: one server for many tests, a database for each.
//!
//! Sources of a server, in the order in which they are tried:
//! 1. `SLIPWAY_TEST_DATABASE_URL` names one (`cargo xtask test` starts one for
//!    the whole run and sets this);
//! 2. otherwise the first test of a process that asks starts one, which the
//!    other tests of that process share;
//! 3. without an installed PostgreSQL there is none: the test prints one line
//!    and returns. With `SLIPWAY_REQUIRE_POSTGRES=1` it fails instead, so that a
//!    run which claims to have tested PostgreSQL has done so.
//!
//! ```no_run
//! # async fn a_test() {
//! let Some(postgres) = slipway_testkit::postgres::shared("my_test").await else { return };
//! let database = postgres.database("my_test").await;
//! // … connect to database.url(); it is dropped with `database`.
//! # }
//! ```
//!
//! Must not: know any schema. The crate that owns the migrations migrates one
//! database and copies it by [`Postgres::database_from_template`].

mod binaries;
mod database;
mod server;
mod shared;
mod watchdog;

pub use binaries::{BINARIES_VARIABLE, installed};
pub use database::TestDatabase;
pub use server::{Options, Postgres};
pub use shared::{DATABASE_URL_VARIABLE, REQUIRE_VARIABLE, shared};
