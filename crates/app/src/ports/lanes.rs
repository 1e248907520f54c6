//! The lanes as a whole: what waits in them, whoever serves them.

use std::time::Duration;

use async_trait::async_trait;
use slipway_core::ids::Lane;

use super::store::Error;

/// A lane in which something is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverdueLane {
    /// `None` for rows that belong to no lane.
    pub lane: Option<Lane>,
    pub cluster: Option<String>,
    /// How long what is due longest has been waiting for a claim.
    pub overdue: Duration,
}

/// The part of the store that looks over all lanes.
#[async_trait]
pub trait LaneStore {
    /// Every lane in which something is due, in the order of their names.
    async fn lane_list_overdue(&self) -> Result<Vec<OverdueLane>, Error>;
}
