//! Declaring from files: `apply`, `diff`, `get`, `export`, a sample and the sources.

pub(crate) mod apply;
mod changed;
mod changes;
pub(crate) mod export;
mod folder;
pub(crate) mod get;
mod nickel;
mod prune;
pub(crate) mod sample;
pub(crate) mod source;
mod watch;
