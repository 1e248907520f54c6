//! Implements the port `AccessStore`: keys, idempotency and the audit.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use slipway_app::access::port::{
    AnsweredEntry, AuditFilter, AuditLine, AuditOrder, AuditPruned, KeyCandidate, Owned,
};
use slipway_app::ports::store::{Error, Page};
use slipway_app::ports::{AccessStore, Listed};
use slipway_core::access::idempotency::Answer;
use slipway_core::ids::{AuditEntryId, ProjectId};
use slipway_core::operations::explanation::ExplainedKind;
use slipway_core::operations::reference::Candidate;
use slipway_core::subject::SubjectKind;
use uuid::Uuid;

use super::{Backend, api_keys, audit, idempotency, names, prune, scope};

port! {
    AccessStore {
        read audit_list(filter: &AuditFilter, order: AuditOrder, page: Page<AuditEntryId>)
            -> Listed<AuditLine> = audit::list;
        read api_key_candidates(short: &str) -> Vec<KeyCandidate> = api_keys::candidates;
        read idempotency_find(caller: &str, key: &str) -> Option<AnsweredEntry> = idempotency::find;
        statement idempotency_answer(record: Uuid, answer: &Answer)
            -> Option<Answer> = idempotency::answer;
        read id_find(ids: &RangeInclusive<Uuid>, within: Option<ProjectId>, limit: u32)
            -> Vec<(ExplainedKind, Uuid)> = scope::id_find;
        read candidates(
            kind: SubjectKind,
            name: &str,
            ids: &RangeInclusive<Uuid>,
            within: Option<ProjectId>
        ) -> Vec<Candidate> = names::candidates;
        read names(ids: &[Uuid]) -> BTreeMap<Uuid, String> = names::names;
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
