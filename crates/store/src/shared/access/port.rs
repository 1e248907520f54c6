//! Implements the port `AccessStore`: keys, idempotency and the audit.

use std::time::Duration;

use async_trait::async_trait;
use slipway_app::access::port::{
    AnsweredEntry, AuditFilter, AuditLine, AuditOrder, AuditPruned, Install, Installed, Owned,
};
use slipway_app::ports::store::{Error, Page};
use slipway_app::ports::{AccessStore, Listed};
use slipway_core::access::api_key::ApiKey;
use slipway_core::access::audit::Actor;
use slipway_core::access::idempotency::Answer;
use slipway_core::ids::{AuditEntryId, ProjectId};
use uuid::Uuid;

use super::{Backend, api_keys, audit, idempotency, installed_keys, prune, scope};

#[async_trait]
impl AccessStore for Backend {
    async fn audit_list(
        &self,
        filter: &AuditFilter,
        order: AuditOrder,
        page: Page<AuditEntryId>,
    ) -> Result<Listed<AuditLine>, Error> {
        self.read((filter, order, page), audit::list).await
    }

    async fn api_key_candidates(&self, short: &str) -> Result<Vec<ApiKey>, Error> {
        self.read(short, api_keys::candidates).await
    }

    async fn api_key_install(
        &self,
        key: &ApiKey,
        when: Install,
        actor: &Actor,
    ) -> Result<Installed, Error> {
        self.write((key, when, actor), installed_keys::install).await
    }

    async fn idempotency_find(
        &self,
        caller: &str,
        key: &str,
    ) -> Result<Option<AnsweredEntry>, Error> {
        self.read((caller, key), idempotency::find).await
    }

    async fn idempotency_answer(&self, record: Uuid, answer: &Answer) -> Result<(), Error> {
        self.statement((record, answer), idempotency::answer).await
    }

    async fn project_of(&self, owned: Owned) -> Result<Option<ProjectId>, Error> {
        self.read(owned, scope::project_of).await
    }
    async fn audit_prune(
        &self,
        keep: Duration,
        after: Option<AuditEntryId>,
        limit: u32,
    ) -> Result<AuditPruned, Error> {
        let after = after.map_or(Uuid::nil(), |id| id.as_uuid());
        let Some((until, more)) = self.read((keep, after, limit), prune::page).await? else {
            return Ok(AuditPruned { removed: 0, next: None });
        };
        let removed = self.statement((keep, after, until), prune::prune).await?;
        Ok(AuditPruned { removed, next: more.then(|| AuditEntryId::new(until)) })
    }
}
