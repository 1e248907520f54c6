//! Tenants and their profiles.

pub(crate) mod demo;
mod export;
pub(crate) mod profile;
pub(crate) mod tenant;
