//! The engine on Crossplane: a resource is one composite in its project's
//! namespace on a management cluster. What the project's resources share there
//! (the namespace, ProviderConfigs, secrets) is the placement loop's, not this engine's.
//!
//! Requests, watches and the classification of errors are in `slipway_cluster`;
//! this engine decides what the objects mean.
//!
//! * `live_object`: parses a live object into the facts that decisions need.
//! * `observe`, `act`: observing and acting.
//! * `high_water_mark`: what survives our database, by which a restored one is
//!   recognised.
//! * `engine`: the substrate port on all of it.
//! * `management`: what a project's resources share, which is the placement loop's.
//! * `definitions`: the kinds of composites that blueprints bring.

mod act;
mod definitions;
mod engine;
mod high_water_mark;
mod inventory;
mod live_object;
mod management;
mod observe;

pub use engine::{CrossplaneConfig, CrossplaneSubstrate};
pub use slipway_cluster::{Access, InvalidKubeconfig};

/// Under this name the fields that we own are kept apart from everybody else's.
pub const FIELD_MANAGER: &str = "slipway-provisioning-broker";
