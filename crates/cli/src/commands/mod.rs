//! The commands: each asks the client, shows what came back, and answers how
//! it ended. One file per noun.

mod run;

mod audit;
pub(crate) mod catalog;
mod control;
mod events;
mod explain;
mod keys;
mod leaks;
mod records;
mod resources;
mod suggest;
mod target;
mod tokens;

pub use run::{run, run_on};
