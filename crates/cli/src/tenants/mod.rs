//! Tenants and their profiles.

pub(crate) mod profile;
pub(crate) mod tenant;
