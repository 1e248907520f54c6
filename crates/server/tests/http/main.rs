//! The whole router over a real SQLite store, called without a socket. The
//! tests themselves write what a loop would write (a token, a drain request).

#![expect(clippy::unwrap_used, reason = "what fails here fails the test, with the place named")]

mod world;

mod access;
mod audit;
mod blueprints;
mod brakes;
mod catalog;
mod control;
mod explain;
mod files;
mod fleet;
mod idempotency;
mod keys;
mod labels;
mod leaks;
mod lists;
mod names;
mod nodes;
mod orphan;
mod plans;
mod plexd;
mod purges;
mod resources;
mod restores;
mod streams;
mod surface;
mod tenants;
mod tokens;
mod topology;
mod updates;
