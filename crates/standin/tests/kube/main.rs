//! The stand-in on a real Kubernetes API.
//!
//! Most tests share one environment and one stand-in, which runs as a program;
//! each has a namespace of its own. What needs other flags, or all to itself,
//! has an environment of its own.

mod agents;
mod composites;
mod control_plane;
mod definitions;
mod external_secrets;
mod faults;
mod many;
mod world;
