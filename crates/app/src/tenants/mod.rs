//! Tenants: their profiles, how they are made and made again, what is done to finished ones,
//! and the port to where they live.

pub mod port;
pub mod targets;

pub mod profiles;
pub mod provision;
pub mod repair;
pub mod resume;

pub mod export;
pub mod jobs;
pub mod migrate;
pub mod tasks;
