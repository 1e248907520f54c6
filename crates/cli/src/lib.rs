//! The command line: a client of our own API, its tables and progress, and a
//! demonstration that runs the whole story on this machine.
//!
//! The binary adds the commands that start processes (`up`, `agent`) beside
//! [`Command`] and hands the rest to [`run()`]. Results go to the output, all
//! that is said about them (progress, questions, errors) to the error output,
//! so that a pipe carries nothing but the result. This crate knows the API by
//! its documents only; it decides nothing that the server decides.

mod arguments;
mod error;
mod examples;
mod exit;
mod terminal;

mod client;
mod present;
mod render;
mod renderers;
mod sse;
mod wait;

mod commands;
mod demo;

pub use arguments::{ClientOptions, Command, Output};
pub use client::{KeyLook, ServerLook, look_at_server};
pub use commands::{run, run_on};
pub use error::Error;
pub use examples::with_examples;
pub use exit::{EXIT_CODES, Exit};
pub use present::{agree, present, say};
pub use render::{facts, rows};
pub use renderers::{DaemonSet, Renderers};
pub use terminal::{Terminal, Traits};
