//! The management fleet in the rows: which project lives where, what it needs
//! there, and what was found.

use async_trait::async_trait;
use serde_json::Value;
use slipway_core::blueprint::CompositeType;
use slipway_core::commit::Commit;
use slipway_core::error::Refusal;
use slipway_core::fleet::Tenancy;
use slipway_core::ids::{ClusterId, ProjectId};
use slipway_core::rules::catalog::placement::Candidate;

use super::store::Error;

/// A pure function that is called inside the transaction, maybe twice.
pub type TenancyRule<'a> = dyn FnMut(&Tenancy) -> Result<Commit, Refusal> + Send + 'a;

/// What a look at a cluster found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The identity that the cluster showed, if it did.
    pub identity: Option<String>,
    /// Why it cannot be used, if it cannot.
    pub problem: Option<String>,
    pub facts: Value,
}

#[async_trait]
pub trait FleetStore {
    /// The clusters of a region, and whether this project (name or id) is there.
    async fn cluster_candidates(
        &self,
        region: &str,
        project: &str,
    ) -> Result<Vec<Candidate>, Error>;

    /// Every project that is placed on this cluster, deleted ones too until
    /// their place is cleared, by a few statements for all of them.
    async fn tenancy_list(&self, cluster: ClusterId) -> Result<Vec<Tenancy>, Error>;

    /// Decides about a project's place, with the project and its assignment
    /// locked as declarations lock them. `NotFound` if it has none.
    async fn decide_tenancy(
        &self,
        project: ProjectId,
        rule: &mut TenancyRule<'_>,
    ) -> Result<(), Error>;

    /// The kinds of composites that anything was ever made of on this cluster,
    /// as far as rows remember.
    async fn cluster_kinds(&self, cluster: ClusterId) -> Result<Vec<CompositeType>, Error>;

    /// Makes everything of this project due that waits for its place.
    async fn tenancy_wake(&self, project: ProjectId) -> Result<(), Error>;

    /// Writes down what was found on a cluster, if it is something else than
    /// before. The first identity that a cluster shows is its own from then on;
    /// another one later is not taken over. Says whether anything was written.
    async fn cluster_verified(&self, cluster: ClusterId, found: &Found) -> Result<bool, Error>;
}
