//! Deletions, and leaks: what lies outside and no row claims.

pub(crate) mod leak;
pub(crate) mod record;
