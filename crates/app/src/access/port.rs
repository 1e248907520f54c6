//! The store of the access domain: API keys, idempotency keys, the audit, and
//! what belongs to which project. Decisions about keys run one at a time, under
//! the lock of the installation's own row; authentication locks nothing.
//!
//! Nothing ever changes its project, so the answer of
//! [`AccessStore::project_of`] stays true.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::Value;
use slipway_core::access::api_key::ApiKey;
use slipway_core::access::api_key_rules::NewSecret;
use slipway_core::access::idempotency;
use slipway_core::ids::{
    ApiKeyId, AuditEntryId, BootstrapTokenId, DeletionId, NodeId, PlanId, ProjectId, ResourceId,
};
use slipway_core::operations::explanation::ExplainedKind;
use slipway_core::operations::reference::Candidate;
use slipway_core::subject::SubjectKind;
use slipway_core::time::Timestamp;
use uuid::Uuid;

use crate::ports::listed::Listed;
use crate::ports::store::{Error, Page};

/// An entry as it was written, maybe by a version that knows other verbs.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditLine {
    pub id: AuditEntryId,
    pub at: Timestamp,
    pub actor: String,
    pub verb: String,
    pub subject_kind: String,
    pub subject_id: Uuid,
    pub project_id: Option<ProjectId>,
    pub reason: Option<String>,
    pub details: Value,
    pub correlation_id: Option<String>,
}

/// Which entries to list; all conditions must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    pub actor: Option<String>,
    pub verb: Option<String>,
    pub kind: Option<String>,
    pub subject: Option<Uuid>,
    /// Name of a live project, or the id of any.
    pub project: Option<String>,
    /// The only project that the caller reaches.
    pub within: Option<ProjectId>,
    /// From this moment on.
    pub since: Option<Timestamp>,
    /// Only before this time.
    pub until: Option<Timestamp>,
}

/// The end from which a list is read. Ids begin with their time, so the order
/// is that of the entries' times, to the millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditOrder {
    OldestFirst,
    NewestFirst,
}

/// Which key a decision is about.
#[derive(Debug, Clone)]
pub enum KeyTarget {
    /// A new key: its name, and its project by name or id.
    New {
        name: String,
        project: Option<String>,
    },
    Existing(ApiKeyId),
    /// A key that a start installs: its name and its text.
    Installed {
        name: String,
        secret: NewSecret,
    },
}

/// A key that may be the caller's, and the database's time at which it was read,
/// by which it expires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyCandidate {
    pub key: ApiKey,
    pub now: Timestamp,
}

/// A bound idempotency key, and the answer, if it was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnsweredEntry {
    pub record: idempotency::Entry,
    pub answer: Option<idempotency::Answer>,
}

/// Something that may belong to a project.
#[derive(Debug, Clone, Copy)]
pub enum Owned {
    Resource(ResourceId),
    Node(NodeId),
    Deletion(DeletionId),
    Plan(PlanId),
    Token(BootstrapTokenId),
}

/// The result of one step through the audit entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditPruned {
    pub removed: u64,
    /// Where the next step continues; `None` once the following entries are too young.
    pub next: Option<AuditEntryId>,
}

port! {
/// Everything about keys and the audit.
pub trait AccessStore of (ApiKey), intercepted by AccessIntercept {
    async fn audit_list(
        &self,
        filter: &AuditFilter,
        order: AuditOrder,
        page: Page<AuditEntryId>,
    ) -> Result<Listed<AuditLine>, Error>;

    /// The keys that have this short part, now or before their last rotation.
    /// Leaves out keys of a deleted project: they reach nothing.
    async fn api_key_candidates(&self, short: &str) -> Result<Vec<KeyCandidate>, Error>;

    /// What this key of this caller is bound to, if it has not expired.
    async fn idempotency_find(&self, caller: &str, key: &str) -> Result<Option<AnsweredEntry>, Error>;

    /// Stores the answer of a bound key, unless one is stored: the first one stays.
    /// Returns the stored answer; `None` if the key has expired and was deleted.
    async fn idempotency_answer(
        &self,
        record: Uuid,
        answer: &idempotency::Answer,
    ) -> Result<Option<idempotency::Answer>, Error>;

    /// What has an id in this range: up to `limit` of each kind, and only of this project
    /// if one is given. A project may see the clusters, and no leaks.
    async fn id_find(
        &self,
        ids: &RangeInclusive<Uuid>,
        within: Option<ProjectId>,
        limit: u32,
    ) -> Result<Vec<(ExplainedKind, Uuid)>, Error>;

    /// What of this kind has this name, or an id in the range, and is of the project if one
    /// is given; of many the live and then the newest ones.
    async fn candidates(
        &self,
        kind: SubjectKind,
        name: &str,
        ids: &RangeInclusive<Uuid>,
        within: Option<ProjectId>,
    ) -> Result<Vec<Candidate>, Error>;

    /// The names of these things of any kind, including what is deleted: of an attempt and a
    /// token that of their resource. What has no name is left out.
    async fn names(&self, ids: &[Uuid]) -> Result<BTreeMap<Uuid, String>, Error>;

    /// The project of something; `None` if it belongs to none or does not
    /// exist. Answers also for a quarantined row.
    async fn project_of(&self, owned: Owned) -> Result<Option<ProjectId>, Error>;

    /// Reads up to `limit` audit entries after this one, in the order of their
    /// ids, which is that of time, and removes those older than `keep` whose
    /// subject is gone.
    async fn audit_prune(
        &self,
        keep: Duration,
        after: Option<AuditEntryId>,
        limit: u32,
    ) -> Result<AuditPruned, Error>;
}
}
