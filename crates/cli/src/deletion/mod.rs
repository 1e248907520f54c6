//! Deletions, and leaks: objects that no row claims, and the reverse.

pub(crate) mod leak;
pub(crate) mod protection;
pub(crate) mod record;
mod report;
