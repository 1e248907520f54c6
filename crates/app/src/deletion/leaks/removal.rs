//! Removing the object of a leak, and resolving a leak.
//!
//! A removal is recorded before the object is touched, with who requested it
//! and why. The request itself then carries it out, or the `orphans` loop does:
//! after a crash, or if the object takes time to go. The deletion names the
//! uid, so that a second or late one affects no other object.

use slipway_core::access::audit::Actor;
use slipway_core::access::role::Role;
use slipway_core::broker::observation::CompositeReport;
use slipway_core::deletion::leak::{Leak, LeakSnapshot};
use slipway_core::deletion::orphans::{self, Presence};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{ClusterId, LeakRecordId, ProvisionedResourceId};
use slipway_core::operations::control::Mode;
use slipway_core::text::Reason;

use super::finder::Finder;
use crate::Error;
use crate::broker::converge;
use crate::operations::control;
use crate::placement::port::ClusterIdentity;
use crate::ports::substrate::{self, Address};

/// Removals that one pass continues.
const REMOVALS: u32 = 100;

impl Finder {
    pub(super) async fn remove(
        &self,
        id: LeakRecordId,
        caller: Role,
        reason: &Reason,
        actor: &Actor,
    ) -> Result<(), Error> {
        let store = &self.context().stores;
        let mut asked = None;
        store
            .deletion
            .leak_decide(id, &mut |snapshot| {
                let commit = orphans::request_removal(snapshot, caller, reason, actor)?;
                asked = Some(commit.leak.clone());
                Ok(commit)
            })
            .await?;
        let (Some(leak), Some(cluster_id)) =
            (&asked, asked.as_ref().and_then(|leak| leak.cluster_id))
        else {
            return Ok(());
        };
        let removed = match self.cluster_of(leak).await? {
            Some(cluster) => self.remove_object(&cluster, leak).await?,
            // The replica that serves the cluster removes it.
            None => Removed::Waiting,
        };
        match removed {
            Removed::Gone => {}
            // The loop continues it soon.
            Removed::Waiting => store.operations.task_wake(&Self::task(cluster_id)).await?,
            Removed::Withheld(mode) => {
                store.operations.task_wake(&Self::task(cluster_id)).await?;
                let text = format!(
                    "the removal of leak {id} is recorded and waits: the installation is {}; `slipway status` says why",
                    control::summary(&mode)
                );
                return Err(Refusal::new(ErrorKind::LeakNotRemovable, text).into());
            }
            Removed::Failed(error) => {
                store.operations.task_wake(&Self::task(cluster_id)).await?;
                let text = format!("the object of leak {id} could not be removed yet: {error}");
                return Err(Refusal::new(ErrorKind::LeakNotRemovable, text).into());
            }
        }
        Ok(())
    }

    /// Continues the removals of a cluster; returns how many are left and the errors.
    pub async fn continue_removals(
        &self,
        cluster: &ClusterIdentity,
    ) -> Result<(u64, Vec<String>), Error> {
        let (mut left, mut errors) = (0, Vec::new());
        for leak in self.context().stores.deletion.leak_removals(cluster.id, REMOVALS).await? {
            match self.remove_object(cluster, &leak).await? {
                Removed::Gone => {}
                // The others wait, too; the end of the mode wakes the loop.
                Removed::Withheld(_) => break,
                Removed::Waiting => left += 1,
                Removed::Failed(error) => {
                    left += 1;
                    errors.push(format!("the object of leak {} stays: {error}", leak.id));
                }
            }
        }
        Ok((left, errors))
    }

    /// The name of the periodic task that scans a cluster.
    pub fn task(cluster: ClusterId) -> String {
        format!("orphans:{cluster}")
    }

    /// Deletes the object and observes it. Checks the rows again before: one
    /// may claim the object since the removal was requested.
    async fn remove_object(
        &self,
        cluster: &ClusterIdentity,
        leak: &Leak,
    ) -> Result<Removed, Error> {
        let store = &self.context().stores;
        let claimant = store
            .deletion
            .claimant_load(&[ProvisionedResourceId::new(leak.subject.id)])
            .await?
            .pop();
        let now = store.deletion.leak_scan_begin().await?;
        let snapshot = LeakSnapshot { now, leak: leak.clone(), claimant, owner: None };
        if !orphans::may_remove(&snapshot) {
            return Ok(Removed::Failed("a row claims it; explain that resource".to_owned()));
        }
        let (Some(address), Some(uid)) = (address(cluster, leak), &leak.uid) else {
            return Ok(Removed::Failed("its cluster or namespace is not known".to_owned()));
        };
        let Some(substrate) = self.substrate(cluster) else {
            return Ok(Removed::Failed(format!("this process has no engine {}", cluster.engine)));
        };
        // Read now: a person may have frozen just before this request. The permit is
        // kept until the deletion was answered. If the mode forbids it, the loop
        // continues the removal later.
        self.permits().read(store).await?;
        let _permit = match self.permits().enter(store).await? {
            Ok(permit) => permit,
            Err(mode) => return Ok(Removed::Withheld(mode)),
        };
        match tokio::time::timeout(self.deadline(), substrate.delete(&address, uid)).await {
            Ok(Ok(())) => {}
            Ok(Err(error @ substrate::Error::Conflict(_))) => {
                return Ok(Removed::Failed(format!(
                    "{error}; scan again with `slipway leaks find`"
                )));
            }
            Ok(Err(substrate::Error::Withheld)) => {
                return Ok(match self.permits().read(store).await?.mode {
                    Mode::Acting => Removed::Waiting,
                    mode => Removed::Withheld(mode),
                });
            }
            Ok(Err(error)) => return Ok(Removed::Failed(error.to_string())),
            Err(_) => return Ok(Removed::Failed(format!("no answer in {:?}", self.deadline()))),
        }
        match self.presence(cluster, address).await {
            Presence::Gone => {}
            Presence::There => return Ok(Removed::Waiting),
            Presence::Unknown(reason) => return Ok(Removed::Failed(reason)),
        }
        let actor = Actor::new(Self::ACTOR);
        let ended = store
            .deletion
            .leak_decide(leak.id, &mut |snapshot| {
                if snapshot.leak.is_open() {
                    Ok(orphans::vanished(&snapshot.leak, snapshot.now, &actor))
                } else {
                    Err(Refusal::new(
                        ErrorKind::LeakResolved,
                        "the leak was resolved meanwhile; nothing was changed",
                    ))
                }
            })
            .await
            .map_err(Error::from);
        match ended {
            Err(error) if error.kind() != ErrorKind::LeakResolved => Err(error),
            _ => Ok(Removed::Gone),
        }
    }

    pub(super) async fn resolve(
        &self,
        id: LeakRecordId,
        reason: &Reason,
        actor: &Actor,
    ) -> Result<(), Error> {
        let store = &self.context().stores;
        // The decision below refuses a leak that does not exist.
        let presence = match store.deletion.leak_fetch(id).await? {
            Some(leak) if leak.is_open() => self.presence_of(&leak).await?,
            _ => Presence::Gone,
        };
        store
            .deletion
            .leak_decide(id, &mut |snapshot| orphans::resolve(snapshot, &presence, reason, actor))
            .await?;
        Ok(())
    }

    async fn presence_of(&self, leak: &Leak) -> Result<Presence, Error> {
        if leak.finding.is_some() && leak.cluster_id.is_some() {
            let Some(cluster) = self.cluster_of(leak).await? else {
                let name = leak.cluster.as_deref().unwrap_or("(none)");
                return Ok(Presence::Unknown(format!(
                    "this process does not serve the cluster `{name}`; ask the replica that does"
                )));
            };
            return Ok(match address(&cluster, leak) {
                Some(address) => self.presence(&cluster, address).await,
                None => Presence::Gone,
            });
        }
        if leak.is_kept_on_purpose()
            || leak.is_abandoned() && leak.provisioned_resource_id().is_none()
        {
            let reason = "Slipway does not observe what it recorded there".to_owned();
            return Ok(Presence::Unknown(reason));
        }
        // A leak of a decision: the attempt knows where the object is.
        let attempt = ProvisionedResourceId::new(leak.subject.id);
        let snapshot = match self.context().stores.broker.attempt_load(&[attempt]).await?.pop() {
            Some(Ok(snapshot)) => snapshot,
            Some(Err(row)) => return Ok(Presence::Unknown(row.reason)),
            // No row says where it was, so the person's word counts.
            None => return Ok(Presence::Gone),
        };
        if snapshot.node.as_ref().is_some_and(|node| node.is_registered()) {
            return Ok(Presence::There);
        }
        let snapshots = std::slice::from_ref(&snapshot);
        let reports = converge::observe(self.engines(), snapshots, self.deadline()).await;
        Ok(reports.first().map_or(Presence::Gone, seen))
    }

    async fn presence(&self, cluster: &ClusterIdentity, address: Address) -> Presence {
        let Some(substrate) = self.substrate(cluster) else {
            return Presence::Unknown(format!("this process has no engine {}", cluster.engine));
        };
        let addresses = [address];
        match tokio::time::timeout(self.deadline(), substrate.observe(&addresses)).await {
            Ok(reports) => reports.first().map_or(Presence::Gone, seen),
            Err(_) => Presence::Unknown(format!("no answer within {:?}", self.deadline())),
        }
    }

    /// The cluster that a leak was found on, if this process serves it.
    async fn cluster_of(&self, leak: &Leak) -> Result<Option<ClusterIdentity>, Error> {
        let served = self.served().await?;
        Ok(served.into_iter().find(|cluster| Some(cluster.id) == leak.cluster_id))
    }
}

/// The result of a removal.
enum Removed {
    Gone,
    /// The deletion has started and not ended yet.
    Waiting,
    /// This mode does not permit it.
    Withheld(Mode),
    Failed(String),
}

fn address(cluster: &ClusterIdentity, leak: &Leak) -> Option<Address> {
    let object_ref = leak.object_ref.as_ref()?;
    Some(Address {
        provisioned_resource_id: ProvisionedResourceId::new(leak.subject.id),
        namespace: object_ref.namespace.clone(),
        name: object_ref.name.clone(),
        composite_type: None,
        substrate_uid: cluster.substrate_uid.clone(),
    })
}

fn seen(report: &CompositeReport) -> Presence {
    match report {
        CompositeReport::Absent => Presence::Gone,
        CompositeReport::Present(_) => Presence::There,
        CompositeReport::Unknown { reason } | CompositeReport::Foreign { reason } => {
            Presence::Unknown(reason.clone())
        }
    }
}
