//! Whole-system tests: the real binary, real agents, real databases.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod control_plane;

mod abandon;
mod applying;
mod backup;
mod bad_input;
mod boot;
mod boot_database;
mod catalog;
mod clock;
mod control;
mod crash;
mod database_states;
mod deletions;
mod demo;
mod doctor;
mod events;
mod everyday;
mod explain;
mod explained;
mod first_minute;
mod fleet;
mod flood;
mod hetzner;
mod import;
mod keys;
mod late_replica;
mod leaks;
mod life;
mod machines;
mod manual;
mod network;
mod plans;
mod plexd;
mod purges;
mod readme;
mod reenrol;
mod replicas;
mod restore;
mod rolling;
mod secrets;
mod status;
mod stopping;
mod telemetry;
mod tenants;
mod tenants_exported;
mod tenants_restored;
mod tenants_waited;
mod tls;
mod wrong_inputs;
