//! Removal: deletions as they are requested, run and read, protection, and leaks.

pub mod port;

pub mod brake;
pub mod holding;
pub mod leaks;
pub mod plan;
pub mod protection;
pub mod purge;
pub mod read;
pub mod report;
pub mod request;
pub mod restore;
pub mod run;
pub mod settings;
