//! Whole-system tests: the real binary, real agents, real databases.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod control_plane;

mod bad_input;
mod boot;
mod catalog;
mod crash;
mod demo;
mod faults;
mod leaks;
mod life;
mod readme;
mod replicas;
mod stopping;
