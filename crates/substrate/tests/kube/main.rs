//! The engine crossplane against a real API server, without Crossplane: the tests
//! write the conditions that it would write.
//!
//! Most tests share one environment, each with its own installation and
//! namespace; those of `faults` take servers down, and use another one, one after
//! the other.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test, with the place named")]

mod apply;
mod delete;
mod faults;
mod high_water_mark;
mod inventory;
mod late;
mod observe;
mod permits;
mod refusals;
mod replicas;
mod shared_objects;
mod support;
mod watch;
mod writes;
