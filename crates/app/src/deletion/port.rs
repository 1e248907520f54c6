//! The store of the deletion domain: deletions, findings of scans, leak
//! records, and what the rows say about objects.

use std::collections::BTreeMap;
use std::time::Duration;

use slipway_core::access::audit::Actor;
use slipway_core::blocker::Blocker;
use slipway_core::deletion::approval::PlanSnapshot;
use slipway_core::deletion::brake::{Brake, BrakeSnapshot};
use slipway_core::deletion::leak::{Claimant, Finding, Leak, LeakRecord, LeakSnapshot};
use slipway_core::deletion::orphans::LeakCommit;
use slipway_core::deletion::plan::Plan;
use slipway_core::deletion::protection::{Protection, ProtectionSnapshot};
use slipway_core::deletion::purge::PurgeSnapshot;
use slipway_core::deletion::record::{Deletion, DeletionState};
use slipway_core::deletion::report::Made;
use slipway_core::deletion::request::DeletionSnapshot;
use slipway_core::deletion::restore::{Renames, RestoreSnapshot};
use slipway_core::deletion::settings::{DeletionSetting, SettingScope, SettingSnapshot};
use slipway_core::ids::{
    ApiKeyId, ClusterId, DeletionId, GeneratorId, LeakRecordId, PlanId, ProjectId,
    ProvisionedResourceId, ResourceId,
};
use slipway_core::subject::{Subject, SubjectKind};
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

/// Which deletions to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeletionFilter {
    /// Of the project itself, its resources and their attempts.
    pub own: Option<ProjectId>,
    /// The same, by the name or id of a project that may be deleted.
    pub project: Option<String>,
    pub state: Option<DeletionState>,
    pub kind: Option<SubjectKind>,
    /// The name or the id of what is deleted.
    pub name: Option<String>,
    pub requested_by: Option<String>,
    /// Only those that can be restored now.
    pub restorable: bool,
    /// How the name of what is deleted begins.
    pub name_prefix: Option<String>,
    /// A label of Fleet that what is deleted has.
    pub label: Option<String>,
    /// Of a generator, its stacks and its templates.
    pub generator: Option<GeneratorId>,
}

/// The deletions whose grace lasts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scheduled {
    pub count: u64,
    /// The one that begins first.
    pub next: Option<Deletion>,
}

/// How many rows of each table.
pub type PurgeCounts = Vec<(&'static str, u64)>;

/// One batch of a purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PurgeBatch {
    pub removed: u64,
    /// Another batch has to follow.
    pub is_left: bool,
    /// A freeze or observe-only withholds it.
    pub withheld: bool,
    /// Something else still needs the rows: it is tried again later.
    pub waits: bool,
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
pub type RestoreRule<'a> = Rule<'a, RestoreSnapshot>;
pub type ProtectionRule<'a> = Rule<'a, ProtectionSnapshot>;
pub type PlanRule<'a> = Rule<'a, PlanSnapshot>;
pub type BrakeRule<'a> = Rule<'a, BrakeSnapshot>;
pub type PurgeRule<'a> = Rule<'a, PurgeSnapshot>;
pub type SettingRule<'a> = Rule<'a, SettingSnapshot>;
pub type LeakRule<'a> = Rule<'a, LeakSnapshot, LeakCommit>;

port! {
/// Everything about deletions and leaks.
pub trait DeletionStore, intercepted by DeletionIntercept {
    async fn deletion_fetch(&self, id: DeletionId) -> Result<Option<Deletion>, Error>;

    async fn deletion_list(
        &self,
        filter: &DeletionFilter,
        page: Page<DeletionId>,
    ) -> Result<Listed<Deletion>, Error>;

    /// How many deletions are scheduled, and which is next.
    async fn deletion_scheduled(&self) -> Result<Scheduled, Error>;

    /// Decides about the restore of a deletion, its members and its record locked.
    async fn restore_decide(
        &self,
        id: DeletionId,
        renames: &Renames,
        rule: &mut RestoreRule<'_>,
    ) -> Result<(), Error>;

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

    async fn plan_fetch(&self, id: PlanId) -> Result<Option<Plan>, Error>;

    /// Removes plans that expired, `limit` at most, and returns how many.
    async fn plan_prune(&self, limit: u32) -> Result<u64, Error>;

    /// Those of a project and those of everything; without a project all of them.
    async fn setting_list(
        &self,
        project: Option<ProjectId>,
    ) -> Result<Vec<DeletionSetting>, Error>;

    /// Decides about the setting of a scope, its project locked.
    async fn setting_decide(
        &self,
        scope: SettingScope,
        rule: &mut SettingRule<'_>,
    ) -> Result<(), Error>;

    /// Deletions that are being purged, and done ones past their retention, `limit` at most.
    /// One that something withholds is due again after as long as it had been due when that
    /// was found, and after `recheck` at most.
    async fn purge_due(&self, recheck: Duration, limit: u32) -> Result<Vec<Deletion>, Error>;

    /// Something withholds the purge of this one now.
    async fn purge_checked(&self, id: DeletionId) -> Result<(), Error>;

    /// How many rows its purge would remove.
    async fn purge_counts(&self, id: DeletionId) -> Result<PurgeCounts, Error>;

    /// Decides about the purge of a deletion, its target and its record locked.
    async fn purge_decide(&self, id: DeletionId, rule: &mut PurgeRule<'_>) -> Result<(), Error>;

    /// Removes the next batch of a purging deletion: `limit` attempts with what hangs on
    /// them, then resources, then its target.
    async fn purge_batch(&self, id: DeletionId, limit: u32) -> Result<PurgeBatch, Error>;

    /// Overwrites the next content of a purging deletion that erases, and removes what agents
    /// said about it, `limit` rows of each table at most. Answers how many there were.
    async fn purge_erase(&self, id: DeletionId, limit: u32) -> Result<u64, Error>;

    /// Deletions that are done, of what belonged to the generator that this one deleted: the
    /// generator cannot go before them.
    async fn purge_before(&self, id: DeletionId) -> Result<Vec<DeletionId>, Error>;

    /// Removes records of deletions that ended, and leaks that were resolved, longer than
    /// `keep` ago, `limit` of each at most. Answers how many.
    async fn deletion_prune(&self, keep: Duration, limit: u32) -> Result<u64, Error>;

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

    /// Decides about a plan, its row locked; `approver` is the name of the key that asks.
    async fn plan_decide(
        &self,
        id: PlanId,
        approver: Option<&str>,
        rule: &mut PlanRule<'_>,
    ) -> Result<(), Error>;

    /// Decides about the brake of a key that has deleted something.
    async fn brake_decide(&self, key: ApiKeyId, rule: &mut BrakeRule<'_>) -> Result<(), Error>;

    /// Brakes that are on, in the order of their keys.
    async fn brake_list(&self, page: Page<ApiKeyId>) -> Result<Vec<Brake>, Error>;

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
