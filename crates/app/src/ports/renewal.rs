//! Renewal: keeping claims whose work takes longer than one lease.

use std::time::Duration;

use async_trait::async_trait;
use slipway_core::ids::ProvisionedResourceId;

use super::store::{Claimed, Error};

/// The part of the store that prolongs claims.
#[async_trait]
pub trait RenewalStore {
    /// Gives those of these claims that this worker still holds a lease of this
    /// length from now on, and answers which they are. A claim that was given
    /// back or taken over is left alone. So is a row that somebody writes at
    /// this moment: it may be its release; the next renewal finds out.
    ///
    /// A wake that came under the claim is kept: it counts when the claim is
    /// given back, or runs out.
    async fn attempt_renew(
        &self,
        worker: &str,
        claims: &[Claimed],
        lease: Duration,
    ) -> Result<Vec<ProvisionedResourceId>, Error>;
}
