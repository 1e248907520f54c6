//! Implements the port `AccessStore`: keys, idempotency and the audit.

use slipway_app::access::port::{
    AnsweredEntry, AuditFilter, AuditLine, AuditOrder, Install, Installed, Owned,
};
use slipway_app::ports::store::{Error, Page};
use slipway_app::ports::{AccessStore, Listed};
use slipway_core::access::api_key::ApiKey;
use slipway_core::access::audit::Actor;
use slipway_core::access::idempotency::Answer;
use slipway_core::ids::{AuditEntryId, ProjectId};
use uuid::Uuid;

use super::{Backend, api_keys, audit, idempotency, installed_keys, scope};

port! {
    AccessStore {
        read audit_list(filter: &AuditFilter, order: AuditOrder, page: Page<AuditEntryId>)
            -> Listed<AuditLine> = audit::list;
        read api_key_candidates(short: &str) -> Vec<ApiKey> = api_keys::candidates;
        write api_key_install(key: &ApiKey, when: Install, actor: &Actor)
            -> Installed = installed_keys::install;
        read idempotency_find(caller: &str, key: &str) -> Option<AnsweredEntry> = idempotency::find;
        statement idempotency_answer(record: Uuid, answer: &Answer) -> () = idempotency::answer;
        read project_of(owned: Owned) -> Option<ProjectId> = scope::project_of;
    }
}
