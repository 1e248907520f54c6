//! Delivery in the rows: which blueprints a cluster is to know, and how far
//! each has come there.

use async_trait::async_trait;
use slipway_core::commit::Commit;
use slipway_core::delivery::{DeliveryShown, Demand};
use slipway_core::error::Refusal;
use slipway_core::ids::{BlueprintId, ClusterId};

use super::Listed;
use super::store::{Error, Page};

/// A pure function that is called inside the transaction, maybe twice.
pub type DemandRule<'a> = dyn FnMut(&Demand) -> Result<Commit, Refusal> + Send + 'a;

#[async_trait]
pub trait DeliveryStore {
    /// The blueprints that are to be delivered, each in its newest version that
    /// is to be and is not retired, with how far it is on this cluster. Two
    /// statements for all of them.
    async fn demand_list(&self, cluster: ClusterId) -> Result<Vec<Demand>, Error>;

    /// Decides about one of them, with the blueprint locked as publications and
    /// retirements lock it. `NotFound` if nothing of it is to be delivered.
    async fn decide_delivery(
        &self,
        cluster: ClusterId,
        blueprint: BlueprintId,
        rule: &mut DemandRule<'_>,
    ) -> Result<(), Error>;

    /// The clusters that a blueprint is to be on, or was brought to.
    async fn delivery_list(
        &self,
        blueprint: BlueprintId,
        page: Page<ClusterId>,
    ) -> Result<Listed<DeliveryShown>, Error>;
}
