//! The engine on Crossplane: a resource is one composite in its project's
//! namespace on a management cluster. What the project's resources share there
//! (the namespace, ProviderConfigs, secrets) is the fleet's, not this engine's.
//!
//! * [`access`]: how a cluster is reached, and which kubeconfigs are taken.
//! * `connection`: the client, made anew when its credentials change.
//! * `fold`: a live object becomes the facts that are decided on.
//! * `index`: what stands there, kept up to date by watches.
//! * `observe`, `act`: looking and acting.
//! * `witness`: what survives our database, by which a restored one is known.
//! * `engine`: the substrate port on all of it.
//! * `management`: what a project's resources share, which is the fleet's.
//! * `definitions`: the kinds of composites that blueprints bring.

pub mod access;
mod act;
mod connection;
mod definitions;
mod engine;
mod fold;
mod index;
mod inventory;
mod management;
mod observe;
mod trouble;
mod watch;
mod witness;

pub use access::{Access, InvalidKubeconfig};
pub use engine::{CrossplaneConfig, CrossplaneSubstrate};

/// Under this name the fields that we own are kept apart from everybody else's.
pub const FIELD_MANAGER: &str = "slipway-provisioning-broker";
