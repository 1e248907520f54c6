//! Pure rendering: turns what is declared into the objects that an engine
//! applies. No I/O and no clock; the same input gives the same bytes. Secrets
//! pass through here on their way into an object and must not show up in any
//! `Debug` or error text.
//!
//! Four groups. The composite of a resource: [`dispatch`] chooses the engine,
//! [`crossplane`], [`local_node`], [`hetzner`] and [`machine`] write it. Publishing a version: [`pair`]
//! checks an [`xrd`], a [`composition`] and the metadata against each other.
//! What a project shares in its namespace: [`shared`], with [`provider_config`]
//! and [`external_secret`]. What a cluster needs to know the kind of a
//! blueprint's composites: [`definitions`].

pub mod canonical;
pub mod cloud_init;
pub mod cloud_tags;
pub mod composite;
pub mod composition;
pub mod crossplane;
pub mod daemon_set;
pub mod definitions;
pub mod dispatch;
mod documents;
mod error;
pub mod external_secret;
pub mod hetzner;
pub mod injection;
pub mod local_node;
pub mod machine;
pub mod pair;
pub mod provider_config;
mod settings;
pub mod shared;
pub mod template;
pub mod xrd;
mod xrd_parameters;

pub use composite::RenderedComposite;
pub use dispatch::{can_inject, composite_of, owned_of};
pub use error::Error;
pub use injection::Injection;
pub use settings::NodeSettings;
