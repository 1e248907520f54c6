//! Projects, clouds, credentials, blueprints and labels.

pub(crate) mod blueprint;
pub(crate) mod cloud;
pub(crate) mod credential;
pub(crate) mod label;
pub(crate) mod project;
pub(crate) mod relabel;

pub(crate) mod bundle;
pub(crate) mod import;
pub(crate) mod parameters;
