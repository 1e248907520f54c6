//! The soak: real control planes, real agents, and a random schedule of
//! declarations, deletions and faults, with a model beside it that knows what
//! must be true. `cargo xtask soak` builds and runs it.
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
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool talks to its user"
)]

mod command_line;
mod options;
mod random;
mod schedule;

mod agents;
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
