//! Keys, tokens, scopes and the audit under faults: handed through. No loop
//! writes them, so nothing of it is a passage.

use async_trait::async_trait;
use slipway_app::ports::Listed;
use slipway_app::ports::audit::{AuditFilter, AuditLine, AuditOrder, AuditStore};
use slipway_app::ports::events::PositionedEvent;
use slipway_app::ports::keys::{KeyRule, KeyStore, KeyTarget};
use slipway_app::ports::scope::{Owned, ScopeStore};
use slipway_app::ports::standing::{Standing, StandingStore};
use slipway_app::ports::store::{Error, Page};
use slipway_app::ports::tokens::TokenStore;
use slipway_core::api_key::ApiKey;
use slipway_core::deletion::Deletion;
use slipway_core::ids::{
    ApiKeyId, AuditEntryId, BootstrapTokenId, DeletionId, NodeId, ProjectId, ResourceId,
};
use slipway_core::node::Node;
use slipway_core::rules::positions::Span;
use slipway_core::token::BootstrapToken;

use super::store::FatedStore;

#[async_trait]
impl KeyStore for FatedStore {
    async fn api_key_candidates(&self, short: &str) -> Result<Vec<ApiKey>, Error> {
        self.inner.api_key_candidates(short).await
    }

    async fn api_key_fetch(&self, id: ApiKeyId) -> Result<Option<ApiKey>, Error> {
        self.inner.api_key_fetch(id).await
    }

    async fn api_key_list(
        &self,
        project: Option<ProjectId>,
        page: Page<ApiKeyId>,
    ) -> Result<Listed<ApiKey>, Error> {
        self.inner.api_key_list(project, page).await
    }

    async fn decide_api_key(
        &self,
        target: &KeyTarget,
        rule: &mut KeyRule<'_>,
    ) -> Result<(), Error> {
        self.inner.decide_api_key(target, rule).await
    }
}

#[async_trait]
impl ScopeStore for FatedStore {
    async fn project_of(&self, owned: Owned) -> Result<Option<ProjectId>, Error> {
        self.inner.project_of(owned).await
    }

    async fn node_list_in(
        &self,
        project: ProjectId,
        page: Page<NodeId>,
    ) -> Result<Listed<Node>, Error> {
        self.inner.node_list_in(project, page).await
    }

    async fn deletion_list_in(
        &self,
        project: ProjectId,
        page: Page<DeletionId>,
    ) -> Result<Listed<Deletion>, Error> {
        self.inner.deletion_list_in(project, page).await
    }

    async fn event_list_in(
        &self,
        project: ProjectId,
        page: Page<i64>,
    ) -> Result<Vec<PositionedEvent>, Error> {
        self.inner.event_list_in(project, page).await
    }

    async fn event_span_in(&self, project: ProjectId) -> Result<Span, Error> {
        self.inner.event_span_in(project).await
    }
}

#[async_trait]
impl TokenStore for FatedStore {
    async fn token_fetch(&self, id: BootstrapTokenId) -> Result<Option<BootstrapToken>, Error> {
        self.inner.token_fetch(id).await
    }

    async fn token_list(
        &self,
        resource: ResourceId,
        page: Page<BootstrapTokenId>,
    ) -> Result<Listed<BootstrapToken>, Error> {
        self.inner.token_list(resource, page).await
    }
}

#[async_trait]
impl AuditStore for FatedStore {
    async fn audit_list(
        &self,
        filter: &AuditFilter,
        order: AuditOrder,
        page: Page<AuditEntryId>,
    ) -> Result<Listed<AuditLine>, Error> {
        self.inner.audit_list(filter, order, page).await
    }
}

#[async_trait]
impl StandingStore for FatedStore {
    async fn standing(&self) -> Result<Standing, Error> {
        self.inner.standing().await
    }
}
