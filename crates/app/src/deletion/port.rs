//! The store of the deletion domain: deletions, findings of scans, leak
//! records, and what the rows say about objects.

use std::collections::BTreeMap;
use std::time::Duration;

use slipway_core::access::audit::Actor;
use slipway_core::blocker::Blocker;
use slipway_core::deletion::leak::{Claimant, Finding, Leak, LeakRecord, LeakSnapshot};
use slipway_core::deletion::orphans::LeakCommit;
use slipway_core::deletion::protection::{Protection, ProtectionSnapshot};
use slipway_core::deletion::record::Deletion;
use slipway_core::deletion::report::Made;
use slipway_core::deletion::request::DeletionSnapshot;
use slipway_core::ids::{
    ClusterId, DeletionId, LeakRecordId, ProjectId, ProvisionedResourceId, ResourceId,
};
use slipway_core::subject::Subject;
use slipway_core::time::Timestamp;
use uuid::Uuid;

use crate::placement::port::ClusterIdentity;
use crate::ports::listed::Listed;
use crate::ports::store::{Error, Page, Rule};

/// A finding, and the id of its leak record if it becomes one.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportedFinding {
    pub finding: Finding,
    pub fresh_id: LeakRecordId,
}

/// The result of recording the findings of a page.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordedFindings {
    /// Open leaks, new ones and ones that were known.
    pub leaks: Vec<Leak>,
    /// Findings that do not count yet, by key, with the time first seen.
    pub suspected: Vec<(Uuid, Timestamp)>,
}

/// The members of a deletion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Members {
    pub shown: Vec<Member>,
    pub count: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub subject: Subject,
    pub name: String,
}

/// Whose objects a report lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportScope {
    Project(ProjectId),
    Resource(ResourceId),
    Attempt(ProvisionedResourceId),
}

/// A page of a report.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReportPage {
    pub made: Vec<Made>,
    /// After this resource there may be more.
    pub next: Option<ResourceId>,
}

/// Which leaks to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeakFilter {
    /// Only open ones, only resolved ones, or both.
    pub open: Option<bool>,
    pub kind: Option<String>,
}

/// Called inside the transaction, maybe twice.
pub type DeletionRule<'a> = Rule<'a, DeletionSnapshot>;
pub type ProtectionRule<'a> = Rule<'a, ProtectionSnapshot>;
pub type LeakRule<'a> = Rule<'a, LeakSnapshot, LeakCommit>;

port! {
/// Everything about deletions and leaks.
pub trait DeletionStore, intercepted by DeletionIntercept {
    async fn deletion_fetch(&self, id: DeletionId) -> Result<Option<Deletion>, Error>;

    async fn deletion_list(&self, page: Page<DeletionId>) -> Result<Listed<Deletion>, Error>;

    /// Deletions of the project itself, its resources and their attempts.
    async fn deletion_list_in(
        &self,
        project: ProjectId,
        page: Page<DeletionId>,
    ) -> Result<Listed<Deletion>, Error>;

    /// Decides about one deletion, its target and its record locked.
    async fn deletion_decide(
        &self,
        id: DeletionId,
        rule: &mut DeletionRule<'_>,
    ) -> Result<(), Error>;

    /// Scheduled deletions whose time has come, or whose parent runs. By pages, so that those
    /// which are refused keep no other from its turn.
    async fn deletion_due(&self, page: Page<DeletionId>) -> Result<Vec<Deletion>, Error>;

    /// Running deletions of containers, `limit` at most after this one.
    async fn deletion_containers(&self, page: Page<DeletionId>) -> Result<Vec<Deletion>, Error>;

    /// How long until the next scheduled deletion is due, if there is one.
    async fn deletion_next_due(&self) -> Result<Option<Duration>, Error>;

    /// The rows that carry the id of this deletion, `limit` at most, and how many there are.
    async fn deletion_members(&self, id: DeletionId, limit: u32) -> Result<Members, Error>;

    /// Replaces the blockers of a deletion.
    async fn deletion_block(&self, id: DeletionId, blockers: &[Blocker]) -> Result<(), Error>;

    async fn deletion_blockers(&self, id: DeletionId) -> Result<Vec<Blocker>, Error>;

    /// Decides about the protection of a live thing, its row locked.
    async fn protection_decide(
        &self,
        subject: Subject,
        rule: &mut ProtectionRule<'_>,
    ) -> Result<(), Error>;

    /// In the order of kinds and ids.
    async fn protection_list(
        &self,
        project: Option<ProjectId>,
        page: Page<Uuid>,
    ) -> Result<Vec<Protection>, Error>;

    /// What the rows of these attempts say about their objects. Leaves out
    /// attempts without a row.
    async fn claimant_load(
        &self,
        attempts: &[ProvisionedResourceId],
    ) -> Result<Vec<Claimant>, Error>;

    /// Attempts of this cluster in a phase that expects an object there.
    async fn claimant_expecting(
        &self,
        cluster: ClusterId,
        page: Page<ProvisionedResourceId>,
    ) -> Result<Vec<Claimant>, Error>;

    /// The database's time at the start of a scan.
    async fn leak_scan_begin(&self) -> Result<Timestamp, Error>;

    /// Marks these findings as seen now, and records those first seen at least
    /// `apart` ago as leaks. The same finding is one open leak, whoever reports
    /// it and how often.
    async fn leak_findings_record(
        &self,
        cluster: &ClusterIdentity,
        reported: &[ReportedFinding],
        apart: Duration,
    ) -> Result<RecordedFindings, Error>;

    /// Ends a scan of the whole cluster that began at `begun_at`: resolves
    /// leaks and forgets findings that it did not see. Returns how many leaks
    /// it resolved.
    async fn leak_scan_end(
        &self,
        cluster: ClusterId,
        begun_at: Timestamp,
        actor: &Actor,
    ) -> Result<u64, Error>;

    /// Records a leak that neither a scan nor a decision found. One that is recorded
    /// and open stays as it is; one that was resolved is open again.
    async fn leak_record(&self, leak: &LeakRecord) -> Result<(), Error>;

    /// Open leaks of this cluster whose removal was requested.
    async fn leak_removals(&self, cluster: ClusterId, limit: u32) -> Result<Vec<Leak>, Error>;

    async fn leak_list(
        &self,
        filter: &LeakFilter,
        page: Page<LeakRecordId>,
    ) -> Result<Vec<Leak>, Error>;

    async fn leak_fetch(&self, id: LeakRecordId) -> Result<Option<Leak>, Error>;

    /// A page of the resources in this scope, with all that was made for each.
    async fn deletion_made(
        &self,
        scope: ReportScope,
        page: Page<ResourceId>,
    ) -> Result<ReportPage, Error>;

    /// What was made for a project itself.
    async fn deletion_placement(&self, project: ProjectId) -> Result<Vec<Made>, Error>;

    /// Decides about one leak, its row locked.
    async fn leak_decide(&self, id: LeakRecordId, rule: &mut LeakRule<'_>) -> Result<(), Error>;

    /// How many leaks are open, by kind.
    async fn leak_open_counts(&self) -> Result<BTreeMap<String, u64>, Error>;
}
}
