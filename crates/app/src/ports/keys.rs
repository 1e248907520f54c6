//! The store's side of API keys. Decisions are taken one at a time, under the
//! lock of the installation's own row; authenticating locks nothing.

use std::fmt;

use async_trait::async_trait;
use slipway_core::api_key::ApiKey;
use slipway_core::commit::Commit;
use slipway_core::error::Refusal;
use slipway_core::ids::{ApiKeyId, ProjectId};
use slipway_core::rules::api_keys::KeySnapshot;

use super::listed::Listed;
use super::store::{Error, Page};

/// A pure function that is called inside the transaction, maybe twice.
pub type KeyRule<'a> = dyn FnMut(&KeySnapshot) -> Result<Commit, Refusal> + Send + 'a;

/// Which key a decision is about.
#[derive(Debug, Clone)]
pub enum KeyTarget {
    /// One that is to be made: the name that it wants, and its project by name
    /// or id.
    New {
        name: String,
        project: Option<String>,
    },
    Existing(ApiKeyId),
}

#[async_trait]
pub trait KeyStore: fmt::Debug + Send + Sync {
    /// The keys that have this short part, now or before their last rotation.
    /// Those of a deleted project are left out: there is nothing that they
    /// reach.
    async fn api_key_candidates(&self, short: &str) -> Result<Vec<ApiKey>, Error>;

    async fn api_key_fetch(&self, id: ApiKeyId) -> Result<Option<ApiKey>, Error>;

    /// In the order of their ids, also those that are revoked; of one project,
    /// or all.
    async fn api_key_list(
        &self,
        project: Option<ProjectId>,
        page: Page<ApiKeyId>,
    ) -> Result<Listed<ApiKey>, Error>;

    async fn decide_api_key(&self, target: &KeyTarget, rule: &mut KeyRule<'_>)
    -> Result<(), Error>;
}
