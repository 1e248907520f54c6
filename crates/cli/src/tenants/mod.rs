//! Tenants and their profiles.

pub(crate) mod demo;
pub(crate) mod profile;
pub(crate) mod tenant;
