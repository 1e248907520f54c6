//! Whole-system tests: the real binary, real agents, real databases.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod control_plane;

mod bad_input;
mod boot;
mod control;
mod crash;
mod demo;
mod events;
mod faults;
mod leaks;
mod life;
mod readme;
mod replicas;
mod restore;
mod stopping;
