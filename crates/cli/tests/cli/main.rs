//! Commands against a stand-in server on loopback: what they send, what they
//! print to which stream, and how they end.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test, with the place named")]

mod stand_in;

mod access;
mod catalog;
mod changes;
mod commands;
mod contexts;
mod control;
mod events;
mod exits;
mod fleet;
mod leaks;
mod plans;
mod restores;
mod selectors;
mod waiting;
