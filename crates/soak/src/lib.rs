//! The soak: real control planes, real agents, and a random schedule of
//! declarations, deletions and faults, with a model that knows the expected
//! state, on the local engine or on a real Kubernetes API. `cargo xtask soak`
//! builds and runs it.
//!
//! The schedule is drawn from the seed before anything starts, so the same seed
//! gives the same operations in the same order. Their timing on the machine
//! differs from run to run, on purpose. After each round the soak undoes all
//! process faults, and the world has to converge to the state that the accepted
//! requests asked for.
//!
//! Owns: every process it starts, and their folder. Must not: touch the product
//! other than through its API, its processes, the files of its nodes and the
//! objects on its cluster.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool talks to its user"
)]

mod command_line;
mod options;
mod schedule;

mod agents;
mod cluster;
mod lines;
mod plane;
mod program;
mod world;

mod converge;
mod events;
mod model;
mod perform;
mod run;
mod verify;

mod report;

pub use command_line::command_line;
