//! Deletions, and leaks: objects that no row claims, and the reverse.

pub(crate) mod brake;
pub(crate) mod leak;
pub(crate) mod plan;
pub(crate) mod protection;
pub(crate) mod purge;
pub(crate) mod record;
pub(crate) mod report;
pub(crate) mod restore;
pub(crate) mod settings;
mod which;
