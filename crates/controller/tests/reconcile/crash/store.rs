//! The store as one life of the control plane sees it: every commit is a
//! passage, and the journal is kept.
//!
//! A decision has a point before and one after. What it is called is known
//! only when the rule has answered, inside the transaction; so a fault before
//! the commit refuses there, which rolls back, and strikes when that is done.
//! The other commits (claim, relay, the boot sweep) have a point after only:
//! before them nothing is held, and a fault there is the one after the commit
//! before. Reads are no passages, nor are heartbeats, which decide nothing.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use slipway_app::ports::Listed;
use slipway_app::ports::control::{
    ControlRule, ControlStore, Install, Installed, PlanLine, Replica,
};
use slipway_app::ports::lanes::OverdueLane;
use slipway_app::ports::store::{
    ApiKey, Claimed, CorruptRow, Decided, DeclareKey, DeclareRule, Error, Heartbeat, HistoryLine,
    Page, ResourceFilter, ResourceKey, ResourceRule,
};
use slipway_app::ports::{DatabaseClock, LaneStore, RecordStore, RenewalStore, Store};
use slipway_app::seed::Seed;
use slipway_core::audit::Actor;
use slipway_core::commit::{Commit, Recorded, Release, Write};
use slipway_core::deletion::Deletion;
use slipway_core::ids::{
    ClusterId, DeletionId, InstallationId, Lane, NodeId, ProvisionedResourceId, ResourceId,
};
use slipway_core::node::{Node, Reported};
use slipway_core::rules::control::Control;
use slipway_core::snapshot::ResourceSnapshot;
use slipway_core::{ErrorKind, Refusal, Timestamp};

use super::fate::{Fate, Fault};
use super::journal::Journal;
use super::names;

#[derive(Debug)]
pub(super) struct FatedStore {
    pub(super) inner: Arc<dyn Store>,
    pub(super) fate: Arc<Fate>,
    pub(super) journal: Arc<Journal>,
    /// What a claim is really given, whatever the loop asks for.
    pub(super) lease: Duration,
}

/// A decision on its way through the choke point.
#[derive(Debug, Default)]
pub(super) struct Passage {
    /// What it commits, and its name; of the last asking, if asked again.
    commit: Option<(String, Commit)>,
    struck: Option<Fault>,
}

impl Passage {
    /// Weighs what the rule answered. An empty commit writes nothing and is no
    /// passage.
    pub(super) fn weigh(&mut self, fate: &Fate, commit: Commit) -> Result<Commit, Refusal> {
        if commit.is_empty() {
            return Ok(commit);
        }
        let name = names::of_commit(&commit);
        if self.commit.is_none() {
            self.struck = fate.meet(format!("{name}/before"));
        }
        self.commit = Some((name, commit.clone()));
        match self.struck {
            Some(_) => Err(Refusal::new(ErrorKind::Internal, "a fault struck before the commit")),
            None => Ok(commit),
        }
    }
}

fn lost() -> Error {
    Error::Unavailable("a fault struck".to_owned())
}

impl FatedStore {
    pub(super) async fn conclude(
        &self,
        passage: Passage,
        outcome: Result<(), Error>,
    ) -> Result<(), Error> {
        match passage.struck {
            Some(Fault::Crash) => self.fate.die().await,
            Some(Fault::Fail | Fault::Twice) => return Err(lost()),
            None => {}
        }
        outcome?;
        let Some((name, commit)) = passage.commit else { return Ok(()) };
        self.note(&commit);
        self.after(&name).await
    }

    pub(super) async fn before(&self, name: &str) -> Result<(), Error> {
        self.fate.alive().await;
        match self.fate.meet(format!("{name}/before")) {
            Some(Fault::Crash) => self.fate.die().await,
            Some(Fault::Fail | Fault::Twice) => Err(lost()),
            None => Ok(()),
        }
    }

    pub(super) async fn after(&self, name: &str) -> Result<(), Error> {
        if self.fate.survive(format!("{name}/after")).await { Err(lost()) } else { Ok(()) }
    }

    /// The claims that a commit gave back.
    fn note(&self, commit: &Commit) {
        for write in &commit.writes {
            if let Write::Release(release) = write {
                self.journal.released(release.attempt, release.claim_token);
            }
        }
    }

    /// What a batch would commit: the names, each once, so that they do not
    /// depend on how many rows a batch happens to hold.
    async fn foresee(
        &self,
        attempts: &[ProvisionedResourceId],
        rule: &mut ResourceRule<'_>,
    ) -> Result<BTreeSet<String>, Error> {
        let loaded = self.inner.attempt_load(attempts).await?;
        let commits = loaded.iter().flatten().filter_map(|snapshot| rule(snapshot).ok());
        Ok(commits.filter(|commit| !commit.is_empty()).map(|c| names::of_commit(&c)).collect())
    }
}

#[async_trait]
impl DatabaseClock for FatedStore {
    async fn database_now(&self) -> Result<Timestamp, Error> {
        self.inner.database_now().await
    }

    async fn schedule_pull_in(&self, jump: Duration, lease: Duration) -> Result<u64, Error> {
        self.inner.schedule_pull_in(jump, lease).await
    }
}

#[async_trait]
impl LaneStore for FatedStore {
    async fn lane_list_overdue(&self) -> Result<Vec<OverdueLane>, Error> {
        self.fate.alive().await;
        self.inner.lane_list_overdue().await
    }
}

#[async_trait]
impl RenewalStore for FatedStore {
    async fn attempt_renew(
        &self,
        worker: &str,
        claims: &[Claimed],
        _lease: Duration,
    ) -> Result<Vec<ProvisionedResourceId>, Error> {
        self.fate.alive().await;
        self.inner.attempt_renew(worker, claims, self.lease).await
    }
}

#[async_trait]
impl RecordStore for FatedStore {
    async fn attempt_record(
        &self,
        records: &[Recorded],
    ) -> Result<HashSet<ProvisionedResourceId>, Error> {
        self.fate.alive().await;
        // What misses its condition is decided under lock, and met there.
        let names: BTreeSet<_> = records.iter().map(|r| names::of_commit(r.commit())).collect();
        for name in &names {
            match self.fate.meet(format!("{name}/before")) {
                Some(Fault::Crash) => self.fate.die().await,
                Some(Fault::Fail | Fault::Twice) => return Err(lost()),
                None => {}
            }
        }
        let recorded = self.inner.attempt_record(records).await?;
        let done = || records.iter().filter(|record| recorded.contains(&record.attempt()));
        for record in done() {
            self.note(record.commit());
        }
        let names: BTreeSet<_> = done().map(|record| names::of_commit(record.commit())).collect();
        for name in names {
            self.after(&name).await?;
        }
        Ok(recorded)
    }
}

#[async_trait]
impl Store for FatedStore {
    async fn decide_declaration(
        &self,
        key: &DeclareKey,
        rule: &mut DeclareRule<'_>,
    ) -> Result<(), Error> {
        self.fate.alive().await;
        let mut passage = Passage::default();
        let mut weighed = |snapshot: &_| passage.weigh(&self.fate, rule(snapshot)?);
        let outcome = self.inner.decide_declaration(key, &mut weighed).await;
        self.conclude(passage, outcome).await
    }

    async fn decide(&self, key: ResourceKey, rule: &mut ResourceRule<'_>) -> Result<(), Error> {
        self.fate.alive().await;
        let mut passage = Passage::default();
        let mut weighed = |snapshot: &ResourceSnapshot| passage.weigh(&self.fate, rule(snapshot)?);
        let outcome = self.inner.decide(key, &mut weighed).await;
        self.conclude(passage, outcome).await
    }

    /// Refusing inside would take one row out of a batch and not the batch, so
    /// the names of several are foreseen by asking the rule without a
    /// transaction.
    async fn decide_many(
        &self,
        attempts: &[ProvisionedResourceId],
        rule: &mut ResourceRule<'_>,
    ) -> Result<Vec<Decided>, Error> {
        self.fate.alive().await;
        if let [attempt] = attempts {
            let mut passage = Passage::default();
            let mut weighed =
                |snapshot: &ResourceSnapshot| passage.weigh(&self.fate, rule(snapshot)?);
            let decided = self.inner.decide_many(attempts, &mut weighed).await?;
            let outcome = decided.into_iter().try_for_each(|(_, outcome)| outcome);
            return match self.conclude(passage, outcome).await {
                Err(Error::Unavailable(reason)) => Err(Error::Unavailable(reason)),
                outcome => Ok(vec![(*attempt, outcome)]),
            };
        }
        for name in self.foresee(attempts, rule).await? {
            match self.fate.meet(format!("{name}/before")) {
                Some(Fault::Crash) => self.fate.die().await,
                Some(Fault::Fail | Fault::Twice) => return Err(lost()),
                None => {}
            }
        }
        let mut commits: Vec<(ProvisionedResourceId, Commit)> = Vec::new();
        let mut kept = |snapshot: &ResourceSnapshot| {
            let commit = rule(snapshot)?;
            let id = snapshot.attempt.id();
            commits.retain(|(of, _)| *of != id);
            commits.push((id, commit.clone()));
            Ok(commit)
        };
        let decided = self.inner.decide_many(attempts, &mut kept).await?;
        let done = |id| decided.iter().any(|(of, outcome)| *of == id && outcome.is_ok());
        commits.retain(|(id, commit)| done(*id) && !commit.is_empty());
        for (_, commit) in &commits {
            self.note(commit);
        }
        let names: BTreeSet<_> = commits.iter().map(|(_, c)| names::of_commit(c)).collect();
        for name in names {
            self.after(&name).await?;
        }
        Ok(decided)
    }

    async fn attempt_claim(
        &self,
        worker: &str,
        lane: Lane,
        limit: u32,
        _lease: Duration,
    ) -> Result<Vec<Claimed>, Error> {
        self.fate.alive().await;
        let claimed = self.inner.attempt_claim(worker, lane, limit, self.lease).await?;
        if !claimed.is_empty() {
            for one in &claimed {
                self.journal.claimed(self.fate.life, *one);
            }
            if self.fate.survive("commit:claim/after".to_owned()).await {
                // Nobody ticks under these; they come back when their lease is over.
                self.journal.ended(self.fate.life);
                return Err(lost());
            }
        }
        Ok(claimed)
    }

    async fn attempt_release(&self, releases: &[Release]) -> Result<(), Error> {
        const NAME: &str = "commit:release";
        self.fate.alive().await;
        match self.fate.meet(format!("{NAME}/before")) {
            Some(Fault::Crash) => self.fate.die().await,
            Some(Fault::Fail | Fault::Twice) => return Err(lost()),
            None => {}
        }
        self.inner.attempt_release(releases).await?;
        for release in releases {
            self.journal.released(release.attempt, release.claim_token);
        }
        self.after(NAME).await
    }

    async fn attempt_hold(
        &self,
        claimed: Claimed,
        reason: &str,
        recheck: Duration,
    ) -> Result<(), Error> {
        self.fate.alive().await;
        self.inner.attempt_hold(claimed, reason, recheck).await?;
        self.journal.released(claimed.id, claimed.claim_token);
        self.after("commit:hold").await
    }

    async fn attempt_reclaim(&self, worker: &str) -> Result<u64, Error> {
        self.fate.alive().await;
        let count = self.inner.attempt_reclaim(worker).await?;
        self.after(if count == 0 { "commit:reclaim none" } else { "commit:reclaim some" }).await?;
        Ok(count)
    }

    async fn attempt_wake_all(&self, lane: Lane) -> Result<u64, Error> {
        self.fate.alive().await;
        let count = self.inner.attempt_wake_all(lane).await?;
        self.after("commit:wake all").await?;
        Ok(count)
    }

    async fn ping(&self) -> Result<(), Error> {
        self.fate.alive().await;
        self.inner.ping().await
    }

    async fn installation(&self) -> Result<InstallationId, Error> {
        self.fate.alive().await;
        self.inner.installation().await
    }

    async fn seed(&self, seed: &Seed) -> Result<ClusterId, Error> {
        self.fate.alive().await;
        self.inner.seed(seed).await
    }

    async fn attempt_load(
        &self,
        ids: &[ProvisionedResourceId],
    ) -> Result<Vec<Result<ResourceSnapshot, CorruptRow>>, Error> {
        self.fate.alive().await;
        self.inner.attempt_load(ids).await
    }

    async fn attempt_overdue(&self, lane: Lane) -> Result<Option<Duration>, Error> {
        self.fate.alive().await;
        self.inner.attempt_overdue(lane).await
    }

    async fn node_heartbeat(
        &self,
        id: NodeId,
        reported: &Reported,
    ) -> Result<Option<Heartbeat>, Error> {
        self.fate.alive().await;
        self.inner.node_heartbeat(id, reported).await
    }

    async fn node_fetch(&self, id: NodeId) -> Result<Option<Node>, Error> {
        self.fate.alive().await;
        self.inner.node_fetch(id).await
    }

    async fn node_list(&self, page: Page<NodeId>) -> Result<Listed<Node>, Error> {
        self.fate.alive().await;
        self.inner.node_list(page).await
    }

    async fn resource_fetch(&self, id: ResourceId) -> Result<Option<ResourceSnapshot>, Error> {
        self.fate.alive().await;
        self.inner.resource_fetch(id).await
    }

    async fn resource_list(
        &self,
        filter: &ResourceFilter,
        page: Page<ResourceId>,
    ) -> Result<Vec<Result<ResourceSnapshot, CorruptRow>>, Error> {
        self.fate.alive().await;
        self.inner.resource_list(filter, page).await
    }

    async fn history_list(&self, id: ProvisionedResourceId) -> Result<Vec<HistoryLine>, Error> {
        self.fate.alive().await;
        self.inner.history_list(id).await
    }

    async fn deletion_fetch(&self, id: DeletionId) -> Result<Option<Deletion>, Error> {
        self.fate.alive().await;
        self.inner.deletion_fetch(id).await
    }

    async fn deletion_list(&self, page: Page<DeletionId>) -> Result<Listed<Deletion>, Error> {
        self.fate.alive().await;
        self.inner.deletion_list(page).await
    }

    async fn api_key_find(&self, short: &str) -> Result<Option<ApiKey>, Error> {
        self.fate.alive().await;
        self.inner.api_key_find(short).await
    }

    async fn api_key_put(&self, key: &ApiKey) -> Result<(), Error> {
        self.fate.alive().await;
        self.inner.api_key_put(key).await
    }

    async fn api_key_count(&self) -> Result<u64, Error> {
        self.fate.alive().await;
        self.inner.api_key_count().await
    }
}

/// The mode does not change in these tests, so its commits are no passages.
#[async_trait]
impl ControlStore for FatedStore {
    async fn control_fetch(&self) -> Result<Control, Error> {
        self.fate.alive().await;
        self.inner.control_fetch().await
    }

    async fn control_decide(&self, rule: &mut ControlRule<'_>) -> Result<(), Error> {
        self.fate.alive().await;
        self.inner.control_decide(rule).await
    }

    async fn replica_list(&self) -> Result<Vec<Replica>, Error> {
        self.fate.alive().await;
        self.inner.replica_list().await
    }

    async fn plan_list(&self, page: Page<ProvisionedResourceId>) -> Result<Vec<PlanLine>, Error> {
        self.fate.alive().await;
        self.inner.plan_list(page).await
    }

    async fn plan_open(&self) -> Result<u64, Error> {
        self.fate.alive().await;
        self.inner.plan_open().await
    }

    async fn api_key_install(
        &self,
        key: &ApiKey,
        when: Install,
        actor: &Actor,
    ) -> Result<Installed, Error> {
        self.fate.alive().await;
        self.inner.api_key_install(key, when, actor).await
    }
}
