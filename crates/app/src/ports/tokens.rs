//! Bootstrap tokens as people see them. What is decided about them goes through
//! [`super::Store::decide`], as everything about a resource does.

use std::fmt;

use async_trait::async_trait;
use slipway_core::ids::{BootstrapTokenId, ResourceId};
use slipway_core::token::BootstrapToken;

use super::listed::Listed;
use super::store::{Error, Page};

#[async_trait]
pub trait TokenStore: fmt::Debug + Send + Sync {
    async fn token_fetch(&self, id: BootstrapTokenId) -> Result<Option<BootstrapToken>, Error>;

    /// Those of all attempts of a resource, in the order of their ids.
    async fn token_list(
        &self,
        resource: ResourceId,
        page: Page<BootstrapTokenId>,
    ) -> Result<Listed<BootstrapToken>, Error>;
}
