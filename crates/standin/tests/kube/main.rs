//! The stand-in on a real Kubernetes API.
//!
//! Most tests share one environment and one stand-in, which runs as a program;
//! each test has its own namespace. A test that needs other flags, or the whole
//! cluster, has its own environment.

mod agents;
mod composites;
mod control_plane;
mod definitions;
mod external_secrets;
mod faults;
mod many;
mod world;
