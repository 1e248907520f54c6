//! How everything stands, in numbers. For people and their graphs; nothing is
//! decided on it.

use std::collections::BTreeMap;

use async_trait::async_trait;
use slipway_core::Phase;
use slipway_core::blocker::BlockerCode;
use slipway_core::node::Reachability;

use super::store::Error;

/// The numbers of one moment. What is not in a map is zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// Attempts by phase. Each resource has one that is not Deleted, or is
    /// deleted itself; the Deleted ones are those that are still kept.
    pub phases: BTreeMap<Phase, u64>,
    pub blockers: BTreeMap<BlockerCode, u64>,
    /// Registered nodes only.
    pub nodes: BTreeMap<Reachability, u64>,
}

/// The part of the store that counts.
#[async_trait]
pub trait StandingStore {
    /// Counts everything. This reads every attempt and every registered node,
    /// so whoever wants it often keeps the answer for a while.
    async fn standing(&self) -> Result<Standing, Error>;
}
