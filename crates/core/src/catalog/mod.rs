//! The catalog: what must exist before anything can be declared. Projects,
//! clouds, credentials and their assignments, blueprints, their versions and the
//! parameters of those, label definitions.
//!
//! A file has the aggregate of a kind and the rules about it.

pub mod name;

pub mod blueprint;
pub mod blueprint_version;
pub mod cloud;
pub mod composition_name;
pub mod credential;
pub mod label;
pub mod parameters;
pub mod project;

pub mod write;

pub use name::Name;
pub use write::CatalogWrite;
