//! `slipway tenant demo`: tenants against a real control plane. Five are made, one of them
//! with a seed that fails, so that it is cleaned up and explained; a migration reaches all
//! others; one is decommissioned and restored; then all are purged. Each fact is checked in
//! the tenants' databases, as their applications would read them, and through the API.
//!
//! The tenants are SQLite files in the directory of the demo, or schemas of a PostgreSQL
//! database that the caller names. There the demo removes what it made; a demo that broke off
//! says what it left.

mod arguments;
mod run;

mod site;
mod story;

pub(crate) use arguments::TenantDemoArguments;
pub(crate) use run::run;
