//! Implements the port `DeletionStore`: records of removals, and leaks.

use std::collections::BTreeMap;
use std::time::Duration;

use slipway_app::deletion::port::{
    BrakeRule, DeletionFilter, DeletionRule, LeakFilter, LeakRule, Members, PlanRule,
    ProtectionRule, PurgeBatch, PurgeCounts, PurgeRule, RecordedFindings, ReportPage, ReportScope,
    ReportedFinding, RestoreRule, Scheduled, SettingRule,
};
use slipway_app::placement::port::ClusterIdentity;
use slipway_app::ports::store::{Error, Page};
use slipway_app::ports::{DeletionStore, Listed};
use slipway_core::Timestamp;
use slipway_core::access::audit::Actor;
use slipway_core::blocker::Blocker;
use slipway_core::deletion::brake::Brake;
use slipway_core::deletion::leak::{Claimant, Leak, LeakRecord};
use slipway_core::deletion::plan::Plan;
use slipway_core::deletion::protection::Protection;
use slipway_core::deletion::record::Deletion;
use slipway_core::deletion::report::Made;
use slipway_core::deletion::restore::Renames;
use slipway_core::deletion::settings::{DeletionSetting, SettingScope};
use slipway_core::ids::{
    ApiKeyId, ClusterId, DeletionId, LeakRecordId, PlanId, ProjectId, ProvisionedResourceId,
    ResourceId,
};

use slipway_core::subject::Subject;
use uuid::Uuid;

use super::broker::claimants;
use super::{
    Backend, brakes, decide, filter, leak_rows, leaks, marks, plans, protections, purge, reads,
    report, restore, settings, write,
};

port! {
    DeletionStore {
        read deletion_fetch(id: DeletionId) -> Option<Deletion> = reads::fetch;
        read deletion_list(filter: &DeletionFilter, page: Page<DeletionId>)
            -> Listed<Deletion> = filter::list;
        read deletion_scheduled() -> Scheduled = filter::scheduled;
        read deletion_due(page: Page<DeletionId>) -> Vec<Deletion> = reads::due;
        read deletion_containers(page: Page<DeletionId>) -> Vec<Deletion> = reads::containers;
        read deletion_next_due() -> Option<Duration> = reads::next_due;
        read deletion_members(id: DeletionId, limit: u32) -> Members = marks::members_of;
        write deletion_block(id: DeletionId, blockers: &[Blocker]) -> () = reads::block;
        read deletion_blockers(id: DeletionId) -> Vec<Blocker> = reads::blockers_of;
        read plan_fetch(id: PlanId) -> Option<Plan> = plans::fetch;
        write plan_prune(limit: u32) -> u64 = plans::prune;
        read protection_list(project: Option<ProjectId>, page: Page<Uuid>)
            -> Vec<Protection> = protections::list;
        read brake_list(page: Page<ApiKeyId>) -> Vec<Brake> = brakes::on;
        read setting_list(project: Option<ProjectId>) -> Vec<DeletionSetting> = settings::list;
        read purge_due(recheck: Duration, limit: u32) -> Vec<Deletion> = purge::due;
        statement purge_checked(id: DeletionId) -> () = purge::checked;
        read purge_counts(id: DeletionId) -> PurgeCounts = purge::counts;
        write purge_batch(id: DeletionId, limit: u32) -> PurgeBatch = purge::batch;
        write purge_erase(id: DeletionId, limit: u32) -> u64 = purge::erase;
        read purge_before(id: DeletionId) -> Vec<DeletionId> = purge::before;
        write deletion_prune(keep: Duration, limit: u32) -> u64 = purge::prune;
        read claimant_load(attempts: &[ProvisionedResourceId])
            -> Vec<Claimant> = claimants::load;
        read claimant_expecting(cluster: ClusterId, page: Page<ProvisionedResourceId>)
            -> Vec<Claimant> = claimants::expecting;
        read leak_scan_begin() -> Timestamp = leak_rows::now;
        write leak_findings_record(
            cluster: &ClusterIdentity,
            reported: &[ReportedFinding],
            apart: Duration,
        ) -> RecordedFindings = leaks::reported;
        write leak_scan_end(cluster: ClusterId, begun_at: Timestamp, actor: &Actor)
            -> u64 = leaks::scan_end;
        read_snapshot deletion_made(scope: ReportScope, page: Page<ResourceId>)
            -> ReportPage = report::page;
        read_snapshot deletion_placement(project: ProjectId) -> Vec<Made> = report::placement;
        write leak_record(leak: &LeakRecord) -> () = write::leak_record;
        read leak_removals(cluster: ClusterId, limit: u32) -> Vec<Leak> = leak_rows::removals;
        read leak_list(filter: &LeakFilter, page: Page<LeakRecordId>)
            -> Vec<Leak> = leak_rows::list;
        read leak_fetch(id: LeakRecordId) -> Option<Leak> = leak_rows::fetch;
        read leak_open_counts() -> BTreeMap<String, u64> = leak_rows::open_counts;
    }
    by_hand {
        async fn deletion_decide(
            &self,
            id: DeletionId,
            rule: &mut DeletionRule<'_>,
        ) -> Result<(), Error> {
            self.decided(decide::ById(id), rule).await
        }

        async fn restore_decide(
            &self,
            id: DeletionId,
            renames: &Renames,
            rule: &mut RestoreRule<'_>,
        ) -> Result<(), Error> {
            let key = restore::Restoring { blueprints: &self.blueprints, id, renames };
            Box::pin(self.decided(key, rule)).await
        }

        async fn protection_decide(
            &self,
            subject: Subject,
            rule: &mut ProtectionRule<'_>,
        ) -> Result<(), Error> {
            self.decided(protections::Protected(subject), rule).await
        }

        async fn plan_decide(
            &self,
            id: PlanId,
            approver: Option<&str>,
            rule: &mut PlanRule<'_>,
        ) -> Result<(), Error> {
            self.decided(plans::ById { id, approver }, rule).await
        }

        async fn brake_decide(&self, key: ApiKeyId, rule: &mut BrakeRule<'_>) -> Result<(), Error> {
            self.decided(brakes::Of(key), rule).await
        }

        async fn purge_decide(&self, id: DeletionId, rule: &mut PurgeRule<'_>) -> Result<(), Error> {
            self.decided(purge::Purgeable(id), rule).await
        }

        async fn setting_decide(
            &self,
            scope: SettingScope,
            rule: &mut SettingRule<'_>,
        ) -> Result<(), Error> {
            self.decided(settings::Scoped(scope), rule).await
        }

        async fn leak_decide(&self, id: LeakRecordId, rule: &mut LeakRule<'_>) -> Result<(), Error> {
            self.decided(leaks::ById(id), rule).await
        }
    }
}
