//! Engine `crossplane`: a resource is one composite in its project namespace on
//! a management cluster. The placement loop, not the resource loop, writes what
//! the project's resources share there (namespace, ProviderConfigs, secrets).
//!
//! `slipway_cluster` sends requests, runs watches and classifies errors; this
//! engine decides what the objects mean.
//!
//! * `live_object`: parses a live object into the facts that decisions need.
//! * `observe`, `act`: observe, apply and delete composites.
//! * `holders`: what holds a deletion, and telling it to keep its external object.
//! * `inventory`: lists all composites, for the leak scan.
//! * `high_water_mark`: a counter on the cluster that reveals a restored database.
//! * `engine`: implements the substrate port with these modules.
//! * `management`: implements the port of the placement loop.
//! * `definitions`: installs the XRDs and Compositions of blueprint versions.

mod act;
mod definitions;
mod engine;
mod high_water_mark;
mod holders;
mod inventory;
mod live_object;
mod management;
mod observe;

pub use engine::{CrossplaneConfig, CrossplaneSubstrate};
pub use slipway_cluster::{Access, InvalidKubeconfig};

/// The field manager of our server-side applies; it marks the fields we own.
pub const FIELD_MANAGER: &str = "slipway-provisioning-broker";
