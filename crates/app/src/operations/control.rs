//! The mode of the installation: freeze and unfreeze, observe and resume, the
//! list of withheld actions, and the heartbeat by which replicas show that they
//! are alive and recognise a restored database.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use slipway_core::Refusal;
use slipway_core::access::audit::Actor;
use slipway_core::ids::{Partition, ProvisionedResourceId, Revision};
use slipway_core::operations::control::{
    self, Control, ControlCommit, LockedControl, Mark, MarkKey, Mode, ReplicaReport,
};
use slipway_core::text::Reason;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::broker::converge::Engines;
use crate::operations::port::{Replica, WithheldAction};
use crate::permits::{KnownMode, Permits};
use crate::ports::Substrate;
use crate::ports::store::Page;
use crate::ports::substrate::{Error as SubstrateError, HighWaterMark};
use crate::{Context, Error};

/// How often a replica sends a heartbeat; see [`heartbeat`].
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);

/// The mode, and who obeys it.
#[derive(Debug, Clone)]
pub struct Status {
    pub control: Control,
    pub replicas: Vec<ReplicaStatus>,
    /// Nothing that began under an earlier mode is still running anywhere, see
    /// `docs/control.md`.
    pub settled: bool,
}

/// A replica and its relation to the mode.
#[derive(Debug, Clone)]
pub struct ReplicaStatus {
    pub replica: Replica,
    /// All its actions obey the current mode.
    pub obeys: bool,
    /// No heartbeat for longer than anything of it can last: all its actions are
    /// over, and it reads the mode again before it does anything else.
    pub lapsed: bool,
}

pub async fn status(context: &Context, caller: &Caller) -> Result<Status, Error> {
    authorise(caller, Operation::ControlRead)?;
    let control = context.stores.operations.control_fetch().await?;
    let replicas: Vec<_> = context.stores.operations.replica_list().await?;
    let replicas: Vec<_> = replicas
        .into_iter()
        .map(|replica| ReplicaStatus {
            obeys: replica.acknowledged >= control.revision,
            lapsed: control.now.since(replica.seen_at)
                > replica.outlives.max(HEARTBEAT_INTERVAL * 3),
            replica,
        })
        .collect();
    let settled = replicas.iter().all(|status| status.obeys || status.lapsed);
    Ok(Status { control, replicas, settled })
}

pub async fn freeze(
    context: &Context,
    caller: &Caller,
    length: Duration,
    reason: &str,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::ControlFreeze)?;
    let reason = Reason::parse(reason)?;
    decide(context, |control| control::freeze(control, length, &reason, &actor)).await
}

pub async fn unfreeze(context: &Context, caller: &Caller, reason: &str) -> Result<(), Error> {
    let actor = authorise(caller, Operation::ControlUnfreeze)?;
    let reason = Reason::parse(reason)?;
    decide(context, |control| control::unfreeze(control, &reason, &actor)).await
}

pub async fn resume(context: &Context, caller: &Caller, reason: &str) -> Result<(), Error> {
    let actor = authorise(caller, Operation::ControlResume)?;
    let reason = Reason::parse(reason)?;
    decide(context, |control| control::resume(control, &reason, &actor)).await
}

/// Changes the mode. Every loop then decides again.
async fn decide(
    context: &Context,
    mut rule: impl FnMut(&Control) -> Result<ControlCommit, Refusal> + Send,
) -> Result<(), Error> {
    let mut rule = |locked: &LockedControl| rule(&locked.control).map(Some);
    context.stores.operations.control_decide(&mut rule).await?;
    context.wakes.wake();
    Ok(())
}

/// One page of withheld actions, and the number of resources not observed yet.
pub async fn withheld(
    context: &Context,
    caller: &Caller,
    page: Page<ProvisionedResourceId>,
) -> Result<(Vec<WithheldAction>, u64), Error> {
    authorise(caller, Operation::WithheldRead)?;
    let lines = context.stores.operations.withheld_list(page).await?;
    Ok((lines, context.stores.operations.withheld_unchecked().await?))
}

/// Enters observe-only mode, requested by the operator at the start of this process.
pub async fn observe(context: &Context, reason: &str, actor: &Actor) -> Result<(), Error> {
    let mut rule = |locked: &LockedControl| Ok(control::observe(&locked.control, reason, actor));
    Ok(context.stores.operations.control_decide(&mut rule).await?)
}

/// Nodes reach the installation by another address than before.
#[derive(Debug)]
pub struct Moved {
    /// `None` if none was configured.
    pub before: Option<String>,
}

/// Records the address at which nodes reach this installation.
pub async fn locate(
    context: &Context,
    public_url: &str,
    actor: &Actor,
) -> Result<Option<Moved>, Error> {
    let mut moved = None;
    context
        .stores
        .operations
        .control_decide(&mut |LockedControl { control, .. }| {
            let located = control::locate(control, public_url, actor);
            moved = located.as_ref().map(|_| Moved { before: control.public_url.clone() });
            Ok(located)
        })
        .await?;
    Ok(moved)
}

/// One heartbeat of this replica.
///
/// *Expected flow:* read the high-water mark of every engine → commit the
/// heartbeat, the counters of the marks that were read, and this replica's
/// acknowledgement → raise these marks, if an action or a registry write began or
/// ended since the last raise.
///
/// *Guarantees:*
/// * A mark that is ahead of its counter proves a restore: the counter is
///   committed before the mark is raised to it, and the mark is read before the
///   counter. The same commit then enters observe-only mode.
/// * A restore to a backup from before an action is recognised. The backup has the
///   counters of its time, and the first heartbeat after the action began or ended
///   raises the marks above them. The marks of all clusters rise after an action
///   on one of them, so that one readable mark is enough.
/// * A restore to a backup from after the last action is not recognised by a
///   mark, and need not be: nothing outside is newer than that database. A node
///   that enrolled since is newer; it enrols again by itself (`docs/restore.md`).
/// * The counter of a mark rises only in a heartbeat that read the mark, and no
///   engine acts on a cluster before this function has compared its mark.
/// * A crash anywhere leaves marks that are too low. They prove nothing, and the
///   first heartbeat of the next process raises them, since the crashed one may
///   have acted.
/// * A restore is recorded only after the marks were raised above every counter of
///   before it, so that a second restore of the same backup finds them there.
///
/// *Caveats:* a replica that dies between its last action and its next heartbeat,
/// two seconds later, leaves the marks below that action until a replica starts
/// or acts. A mark that cannot be read or raised is an error of this heartbeat,
/// and while that lasts that mark shows no restore; the heartbeat is committed
/// all the same, so that replicas keep acknowledging the mode.
pub async fn heartbeat(
    context: &Context,
    engines: &Engines,
    permits: &Permits,
    worker: &str,
    lease: Duration,
) -> Result<KnownMode, HeartbeatError> {
    let outlives = outlives(engines, lease);
    report(context, engines, permits, worker, outlives).await
}

/// The last [`heartbeat`] of this process, after its loops have ended.
pub async fn last_heartbeat(
    context: &Context,
    engines: &Engines,
    permits: &Permits,
    worker: &str,
    lease: Duration,
) -> Result<KnownMode, HeartbeatError> {
    let outlives = permits.outlives().unwrap_or_else(|| outlives(engines, lease));
    report(context, engines, permits, worker, outlives).await
}

/// Before the first [`heartbeat`]: an earlier process under this name, which is over,
/// may have left requests on their way.
pub async fn outlived(
    context: &Context,
    permits: &Permits,
    worker: &str,
    lease: Duration,
) -> Result<(), Error> {
    let now = context.stores.operations.control_fetch().await?.now;
    let replicas = context.stores.operations.replica_list().await?;
    let earlier = replicas.into_iter().find(|replica| replica.worker == worker);
    if let Some(earlier) = earlier.filter(|earlier| earlier.outlives > lease) {
        permits.outlived(earlier.outlives.saturating_sub(now.since(earlier.seen_at)));
    }
    Ok(())
}

/// For how long something of this process may follow if it is stopped now.
fn outlives(engines: &Engines, lease: Duration) -> Duration {
    let mut engines = engines.iter().into_iter();
    if engines.any(|(_, engine)| engine.engine().acts_by_request()) {
        lease + Permits::LANDS_WITHIN
    } else {
        lease
    }
}

async fn report(
    context: &Context,
    engines: &Engines,
    permits: &Permits,
    worker: &str,
    outlives: Duration,
) -> Result<KnownMode, HeartbeatError> {
    let _one_at_a_time = permits.heartbeat.lock().await;
    let actor = Actor::new(format!("replica:{worker}"));
    let activity = permits.activity();
    let mut read = Marks::read(engines, permits.is_raise_due(activity)).await;
    permits.read(&context.stores).await?;
    let replica_report = ReplicaReport {
        worker: worker.to_owned(),
        outlives,
        acknowledged: permits.acknowledged().unwrap_or(Revision(0)),
    };
    let mut is_raised = false;
    let commit = loop {
        let mut decided = None;
        let mut is_recorded = true;
        let mut rule = |locked: &LockedControl| {
            let commit = control::heartbeat(locked, &read.marks, replica_report.clone(), &actor);
            decided = Some(commit.clone());
            is_recorded = commit.claim_floor.is_none() || read.gave_up || is_raised;
            Ok(is_recorded.then_some(commit))
        };
        context.stores.operations.control_decide(&mut rule).await?;
        // A decision that was made called the rule at least once.
        let Some(commit) = decided else { return Ok(permits.read(&context.stores).await?) };
        if is_recorded {
            break commit;
        }
        is_raised = true;
        read.raise_above_a_restore(commit.control.heartbeat).await;
    };
    let heartbeat = commit.control.heartbeat;
    let mut target = permits.mark_target(activity, heartbeat);
    if commit.claim_floor.is_some() {
        tracing::error!(
            heartbeat,
            "the database was restored to an earlier state: only observing until `slipway resume`"
        );
        // Before this comparison allows any engine to act.
        permits.read(&context.stores).await?;
        target = heartbeat;
    }
    if commit.wake_all {
        context.wakes.wake();
    }
    read.compared(target).await;
    match read.problem.take() {
        Some(error) => Err(error.into()),
        None => Ok(KnownMode::from(&commit.control)),
    }
}

/// The high-water marks of one heartbeat.
struct Marks<'a> {
    engines: &'a Engines,
    served: Vec<(MarkKey, Arc<dyn Substrate>)>,
    marks: BTreeMap<MarkKey, Mark>,
    /// The first problem with one of them.
    problem: Option<SubstrateError>,
    /// No mark could be raised above a restore, which is then recorded as it is.
    gave_up: bool,
}

impl<'a> Marks<'a> {
    async fn read(engines: &'a Engines, fresh: bool) -> Self {
        // An engine added meanwhile: the next heartbeat reads its mark.
        let served: Vec<_> = engines
            .iter()
            .into_iter()
            .map(|(partition, engine)| ((partition, engine.engine()), engine))
            .collect();
        let found =
            join_all(served.iter().map(|(_, engine)| engine.high_water_mark_read(fresh))).await;
        let mut read =
            Self { engines, marks: BTreeMap::new(), problem: None, gave_up: false, served };
        let keys: Vec<_> = read.served.iter().map(|(key, _)| *key).collect();
        for (key, found) in keys.into_iter().zip(found) {
            let mark = match found {
                Ok(HighWaterMark { value, fresh: true }) => Mark::Read(value),
                Ok(HighWaterMark { value, fresh: false }) => Mark::Known(value),
                Err(error) => {
                    read.failed(key, error);
                    Mark::Unread
                }
            };
            read.marks.insert(key, mark);
        }
        read
    }

    fn failed(&mut self, (partition, _): MarkKey, error: SubstrateError) {
        let named = named(self.engines, partition, error);
        self.problem.get_or_insert(named);
    }

    /// Those that were read for this heartbeat.
    fn fresh(&self) -> Vec<(MarkKey, Arc<dyn Substrate>)> {
        let fresh = |key: &MarkKey| matches!(self.marks.get(key), Some(Mark::Read(_)));
        self.served.iter().filter(|(key, _)| fresh(key)).cloned().collect()
    }

    /// Raises them concurrently, and does not stop at an error: an unreachable
    /// cluster must not keep the marks of the others low. Returns which it raised.
    async fn raise(&mut self, counter: i64) -> Vec<MarkKey> {
        let fresh = self.fresh();
        let raised =
            join_all(fresh.iter().map(|(_, engine)| engine.high_water_mark_write(counter))).await;
        let mut done = Vec::new();
        for ((key, _), raised) in fresh.into_iter().zip(raised) {
            match raised {
                Ok(()) => done.push(key),
                Err(error) => self.failed(key, error),
            }
        }
        done
    }

    /// A mark proved a restore that is not recorded yet.
    async fn raise_above_a_restore(&mut self, counter: i64) {
        let raised = self.raise(counter).await;
        self.gave_up = raised.is_empty();
        for key in raised {
            self.marks.insert(key, Mark::Read(Some(counter)));
        }
    }

    /// The comparison is committed.
    async fn compared(&mut self, target: i64) {
        for (_, engine) in self.fresh() {
            engine.high_water_mark_compared().await;
        }
        self.raise(target).await;
    }
}

/// Adds the name of the cluster to the error.
fn named(engines: &Engines, partition: Partition, error: SubstrateError) -> SubstrateError {
    match (engines.cluster(partition), error) {
        (Some(cluster), SubstrateError::Failed(problem)) => {
            SubstrateError::Failed(format!("cluster {cluster}: {problem}"))
        }
        (Some(cluster), SubstrateError::Unanswered(problem)) => {
            SubstrateError::Unanswered(format!("cluster {cluster}: {problem}"))
        }
        (_, error) => error,
    }
}

/// Why a heartbeat failed in part or as a whole.
#[derive(Debug, thiserror::Error)]
pub enum HeartbeatError {
    #[error(transparent)]
    Store(#[from] crate::ports::store::Error),
    #[error("the high-water mark: {0}")]
    HighWaterMark(#[from] crate::ports::substrate::Error),
}

/// The mode as a caller without a key may see it: without who and why.
pub fn summary(mode: &Mode) -> String {
    match mode {
        Mode::Acting => "acting".to_owned(),
        Mode::Frozen(freeze) => format!("frozen until {}", freeze.until),
        Mode::Observing(observing) => format!("only observing since {}", observing.since),
    }
}
