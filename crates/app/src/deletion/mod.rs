//! Removal: deletions as they are requested, run and read, protection, and leaks.

pub mod port;

pub mod leaks;
pub mod protection;
pub mod purge;
pub mod read;
pub mod request;
pub mod run;
pub mod settings;
