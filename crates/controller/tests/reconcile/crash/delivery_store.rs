//! Delivery's part of the fated store: handed on. The crash matrix has no
//! management cluster.

use async_trait::async_trait;
use slipway_app::ports::delivery::DemandRule;
use slipway_app::ports::store::{Error, Page};
use slipway_app::ports::{DeliveryStore, Listed};
use slipway_core::delivery::{DeliveryShown, Demand};
use slipway_core::ids::{BlueprintId, ClusterId};

use super::store::FatedStore;

#[async_trait]
impl DeliveryStore for FatedStore {
    async fn demand_list(&self, cluster: ClusterId) -> Result<Vec<Demand>, Error> {
        self.fate.alive().await;
        self.inner.demand_list(cluster).await
    }

    async fn decide_delivery(
        &self,
        cluster: ClusterId,
        blueprint: BlueprintId,
        rule: &mut DemandRule<'_>,
    ) -> Result<(), Error> {
        self.fate.alive().await;
        self.inner.decide_delivery(cluster, blueprint, rule).await
    }

    async fn delivery_list(
        &self,
        blueprint: BlueprintId,
        page: Page<ClusterId>,
    ) -> Result<Listed<DeliveryShown>, Error> {
        self.fate.alive().await;
        self.inner.delivery_list(blueprint, page).await
    }
}
