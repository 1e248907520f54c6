//! Letting go of what was kept long enough. Every method removes a bounded
//! number of rows in a transaction of its own and says how many, so that
//! nobody waits for it; whoever wants all of it gone asks again.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use slipway_core::ids::AuditEntryId;

use super::store::Error;

/// What one step through the audit entries came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditPruned {
    pub removed: u64,
    /// Where the next step goes on; `None` once what follows is too young.
    pub next: Option<AuditEntryId>,
}

#[async_trait]
pub trait RetentionStore: fmt::Debug + Send + Sync {
    /// Removes the oldest events, up to `limit` of them, as long as they
    /// happened longer ago than `keep` and every subscription has had them.
    /// The highest position that is gone is kept.
    async fn event_prune(&self, keep: Duration, limit: u32) -> Result<u64, Error>;

    /// Removes the history of attempts of resources that have been gone for
    /// longer than `keep`; of `limit` attempts at most. What is not gone, or
    /// has an open leak record, keeps all of its history.
    async fn history_prune(&self, keep: Duration, limit: u32) -> Result<u64, Error>;

    /// Looks at up to `limit` audit entries after this one, in the order of
    /// their ids, which is that of time, and removes those older than `keep`
    /// whose subject is gone.
    async fn audit_prune(
        &self,
        keep: Duration,
        after: Option<AuditEntryId>,
        limit: u32,
    ) -> Result<AuditPruned, Error>;
}
