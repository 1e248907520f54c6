//! Recording ticks: the loop's own hot path through the store.
//!
//! What a tick decided on was read under its claim, without a lock. Most of its
//! records touch nothing but the attempt's own row and what is said of it; those
//! are written on the condition that nothing moved since, see
//! [`Recorded`]. What missed its condition is decided again under lock by
//! [`Store::decide_many`](super::Store::decide_many), so this port never has to
//! say why.

use std::collections::HashSet;
use std::fmt;

use async_trait::async_trait;
use slipway_core::commit::Recorded;
use slipway_core::ids::ProvisionedResourceId;

use super::store::Error;

#[async_trait]
pub trait RecordStore: fmt::Debug + Send + Sync {
    /// Writes those whose conditions hold (no attempt twice), each whole or not
    /// at all, all of them in one transaction, and answers which. An error
    /// means that the database cannot be used.
    async fn attempt_record(
        &self,
        records: &[Recorded],
    ) -> Result<HashSet<ProvisionedResourceId>, Error>;
}
