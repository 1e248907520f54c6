//! Implements the port `AccessStore`: keys, idempotency and the audit.

use std::time::Duration;

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

port! {
    AccessStore {
        read audit_list(filter: &AuditFilter, order: AuditOrder, page: Page<AuditEntryId>)
            -> Listed<AuditLine> = audit::list;
        read api_key_candidates(short: &str) -> Vec<ApiKey> = api_keys::candidates;
        write api_key_install(key: &ApiKey, when: Install, actor: &Actor)
            -> Installed = installed_keys::install;
        read idempotency_find(caller: &str, key: &str) -> Option<AnsweredEntry> = idempotency::find;
        statement idempotency_answer(record: Uuid, answer: &Answer)
            -> Option<Answer> = idempotency::answer;
        read project_of(owned: Owned) -> Option<ProjectId> = scope::project_of;
    }
    by_hand {
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
}
