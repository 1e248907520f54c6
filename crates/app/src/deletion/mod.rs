//! Removal: deletions as they are requested, run and read, protection, and leaks.

pub mod port;

pub mod holding;
pub mod leaks;
pub mod protection;
pub mod read;
pub mod report;
pub mod request;
pub mod run;
