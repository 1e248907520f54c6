//! Reading the audit. It is written with the changes themselves, by whatever
//! decides them.

use std::fmt;

use async_trait::async_trait;
use serde_json::Value;
use slipway_core::ids::{AuditEntryId, ProjectId};
use slipway_core::time::Timestamp;
use uuid::Uuid;

use super::listed::Listed;
use super::store::{Error, Page};

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

/// Which entries to list; all of it has to hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    pub actor: Option<String>,
    pub verb: Option<String>,
    pub kind: Option<String>,
    pub subject: Option<Uuid>,
    /// Name of a live project, or the id of any.
    pub project: Option<String>,
    /// What the caller reaches.
    pub within: Option<ProjectId>,
    /// From this moment on.
    pub since: Option<Timestamp>,
    /// Before this moment.
    pub until: Option<Timestamp>,
}

/// From which end a list is read. Ids begin with their time, so the order is
/// that of the entries' times, to the millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditOrder {
    OldestFirst,
    NewestFirst,
}

#[async_trait]
pub trait AuditStore: fmt::Debug + Send + Sync {
    async fn audit_list(
        &self,
        filter: &AuditFilter,
        order: AuditOrder,
        page: Page<AuditEntryId>,
    ) -> Result<Listed<AuditLine>, Error>;
}
