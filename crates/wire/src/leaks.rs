//! Leaks in our own API: what stands outside and should not, or does not and
//! should.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// One leak.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Leak {
    pub id: String,
    /// `unclaimed_object`, `missing_object`, `duplicate_object`, or what the
    /// resource loop saw of something Deleted, such as `composite`.
    pub kind: String,
    /// `open` or `resolved`.
    pub state: String,
    /// The attempt that it is about, if its object names one.
    pub provisioned_resource_id: Option<String>,
    /// The cluster that it was found on. Not known where the resource loop
    /// found it: its resource has it.
    pub cluster: Option<String>,
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub uid: Option<String>,
    pub found_at: String,
    pub last_seen_at: Option<String>,
    pub evidence: Value,
    /// What a person does about it.
    pub remedy: String,
    pub removal_requested_at: Option<String>,
    pub removal_requested_by: Option<String>,
    pub removal_reason: Option<String>,
    pub resolved_at: Option<String>,
    pub resolved_by: Option<String>,
    pub resolution: Option<String>,
}

/// `POST /api/v1/leaks/{id}/resolve` and `…/remove`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeakReason {
    #[schema(min_length = 1, max_length = 500)]
    pub reason: String,
}

/// The answer to `POST /api/v1/leaks/find`: one for each cluster that was
/// looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeakScan {
    pub cluster: String,
    /// Why nothing can be said about it.
    pub error: Option<String>,
    /// Objects of this installation.
    pub objects: u64,
    /// Objects of other installations: counted and left alone.
    pub foreign: u64,
    /// What could not be read; while there is such, nothing is held to be gone.
    pub unreadable: Vec<String>,
    /// Open leaks that were seen.
    pub leaks: Vec<Leak>,
    /// Findings that count only if they are seen once more.
    pub suspected: Vec<LeakSuspicion>,
    /// Attempts that the resource loop was told to look at.
    pub woken: u64,
    /// Leaks that turned out to be over.
    pub resolved: u64,
}

/// Something that was not seen for long enough to be a leak.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeakSuspicion {
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub first_seen_at: String,
    /// A look from then on makes it a leak.
    pub counts_from: String,
}
