//! Tenants, their profiles and their jobs.

mod handlers;
mod profiles;
mod rows;

pub(crate) use rows::rows;
