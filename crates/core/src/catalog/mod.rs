//! The catalog: what must exist before anything can be declared. Projects,
//! clouds, credentials and their assignments, clusters and the projects placed
//! on them, blueprints and their versions, label definitions.
//!
//! Plain data here; the rules about it are in [`crate::rules::catalog`].

pub mod name;

pub mod blueprint;
pub mod cloud;
pub mod cluster;
pub mod credential;
pub mod label;
pub mod project;

pub mod snapshot;
pub mod write;

pub use name::Name;
pub use write::CatalogWrite;
