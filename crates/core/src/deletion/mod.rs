//! Removal: the one record of every deletion, and leaks, that is objects outside
//! that no row claims, or the reverse.

pub mod leak;
pub mod orphans;
pub mod record;
pub mod write;

pub use write::DeletionWrite;
