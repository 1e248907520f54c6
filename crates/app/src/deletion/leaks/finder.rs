//! Scans a cluster or root and compares everything there with the rows.
//! `slipway_core::deletion::orphans` decides what is a finding.
//!
//! Two concurrent scans of one cluster do no harm: findings are recorded by
//! key, and a scan resolves only what nobody saw since it began.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use slipway_core::access::audit::Actor;
use slipway_core::broker::holding::Holder;
use slipway_core::broker::observation::CompositeReport;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::deletion::leak::{Finding, FindingKind, Leak, ObjectRef};
use slipway_core::deletion::orphans::{self, Judged};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{LeakRecordId, ProvisionedResourceId};
use slipway_core::time::Timestamp;
use tokio::sync::Mutex;

use crate::broker::converge::{self, Engines, action_deadline};
use crate::deletion::port::ReportedFinding;
use crate::permits::Permits;
use crate::placement::port::ClusterIdentity;
use crate::ports::store::Page;
use crate::ports::substrate::{InventoryPage, InventoryRequest, NodeOutput, OutputPart, Substrate};
use crate::{Context, Error};

/// Objects in a page of an inventory, and rows compared with it: one statement
/// each, of a size that both databases handle well.
const PAGE: usize = 1_000;
const ROWS: u32 = 1_000;

/// Unreadable objects that a report names, at most.
const NAMED: usize = 20;

/// Finds differences between clusters and rows. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Finder {
    context: Context,
    engines: Engines,
    /// Grants or refuses each removal, right before it starts.
    permits: Arc<Permits>,
    /// The length of a claim; after it, whoever worked on a row is done.
    lease: Duration,
    /// One scan in this process at a time: a second one would only cost.
    scanning: Arc<Mutex<()>>,
}

/// The result of one scan of one cluster.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScanReport {
    pub cluster: String,
    /// Why the scan failed. The other fields then cover what was read before.
    pub error: Option<String>,
    /// Objects of this installation.
    pub objects: u64,
    /// Objects of other installations, counted and left alone.
    pub foreign: u64,
    /// What could not be read; if there is any, nothing counts as gone.
    pub unreadable: Vec<String>,
    /// Open leaks seen by this scan.
    pub leaks: Vec<Leak>,
    /// Findings that count only if a later scan sees them again.
    pub suspected: Vec<Suspected>,
    /// Attempts that were made due for the resource loop.
    pub woken: u64,
    /// Leaks resolved by this scan.
    pub resolved: u64,
}

/// A finding that was not seen for long enough yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspected {
    pub kind: FindingKind,
    pub object_ref: ObjectRef,
    pub first_seen_at: Timestamp,
    /// A scan from then on makes it a leak.
    pub counts_from: Timestamp,
}

impl Finder {
    pub const ACTOR: &'static str = "loop:orphans";

    pub fn new(context: Context, engines: Engines, permits: Arc<Permits>, lease: Duration) -> Self {
        Self { context, engines, permits, lease, scanning: Arc::default() }
    }

    pub fn context(&self) -> &Context {
        &self.context
    }

    pub const fn lease(&self) -> Duration {
        self.lease
    }

    /// The clusters that this process serves. Each scan checks that the cluster
    /// has the registered identity.
    pub async fn served(&self) -> Result<Vec<ClusterIdentity>, Error> {
        let mut clusters = self.context.stores.placement.cluster_list().await?;
        clusters.retain(|cluster| self.substrate(cluster).is_some());
        Ok(clusters)
    }

    /// Scans each cluster that this process serves. An error with one is in its
    /// report and does not affect the others. Refused while a scan is running:
    /// requests do not queue up for it.
    pub async fn scan_all(&self) -> Result<Vec<ScanReport>, Error> {
        let Ok(_scanning) = self.scanning.try_lock() else {
            return Err(Refusal::new(
                ErrorKind::Unavailable,
                "a scan is already running here; try again in a moment",
            )
            .into());
        };
        let mut reports = Vec::new();
        for cluster in self.served().await? {
            reports.push(self.scan_now(&cluster).await?);
        }
        Ok(reports)
    }

    /// Scans a cluster, after the scan that is running. Database errors are
    /// returned; substrate errors are in the report.
    pub async fn scan(&self, cluster: &ClusterIdentity) -> Result<ScanReport, Error> {
        let _scanning = self.scanning.lock().await;
        self.scan_now(cluster).await
    }

    async fn scan_now(&self, cluster: &ClusterIdentity) -> Result<ScanReport, Error> {
        let mut report = ScanReport { cluster: cluster.name.clone(), ..ScanReport::default() };
        let begun_at = self.context.stores.deletion.leak_scan_begin().await?;
        let mut at_home = HashSet::new();
        let mut after = None;
        loop {
            let page = match self.page(cluster, after).await {
                Ok(page) => page,
                Err(reason) => {
                    report.error = Some(reason);
                    return Ok(report);
                }
            };
            let judged = self.judge(cluster, &page).await?;
            at_home.extend(judged.at_home);
            count(&mut report, &page);
            self.note(cluster, judged.findings, &mut report).await?;
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        // An incomplete scan proves nothing gone and nothing missing.
        if report.unreadable.is_empty() {
            self.compare_rows(cluster, &at_home, &mut report).await?;
            let actor = Actor::new(Self::ACTOR);
            report.resolved =
                self.context.stores.deletion.leak_scan_end(cluster.id, begun_at, &actor).await?;
        }
        Ok(report)
    }

    async fn page(
        &self,
        cluster: &ClusterIdentity,
        after: Option<String>,
    ) -> Result<InventoryPage, String> {
        let Some(substrate) = self.substrate(cluster) else {
            return Err(format!("this process has no engine {}", cluster.engine));
        };
        let request =
            InventoryRequest { substrate_uid: cluster.substrate_uid.clone(), after, limit: PAGE };
        match tokio::time::timeout(self.deadline(), substrate.inventory(&request)).await {
            Ok(page) => page.map_err(|error| error.to_string()),
            Err(_) => Err(format!("no answer within {:?}", self.deadline())),
        }
    }

    /// Reads the rows after the objects; `slipway_core::deletion::orphans` says why.
    async fn judge(
        &self,
        cluster: &ClusterIdentity,
        page: &InventoryPage,
    ) -> Result<Judged, Error> {
        let owners: HashSet<_> =
            page.found.iter().filter_map(|found| found.provisioned_resource_id).collect();
        let owners: Vec<_> = owners.into_iter().collect();
        let rows = self.context.stores.deletion.claimant_load(&owners).await?;
        let rows: HashMap<_, _> = rows.into_iter().map(|row| (row.id, row)).collect();
        Ok(orphans::judge_objects(cluster.id, &page.found, &rows))
    }

    async fn compare_rows(
        &self,
        cluster: &ClusterIdentity,
        at_home: &HashSet<ProvisionedResourceId>,
        report: &mut ScanReport,
    ) -> Result<(), Error> {
        let mut after = None;
        loop {
            let page = Page { after, limit: ROWS };
            let rows = self.context.stores.deletion.claimant_expecting(cluster.id, page).await?;
            let findings = orphans::judge_rows(cluster.id, &rows, at_home);
            self.note(cluster, findings, report).await?;
            after = rows.last().map(|row| row.id);
            if rows.len() < PAGE {
                return Ok(());
            }
        }
    }

    /// Wakes the attempts of the findings at once; a finding to be recorded
    /// must be seen a second time first.
    async fn note(
        &self,
        cluster: &ClusterIdentity,
        findings: Vec<Finding>,
        report: &mut ScanReport,
    ) -> Result<(), Error> {
        let concerned: Vec<_> = findings
            .iter()
            .filter(|finding| finding.kind.wakes())
            .map(|finding| ProvisionedResourceId::new(finding.subject.id))
            .collect();
        if !concerned.is_empty() {
            self.context.stores.broker.attempt_wake(&concerned).await?;
            self.context.wakes.wake();
            report.woken += u64::try_from(concerned.len()).unwrap_or(u64::MAX);
        }
        let recorded = findings.into_iter().filter(|finding| finding.kind.is_recorded());
        let reported: Vec<_> = recorded
            .map(|finding| ReportedFinding {
                finding,
                fresh_id: LeakRecordId::new(self.context.entropy.uuid()),
            })
            .collect();
        let seen = self
            .context
            .stores
            .deletion
            .leak_findings_record(cluster, &reported, self.lease)
            .await?;
        report.leaks.extend(seen.leaks);
        let first_seen: HashMap<_, _> = seen.suspected.into_iter().collect();
        let suspected = reported.iter().filter_map(|one| {
            let first_seen_at = *first_seen.get(&one.finding.key)?;
            Some(Suspected {
                kind: one.finding.kind,
                object_ref: one.finding.object_ref.clone(),
                first_seen_at,
                counts_from: first_seen_at.plus(self.lease),
            })
        });
        report.suspected.extend(suspected);
        Ok(())
    }

    /// What this process observes of an attempt now; `None` if it does not serve its
    /// cluster.
    pub async fn observed(
        &self,
        attempt: ProvisionedResourceId,
    ) -> Result<Option<CompositeReport>, Error> {
        let loaded = self.context.stores.broker.attempt_load(&[attempt]).await?.pop();
        // The decision that follows reports a row that is gone or invalid.
        let Some(Ok(snapshot)) = loaded else { return Ok(None) };
        if self.engines.of(&snapshot).is_none() {
            return Ok(None);
        }
        let snapshots = std::slice::from_ref(&snapshot);
        Ok(converge::observe(&self.engines, snapshots, self.deadline()).await.pop())
    }

    /// What holds the teardown of an attempt now; `None` if this process does not serve its
    /// cluster, or the row cannot be read.
    pub async fn holders(
        &self,
        attempt: ProvisionedResourceId,
    ) -> Result<Option<Result<Vec<Holder>, String>>, Error> {
        let loaded = self.context.stores.broker.attempt_load(&[attempt]).await?.pop();
        let Some(Ok(snapshot)) = loaded else { return Ok(None) };
        Ok(self.holders_of(&snapshot, self.deadline()).await)
    }

    /// The same for an attempt that is loaded already, whether it is being deleted or not.
    pub async fn holders_of(
        &self,
        snapshot: &ResourceSnapshot,
        within: Duration,
    ) -> Option<Result<Vec<Holder>, String>> {
        let substrate = self.engines.of(snapshot)?;
        let Some(address) = converge::address(snapshot) else { return Some(Ok(Vec::new())) };
        Some(match tokio::time::timeout(within, substrate.holders(&address)).await {
            Ok(found) => found.map_err(|error| error.to_string()),
            Err(_) => Err(format!("the cluster did not answer within {} ms", within.as_millis())),
        })
    }

    /// What the node of an attempt wrote, as its engine answers; `None` if this process does
    /// not serve its cluster, or the row cannot be read.
    pub async fn output(
        &self,
        attempt: ProvisionedResourceId,
        part: OutputPart,
    ) -> Result<Option<Result<Option<NodeOutput>, String>>, Error> {
        let loaded = self.context.stores.broker.attempt_load(&[attempt]).await?.pop();
        let Some(Ok(snapshot)) = loaded else { return Ok(None) };
        let Some(substrate) = self.engines.of(&snapshot) else { return Ok(None) };
        let Some(address) = converge::address(&snapshot) else {
            return Ok(Some(Ok(Some(NodeOutput::default()))));
        };
        let asked = tokio::time::timeout(self.deadline(), substrate.output(&address, part)).await;
        let limit = self.deadline().as_millis();
        Ok(Some(match asked {
            Ok(found) => found.map_err(|error| error.to_string()),
            Err(_) => Err(format!("the engine did not answer within {limit} ms")),
        }))
    }

    pub(super) const fn permits(&self) -> &Arc<Permits> {
        &self.permits
    }

    pub(super) const fn engines(&self) -> &Engines {
        &self.engines
    }

    pub(super) fn substrate(&self, cluster: &ClusterIdentity) -> Option<Arc<dyn Substrate>> {
        self.engines.at(cluster.id.into(), cluster.engine)
    }

    pub(super) fn deadline(&self) -> Duration {
        action_deadline(self.lease)
    }
}

fn count(report: &mut ScanReport, page: &InventoryPage) {
    let found = u64::try_from(page.found.len()).unwrap_or(u64::MAX);
    report.objects = report.objects.saturating_add(found);
    report.foreign = report.foreign.saturating_add(page.foreign);
    for (object_ref, reason) in &page.unreadable {
        if report.unreadable.len() < NAMED {
            report
                .unreadable
                .push(format!("{}/{}: {reason}", object_ref.namespace, object_ref.name));
        }
    }
}
