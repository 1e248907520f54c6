//! The whole system on a real Kubernetes API: the control plane as a process,
//! its fleet and its Crossplane engine, with the stand-in playing Crossplane.

#[expect(dead_code, reason = "shared with the tests on the local engine, which use all of it")]
#[path = "../system/control_plane.rs"]
mod control_plane;

mod blueprint;
mod hand;
mod life;
mod standing;
mod world;
