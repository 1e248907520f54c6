//! The decisions: one file per use-case, each a pure function from a snapshot
//! and a command to a [`crate::commit::Commit`] or a [`crate::Refusal`]. They
//! run inside the store's transaction, which retries after a deadlock and may
//! thus run them twice, so they only compute.

pub mod api_keys;
pub mod catalog;
pub mod control;
pub mod decide;
pub mod declare;
pub mod definitions;
pub mod delete;
pub mod deletion_verification;
pub mod drain;
pub mod enrol;
pub mod explain;
pub mod explanation;
pub mod flapping;
pub mod orphans;
pub mod placement;
pub mod positions;
pub mod prepare;
pub mod record;
pub mod relabel;
pub mod retry;
mod teardown;
pub mod tokens;
pub mod transition;
