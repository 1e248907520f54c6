//! The cluster agent on a real API server, with a stand-in for the control plane. What
//! it did is checked by listing the cluster.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test, with the place named")]

#[expect(dead_code, reason = "shared with the tests over folders, which use all of it")]
#[path = "../fleet/stand_in.rs"]
mod stand_in;

mod clusters;
mod deploy;
mod idle;
mod leave;
mod lost;
mod owners;
mod world;
