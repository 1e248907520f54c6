//! **A stand-in for tests. It is not Crossplane.** It plays, on a real
//! Kubernetes API, the part of Crossplane, of a provider and of External
//! Secrets that a control plane for composites can see:
//!
//! - for each `CompositeResourceDefinition` it makes the kind of the composite;
//! - for each composite it puts Crossplane's finalizer, one composed `Server`
//!   and conditions, and takes them away in order when the composite leaves;
//! - when a composite is Ready it boots a node agent from what was injected,
//!   and ends it with the composite;
//! - for each `ExternalSecret` it makes the Secret.
//!
//! No function of a composition is run, no cloud is asked. How each composite
//! goes is said by flags for all of them and by [`script`] for one.
//!
//! Started as the program `crossplane-standin`, or inside a test by [`run`].
//!
//! Must not: be needed by anything that ships.

pub mod script;

mod options;
mod run;

mod composite;
mod definition;
mod external_secret;

mod agent;

mod install;
mod kinds;

mod clock;
mod context;
mod journal;
mod watching;

pub use install::install;
pub use options::{AgentMode, NOTICE, Options, parse_duration};
pub use run::run;
