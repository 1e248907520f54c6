//! The whole system on a real Kubernetes API: the control plane as a process,
//! its placement and its Crossplane engine, with the stand-in playing Crossplane.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "shared with the tests on the local engine, which use all of it")]
#[path = "../system/control_plane.rs"]
mod control_plane;
#[path = "../system/explained.rs"]
mod explained;

mod abandon;
mod account;
mod blueprint;
mod cast;
mod changes;
mod clusters;
mod definitions;
mod demo;
mod flapping;
mod fleet;
mod hand;
mod holding;
mod kinds;
mod labels;
mod late;
mod life;
mod many;
mod namespace_status;
mod order;
mod outage;
mod replicas;
mod shipped;
mod situations;
mod stage;
mod world;
