//! **A stand-in for tests. It is not Crossplane.** On a real Kubernetes API it
//! plays the part of Crossplane, of a provider and of External Secrets that a
//! control plane for composites can observe:
//!
//! - for each `CompositeResourceDefinition` it creates the kind of the composite;
//! - for each composite it sets Crossplane's finalizer, one composed `Server`
//!   and conditions, and removes them in order when the composite is deleted;
//! - it composes by the Composition that a composite names, if it names one, and
//!   the `Server` says by which;
//! - when a composite is Ready it boots a node agent from what was injected,
//!   and ends it with the composite;
//! - for each `ExternalSecret` it creates the Secret.
//!
//! It runs no composition functions and calls no cloud. Flags set the behaviour
//! of all composites, a [`script`] that of one.
//!
//! Beside it, [`hetzner`] plays the API of a cloud for the engine of that name.
//!
//! Start it as the program `crossplane-standin`, or inside a test by [`run`].
//!
//! Must not: be needed by anything that ships.

pub mod hetzner;
pub mod script;

mod options;
mod run;

mod composite;
mod composition;
mod definition;
mod external_secret;

mod agent;

mod install;
mod kinds;
pub mod managed;

mod clock;
mod context;
mod journal;
mod watching;

pub use install::install;
pub use options::{AgentMode, NOTICE, Options, parse_duration};
pub use run::run;
