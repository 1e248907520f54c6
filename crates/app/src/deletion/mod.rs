//! Removal: deletions as they are read, and leaks.

pub mod port;

pub mod leaks;
pub mod read;
