//! The claims of attempts, for the lease renewer.

use std::time::Duration;

use async_trait::async_trait;
use slipway_app::broker::port::Claimed;
use slipway_app::ports::{Meter, Stores};
use slipway_core::ids::ProvisionedResourceId;
use slipway_durable::renewer::{LeaseRenewer, Renewal};

use crate::driver::{Failure, failure};

/// Renews the claims of a batch of attempts.
pub(crate) type AttemptRenewer<'a> = LeaseRenewer<AttemptClaims<'a>>;

/// Renews the claims of a worker in the store and counts them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttemptClaims<'a> {
    pub(crate) store: &'a Stores,
    pub(crate) worker: &'a str,
    pub(crate) meter: &'a dyn Meter,
    pub(crate) partition: &'a str,
}

#[async_trait]
impl Renewal for AttemptClaims<'_> {
    type Id = ProvisionedResourceId;
    type Claim = Claimed;

    fn id(claimed: &Claimed) -> ProvisionedResourceId {
        claimed.id
    }

    async fn renew(
        &self,
        claims: &[Claimed],
        lease: Duration,
    ) -> Result<Vec<ProvisionedResourceId>, Failure> {
        let renewed = self.store.broker.attempt_renew(self.worker, claims, lease).await;
        renewed.map_err(failure)
    }

    fn count(&self, change: i64) {
        self.meter.claims_changed(self.partition, change);
    }
}
