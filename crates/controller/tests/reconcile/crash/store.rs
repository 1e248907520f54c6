//! The store of one life of the control plane: every commit is a passage and is
//! noted in the journal.
//!
//! A decision has a point before and one after. Its name is known only when the
//! rule has answered, inside the transaction. So a fault before the commit
//! refuses there, which rolls back, and strikes after the rollback. The other
//! commits (claim, relay, the boot sweep) have only a point after: before them
//! there is no claim, and a fault there equals the one after the previous
//! commit. Reads are no passages, nor are heartbeats, which decide nothing. The
//! interceptors of the ports pass everything else on.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use slipway_app::access::port::AccessIntercept;
use slipway_app::broker::port::{
    BrokerIntercept, Claimed, Decided, DeclarationsRule, DeclareKey, DeclareRule, RedeclareKey,
    RedeclareRule, ReplaceRule, ResourceDeletionRule, ResourceKey, ResourceRule,
};
use slipway_app::catalog::port::CatalogIntercept;
use slipway_app::deletion::port::{
    DeletionIntercept, DeletionRule, PlanRule, PurgeBatch, PurgeRule, RestoreRule,
};
use slipway_app::events::port::{ClaimedSubscription, EventIntercept, Published};
use slipway_app::files::port::{Beside, FilesIntercept};
use slipway_app::fleet::port::FleetIntercept;
use slipway_app::nodes::port::NodeIntercept;
use slipway_app::operations::port::OperationsIntercept;
use slipway_app::placement::port::PlacementIntercept;
use slipway_app::ports::kind::KindIntercept;
use slipway_app::ports::store::{Error, Rule};
use slipway_app::ports::{
    AccessStore, BrokerStore, CatalogStore, DeletionStore, EventStore, FilesStore, FleetStore,
    NodeStore, OperationsStore, PlacementStore, RolloutStore, Stores, TenantStore,
};
use slipway_app::rollouts::port::{RolloutIntercept, RolloutRule, StartRule};
use slipway_app::tenants::port::TenantIntercept;
use slipway_core::blocker::DeregistrationSeam;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::commit::{Commit, Recorded, Release, Write};
use slipway_core::deletion::door::DoorInput;
use slipway_core::deletion::restore::{Renames, RestoreSnapshot};
use slipway_core::files::document::DocumentKind;
use slipway_core::files::write::DeclaredObject;
use slipway_core::fleet::object::ObjectSnapshot;
use slipway_core::fleet::offer::OfferSnapshot;
use slipway_core::fleet::report::{NewReport, Report};
use slipway_core::ids::{
    AgentId, DeletionId, DeploymentObjectId, Partition, PlanId, ProjectId, ProvisionedResourceId,
    ResourceId, RolloutId, StackId, SubscriptionId,
};
use slipway_core::nodes::enrol::EnrolSnapshot;
use slipway_core::nodes::token::SecretHash;
use slipway_core::subject::Subject;
use slipway_core::{ErrorKind, Refusal};

use super::fate::{Fate, Fault};
use super::journal::Journal;

mod topology;

#[derive(Debug)]
pub(super) struct FatedStore {
    pub(super) inner: Stores,
    pub(super) fate: Arc<Fate>,
    pub(super) journal: Arc<Journal>,
    /// The actual lease of a claim, whatever the loop asks for.
    pub(super) lease: Duration,
}

/// A decision on its way through the choke point.
#[derive(Debug, Default)]
pub(super) struct Passage {
    /// Its commit and name; from the last call, if the rule runs again.
    commit: Option<(String, Commit)>,
    struck: Option<Fault>,
}

impl Passage {
    /// Inspects the rule's answer. An empty commit writes nothing and is no
    /// passage.
    pub(super) fn weigh(&mut self, fate: &Fate, commit: Commit) -> Result<Commit, Refusal> {
        if commit.is_empty() {
            return Ok(commit);
        }
        let name = fate.name_of(&commit);
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

    /// Notes the claims that a commit released.
    fn note(&self, commit: &Commit) {
        for write in &commit.writes {
            if let Write::Release(release) = write {
                self.journal.released(
                    ProvisionedResourceId::new(release.subject.id()),
                    release.claim_token,
                );
            }
        }
    }

    /// The names of what a batch would commit, each once, so that they do not
    /// depend on how many rows the batch has.
    async fn foresee(
        &self,
        attempts: &[ProvisionedResourceId],
        rule: &mut ResourceRule<'_>,
    ) -> Result<BTreeSet<String>, Error> {
        let loaded = self.inner.broker.attempt_load(attempts).await?;
        let commits = loaded.iter().flatten().filter_map(|snapshot| rule(snapshot).ok());
        Ok(commits.filter(|commit| !commit.is_empty()).map(|c| self.fate.name_of(&c)).collect())
    }
}

#[async_trait]
impl BrokerIntercept for FatedStore {
    fn inner(&self) -> &dyn BrokerStore {
        &*self.inner.broker
    }

    async fn enter(&self) {
        self.fate.alive().await;
    }

    async fn decide_declaration(
        &self,
        key: &DeclareKey,
        rule: &mut DeclareRule<'_>,
    ) -> Result<(), Error> {
        self.fate.alive().await;
        let mut passage = Passage::default();
        let mut weighed = |snapshot: &_| passage.weigh(&self.fate, rule(snapshot)?);
        let outcome = self.inner.broker.decide_declaration(key, &mut weighed).await;
        self.conclude(passage, outcome).await
    }

    /// A batch is one commit, whatever it has.
    async fn decide_declarations(
        &self,
        keys: &[DeclareKey],
        rule: &mut DeclarationsRule<'_>,
    ) -> Result<Vec<Result<(), Error>>, Error> {
        const NAME: &str = "commit:declarations";
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.before(NAME).await?;
        let decided = self.inner.broker.decide_declarations(keys, rule).await?;
        self.after(NAME).await?;
        Ok(decided)
    }

    async fn decide(&self, key: ResourceKey, rule: &mut ResourceRule<'_>) -> Result<(), Error> {
        self.fate.alive().await;
        let mut passage = Passage::default();
        let mut weighed = |snapshot: &ResourceSnapshot| passage.weigh(&self.fate, rule(snapshot)?);
        let outcome = self.inner.broker.decide(key, &mut weighed).await;
        self.conclude(passage, outcome).await
    }

    async fn decide_deletion(
        &self,
        id: ResourceId,
        input: DoorInput,
        rule: &mut ResourceDeletionRule<'_>,
    ) -> Result<(), Error> {
        self.fate.alive().await;
        let mut passage = Passage::default();
        let mut weighed = |snapshot: &_| passage.weigh(&self.fate, rule(snapshot)?);
        let outcome = self.inner.broker.decide_deletion(id, input, &mut weighed).await;
        self.conclude(passage, outcome).await
    }

    async fn decide_redeclaration(
        &self,
        key: &RedeclareKey,
        rule: &mut RedeclareRule<'_>,
    ) -> Result<(), Error> {
        self.fate.alive().await;
        let mut passage = Passage::default();
        let mut weighed = |snapshot: &_| passage.weigh(&self.fate, rule(snapshot)?);
        let outcome = self.inner.broker.decide_redeclaration(key, &mut weighed).await;
        self.conclude(passage, outcome).await
    }

    async fn decide_replacement(
        &self,
        key: &RedeclareKey,
        input: DoorInput,
        rule: &mut ReplaceRule<'_>,
    ) -> Result<(), Error> {
        self.fate.alive().await;
        let mut passage = Passage::default();
        let mut weighed = |snapshot: &_| passage.weigh(&self.fate, rule(snapshot)?);
        let outcome = self.inner.broker.decide_replacement(key, input, &mut weighed).await;
        self.conclude(passage, outcome).await
    }

    /// A refusal inside would take one row out of the batch instead of failing
    /// the batch, so the names of several are determined first by running the
    /// rule without a transaction.
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
            let decided = self.inner.broker.decide_many(attempts, &mut weighed).await?;
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
        let decided = self.inner.broker.decide_many(attempts, &mut kept).await?;
        let done = |id| decided.iter().any(|(of, outcome)| *of == id && outcome.is_ok());
        commits.retain(|(id, commit)| done(*id) && !commit.is_empty());
        for (_, commit) in &commits {
            self.note(commit);
        }
        let names: BTreeSet<_> = commits.iter().map(|(_, c)| self.fate.name_of(c)).collect();
        for name in names {
            self.after(&name).await?;
        }
        Ok(decided)
    }

    async fn attempt_claim(
        &self,
        worker: &str,
        partition: Partition,
        limit: u32,
        _lease: Duration,
    ) -> Result<Vec<Claimed>, Error> {
        self.fate.alive().await;
        let claimed = self.inner.broker.attempt_claim(worker, partition, limit, self.lease).await?;
        if !claimed.is_empty() {
            for one in &claimed {
                self.journal.claimed(self.fate.life, *one);
            }
            if self.fate.survive("commit:claim/after".to_owned()).await {
                // Nobody works under these claims; they become claimable again
                // when their lease expires.
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
        self.inner.broker.attempt_release(releases).await?;
        for release in releases {
            self.journal
                .released(ProvisionedResourceId::new(release.subject.id()), release.claim_token);
        }
        self.after(NAME).await
    }

    async fn attempt_quarantine(
        &self,
        claimed: Claimed,
        reason: &str,
        seam: Option<DeregistrationSeam>,
        recheck: Duration,
    ) -> Result<(), Error> {
        self.fate.alive().await;
        self.inner.broker.attempt_quarantine(claimed, reason, seam, recheck).await?;
        self.journal.released(claimed.id, claimed.claim_token);
        self.after("commit:hold").await
    }

    async fn attempt_reclaim(&self, worker: &str, partition: Partition) -> Result<u64, Error> {
        self.fate.alive().await;
        let count = self.inner.broker.attempt_reclaim(worker, partition).await?;
        self.after(if count == 0 { "commit:reclaim none" } else { "commit:reclaim some" }).await?;
        Ok(count)
    }

    async fn attempt_wake(&self, attempts: &[ProvisionedResourceId]) -> Result<(), Error> {
        const NAME: &str = "commit:wake";
        self.before(NAME).await?;
        self.inner.broker.attempt_wake(attempts).await?;
        self.after(NAME).await
    }

    async fn attempt_wake_all(&self, partition: Partition) -> Result<u64, Error> {
        self.fate.alive().await;
        let count = self.inner.broker.attempt_wake_all(partition).await?;
        self.after("commit:wake all").await?;
        Ok(count)
    }

    async fn attempt_record(
        &self,
        records: &[Recorded],
    ) -> Result<HashSet<ProvisionedResourceId>, Error> {
        self.fate.alive().await;
        // A record whose condition fails is decided under a lock, and meets its
        // point there.
        let names: BTreeSet<_> = records.iter().map(|r| self.fate.name_of(r.commit())).collect();
        for name in &names {
            match self.fate.meet(format!("{name}/before")) {
                Some(Fault::Crash) => self.fate.die().await,
                Some(Fault::Fail | Fault::Twice) => return Err(lost()),
                None => {}
            }
        }
        let recorded = self.inner.broker.attempt_record(records).await?;
        let done = || records.iter().filter(|record| recorded.contains(&record.attempt()));
        for record in done() {
            self.note(record.commit());
        }
        let names: BTreeSet<_> = done().map(|record| self.fate.name_of(record.commit())).collect();
        for name in names {
            self.after(&name).await?;
        }
        Ok(recorded)
    }

    async fn attempt_renew(
        &self,
        worker: &str,
        claims: &[Claimed],
        _lease: Duration,
    ) -> Result<Vec<ProvisionedResourceId>, Error> {
        self.fate.alive().await;
        self.inner.broker.attempt_renew(worker, claims, self.lease).await
    }
}

#[async_trait]
impl NodeIntercept for FatedStore {
    fn inner(&self) -> &dyn NodeStore {
        &*self.inner.nodes
    }

    async fn enter(&self) {
        self.fate.alive().await;
    }

    async fn decide_enrolment(
        &self,
        token: SecretHash,
        nonce: Option<&str>,
        public_key: &[u8; 32],
        rule: &mut Rule<'_, EnrolSnapshot>,
    ) -> Result<(), Error> {
        self.fate.alive().await;
        let mut passage = Passage::default();
        let mut weighed = |snapshot: &EnrolSnapshot| passage.weigh(&self.fate, rule(snapshot)?);
        let outcome =
            self.inner.nodes.decide_enrolment(token, nonce, public_key, &mut weighed).await;
        self.conclude(passage, outcome).await
    }
}

#[async_trait]
impl EventIntercept for FatedStore {
    fn inner(&self) -> &dyn EventStore {
        &*self.inner.events
    }

    async fn enter(&self) {
        self.fate.alive().await;
    }

    async fn outbox_relay(&self, limit: u32) -> Result<u64, Error> {
        self.fate.alive().await;
        let count = self.inner.events.outbox_relay(limit).await?;
        if count > 0 {
            self.after("commit:relay").await?;
        }
        Ok(count)
    }

    async fn subscription_open(&self, id: SubscriptionId, name: &str) -> Result<(), Error> {
        self.fate.alive().await;
        self.inner.events.subscription_open(id, name).await?;
        self.after("commit:subscription open").await
    }

    async fn subscription_claim(
        &self,
        name: &str,
        worker: &str,
        lease: Duration,
    ) -> Result<Option<ClaimedSubscription>, Error> {
        self.fate.alive().await;
        let claimed = self.inner.events.subscription_claim(name, worker, lease).await?;
        if claimed.is_some() {
            self.after("commit:subscription claim").await?;
        }
        Ok(claimed)
    }

    async fn subscription_advance(
        &self,
        claimed: &ClaimedSubscription,
        position: i64,
    ) -> Result<(), Error> {
        self.before("commit:cursor").await?;
        self.inner.events.subscription_advance(claimed, position).await?;
        self.after("commit:cursor").await
    }

    async fn subscription_release(
        &self,
        claimed: &ClaimedSubscription,
        published: &Published,
    ) -> Result<(), Error> {
        self.before("commit:subscription release").await?;
        self.inner.events.subscription_release(claimed, published).await?;
        self.after("commit:subscription release").await
    }

    async fn subscription_reclaim(&self, worker: &str) -> Result<u64, Error> {
        self.fate.alive().await;
        let count = self.inner.events.subscription_reclaim(worker).await?;
        self.after("commit:subscription reclaim").await?;
        Ok(count)
    }
}

#[async_trait]
impl KindIntercept for FatedStore {
    fn inner(&self) -> &Stores {
        &self.inner
    }

    async fn enter(&self) {
        self.fate.alive().await;
    }

    async fn before_decision(&self, kind: &'static str) -> Result<(), Error> {
        self.before(&format!("commit:{kind}")).await
    }

    async fn after_decision(&self, kind: &'static str) -> Result<(), Error> {
        self.after(&format!("commit:{kind}")).await
    }
}

#[async_trait]
impl FilesIntercept for FatedStore {
    fn inner(&self) -> &dyn FilesStore {
        &*self.inner.files
    }

    async fn enter(&self) {
        self.fate.alive().await;
    }

    /// Their decisions are passages too.
    async fn beside(&self, beside: Arc<Beside>) -> Stores {
        self.fate.alive().await;
        Stores::of(Arc::new(Self {
            inner: self.inner.files.beside(beside).await,
            fate: Arc::clone(&self.fate),
            journal: Arc::clone(&self.journal),
            lease: self.lease,
        }))
    }

    async fn declared_put(&self, rows: &[DeclaredObject]) -> Result<(), Error> {
        const NAME: &str = "commit:declared";
        self.before(NAME).await?;
        self.inner.files.declared_put(rows).await?;
        self.after(NAME).await
    }

    async fn declared_forget(
        &self,
        source: &str,
        kind: DocumentKind,
        path: &str,
        project: Option<ProjectId>,
    ) -> Result<bool, Error> {
        const NAME: &str = "commit:forget";
        self.before(NAME).await?;
        let forgot = self.inner.files.declared_forget(source, kind, path, project).await?;
        self.after(NAME).await?;
        Ok(forgot)
    }
}

/// No scenario has a passage in these ports; calls of a dead life block here too.
macro_rules! hand_on {
    ($($interceptor:ident, $port:ident, $room:ident;)*) => {$(
        #[async_trait]
        impl $interceptor for FatedStore {
            fn inner(&self) -> &dyn $port {
                &*self.inner.$room
            }

            async fn enter(&self) {
                self.fate.alive().await;
            }
        }
    )*};
}

#[async_trait]
impl DeletionIntercept for FatedStore {
    fn inner(&self) -> &dyn DeletionStore {
        &*self.inner.deletion
    }

    async fn enter(&self) {
        self.fate.alive().await;
    }

    async fn restore_decide(
        &self,
        id: DeletionId,
        renames: &Renames,
        rule: &mut RestoreRule<'_>,
    ) -> Result<(), Error> {
        self.fate.alive().await;
        let mut passage = Passage::default();
        let mut weighed = |snapshot: &RestoreSnapshot| passage.weigh(&self.fate, rule(snapshot)?);
        let outcome = self.inner.deletion.restore_decide(id, renames, &mut weighed).await;
        self.conclude(passage, outcome).await
    }

    async fn deletion_decide(
        &self,
        id: DeletionId,
        rule: &mut DeletionRule<'_>,
    ) -> Result<(), Error> {
        self.fate.alive().await;
        let mut passage = Passage::default();
        let mut weighed = |snapshot: &_| passage.weigh(&self.fate, rule(snapshot)?);
        let outcome = self.inner.deletion.deletion_decide(id, &mut weighed).await;
        self.conclude(passage, outcome).await
    }

    async fn purge_decide(&self, id: DeletionId, rule: &mut PurgeRule<'_>) -> Result<(), Error> {
        self.fate.alive().await;
        let mut passage = Passage::default();
        let mut weighed = |snapshot: &_| passage.weigh(&self.fate, rule(snapshot)?);
        let outcome = self.inner.deletion.purge_decide(id, &mut weighed).await;
        self.conclude(passage, outcome).await
    }

    async fn purge_batch(&self, id: DeletionId, limit: u32) -> Result<PurgeBatch, Error> {
        const NAME: &str = "commit:purge batch";
        self.before(NAME).await?;
        let batch = self.inner.deletion.purge_batch(id, limit).await?;
        self.after(NAME).await?;
        Ok(batch)
    }

    async fn plan_decide(
        &self,
        id: PlanId,
        approver: Option<&str>,
        rule: &mut PlanRule<'_>,
    ) -> Result<(), Error> {
        self.fate.alive().await;
        let mut passage = Passage::default();
        let mut weighed = |snapshot: &_| passage.weigh(&self.fate, rule(snapshot)?);
        let outcome = self.inner.deletion.plan_decide(id, approver, &mut weighed).await;
        self.conclude(passage, outcome).await
    }
}

#[async_trait]
impl TenantIntercept for FatedStore {
    fn inner(&self) -> &dyn TenantStore {
        &*self.inner.tenants
    }

    async fn enter(&self) {
        self.fate.alive().await;
    }
}

#[async_trait]
impl FleetIntercept for FatedStore {
    fn inner(&self) -> &dyn FleetStore {
        &*self.inner.fleet
    }

    async fn enter(&self) {
        self.fate.alive().await;
    }

    async fn decide_object(
        &self,
        stack: StackId,
        object: Option<DeploymentObjectId>,
        rule: &mut Rule<'_, ObjectSnapshot>,
    ) -> Result<(), Error> {
        self.fate.alive().await;
        let mut passage = Passage::default();
        let mut weighed = |snapshot: &_| passage.weigh(&self.fate, rule(snapshot)?);
        let outcome = self.inner.fleet.decide_object(stack, object, &mut weighed).await;
        self.conclude(passage, outcome).await
    }

    async fn decide_offer(
        &self,
        agent: AgentId,
        rule: &mut Rule<'_, OfferSnapshot>,
    ) -> Result<(), Error> {
        self.fate.alive().await;
        let mut passage = Passage::default();
        let mut weighed = |snapshot: &_| passage.weigh(&self.fate, rule(snapshot)?);
        let outcome = self.inner.fleet.decide_offer(agent, &mut weighed).await;
        self.conclude(passage, outcome).await
    }

    async fn report_record(&self, report: &NewReport) -> Result<Option<Report>, Error> {
        const NAME: &str = "commit:report";
        self.before(NAME).await?;
        let recorded = self.inner.fleet.report_record(report).await?;
        self.after(NAME).await?;
        Ok(recorded)
    }
}

#[async_trait]
impl RolloutIntercept for FatedStore {
    fn inner(&self) -> &dyn RolloutStore {
        &*self.inner.rollouts
    }

    async fn enter(&self) {
        self.fate.alive().await;
    }

    async fn rollout_start(&self, subject: Subject, rule: &mut StartRule<'_>) -> Result<(), Error> {
        self.fate.alive().await;
        let mut passage = Passage::default();
        let mut weighed = |snapshot: &_| passage.weigh(&self.fate, rule(snapshot)?);
        let outcome = self.inner.rollouts.rollout_start(subject, &mut weighed).await;
        self.conclude(passage, outcome).await
    }

    async fn rollout_decide(&self, id: RolloutId, rule: &mut RolloutRule<'_>) -> Result<(), Error> {
        self.fate.alive().await;
        let mut passage = Passage::default();
        let mut weighed = |snapshot: &_| passage.weigh(&self.fate, rule(snapshot)?);
        let outcome = self.inner.rollouts.rollout_decide(id, &mut weighed).await;
        self.conclude(passage, outcome).await
    }
}

hand_on! {
    AccessIntercept, AccessStore, access;
    CatalogIntercept, CatalogStore, catalog;
    OperationsIntercept, OperationsStore, operations;
    PlacementIntercept, PlacementStore, placement;
}
