//! The whole system on a real Kubernetes API: the control plane as a process,
//! its fleet and its Crossplane engine, with the stand-in playing Crossplane.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "shared with the tests on the local engine, which use all of it")]
#[path = "../system/control_plane.rs"]
mod control_plane;
#[path = "../system/explained.rs"]
mod explained;

mod blueprint;
mod clusters;
mod delivery;
mod demo;
mod hand;
mod life;
mod order;
mod plane;
mod stage;
mod standing;
mod world;
