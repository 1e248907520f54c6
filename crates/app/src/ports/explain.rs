//! Explaining's side of the store port: attempts as their rows say, also where
//! a row breaks an invariant, and how many are where. Read without a lock, for
//! people; nothing is decided on it.

use async_trait::async_trait;
use slipway_core::explanation::{AttemptLine, PhaseCount};
use slipway_core::ids::{Lane, ProjectId, ProvisionedResourceId, ResourceId};

use super::store::Error;

/// Which attempts: those for which everything holds that is said here.
#[derive(Debug, Clone, Copy, Default)]
pub struct Among {
    pub attempt: Option<ProvisionedResourceId>,
    pub resource: Option<ResourceId>,
    pub project: Option<ProjectId>,
    pub lane: Option<Lane>,
    /// Only those with a blocker.
    pub blocked: bool,
}

/// The part of the store that says where attempts are.
#[async_trait]
pub trait ExplainStore {
    /// The newest resources first, and of each its newest attempt first.
    async fn attempt_lines(&self, among: Among, limit: u32) -> Result<Vec<AttemptLine>, Error>;

    /// Those that are not yet proven gone, by phase, in the order of their names.
    async fn phase_counts(&self, among: Among) -> Result<Vec<PhaseCount>, Error>;

    /// Who holds claims in this lane just now, and how many, by name.
    async fn lane_holders(&self, lane: Lane) -> Result<Vec<(String, u64)>, Error>;
}
