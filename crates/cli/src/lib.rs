//! The command line: a client of our own API with tables and progress, and a
//! demonstration that runs the whole lifecycle on this machine.
//!
//! The binary adds the commands that start processes (`up`, and the programs below `agent`)
//! beside [`Command`] and passes the rest to [`run()`]. Results go to standard output;
//! progress, questions and errors go to standard error, so that a pipe carries
//! the result alone. This crate knows only the documents of the API; it decides
//! nothing that the server decides.
//!
//! Each domain folder has a file per noun with its arguments, examples, columns
//! and commands. `command` lists the nouns; `kind` and `session` have what all
//! of them share.

mod command;

mod access;
mod broker;
mod catalog;
mod deletion;
mod events;
mod files;
mod fleet;
mod nodes;
mod operations;
mod placement;
mod rollouts;
mod tenants;
mod topology;

mod context;
mod demo;

mod arguments;
mod client;
mod complete;
mod error;
mod examples;
mod exit;
mod kind;
mod output;
mod renderers;
mod run;
mod session;
mod suggest;
mod terminal;
mod wait;
mod wait_command;
mod watch;

pub use arguments::{ClientOptions, Output};
pub use command::Command;
pub use context::{LocalServer, Remembered, remember_local};
pub use error::Error;
pub use examples::with_examples;
pub use exit::{EXIT_CODES, Exit};
pub use fleet::agent::AgentCommand;
pub use operations::{KeyProbe, ServerProbe, probe_server};
pub use output::{Template, agree, facts, fail, present, rows, say, wrap};
pub use renderers::{DaemonSet, MachineConfig, Pending, Query, Renderers};
pub use run::{run, run_on};
pub use terminal::{Terminal, Traits};
