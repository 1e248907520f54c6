//! Explaining under faults: reads like every other.

use async_trait::async_trait;
use slipway_app::ports::ExplainStore;
use slipway_app::ports::explain::Among;
use slipway_app::ports::store::Error;
use slipway_core::explanation::{AttemptLine, PhaseCount};
use slipway_core::ids::Lane;

use super::store::FatedStore;

#[async_trait]
impl ExplainStore for FatedStore {
    async fn attempt_lines(&self, among: Among, limit: u32) -> Result<Vec<AttemptLine>, Error> {
        self.fate.alive().await;
        self.inner.attempt_lines(among, limit).await
    }

    async fn phase_counts(&self, among: Among) -> Result<Vec<PhaseCount>, Error> {
        self.fate.alive().await;
        self.inner.phase_counts(among).await
    }

    async fn lane_holders(&self, lane: Lane) -> Result<Vec<(String, u64)>, Error> {
        self.fate.alive().await;
        self.inner.lane_holders(lane).await
    }
}
