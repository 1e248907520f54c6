//! `cargo xtask soak`: real control planes, real agents, and a random schedule
//! of declarations, deletions and faults, with a model beside it that knows
//! what must be true.
//!
//! The schedule is drawn from the seed before anything is started, so the same
//! seed does the same things in the same order; what the machine makes of them
//! differs from run to run, and that is the point. After each round everything
//! is undone that the soak did to processes, and the world has to come to rest
//! in the state that the accepted requests asked for.
//!
//! Owns: every process it starts, and the folder they live in. Must not: reach
//! into the product other than through its API, its processes and the files of
//! its nodes.

mod options;
mod random;
mod schedule;

mod agents;
mod http;
mod lines;
mod plane;
mod world;

mod events;
mod model;
mod perform;
mod run;
mod settle;
mod verify;

mod report;

pub use options::{Options, USAGE};
pub use run::{run, run_in_test};
