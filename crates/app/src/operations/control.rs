//! The mode of the installation: freeze and unfreeze, observe and resume, the
//! list of withheld actions, and the heartbeat by which replicas show that they
//! are alive and recognise a restored database.

use std::time::Duration;

use futures::future::join_all;
use slipway_core::Refusal;
use slipway_core::access::audit::Actor;
use slipway_core::ids::{Partition, ProvisionedResourceId, Revision};
use slipway_core::operations::control::{self, Control, ControlCommit, Marks, Mode, ReplicaReport};
use slipway_core::text::Reason;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::broker::converge::Engines;
use crate::operations::port::{Replica, WithheldAction};
use crate::permits::{KnownMode, Permits};
use crate::ports::store::Page;
use crate::ports::substrate::Error as SubstrateError;
use crate::{Context, Error};

/// How often a replica sends a heartbeat; see [`heartbeat`].
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);

/// The mode, and who obeys it.
#[derive(Debug, Clone)]
pub struct Status {
    pub control: Control,
    pub replicas: Vec<ReplicaStatus>,
    /// No action that began under an earlier mode is still running anywhere.
    pub settled: bool,
}

/// A replica and its relation to the mode.
#[derive(Debug, Clone)]
pub struct ReplicaStatus {
    pub replica: Replica,
    /// All its actions obey the current mode.
    pub obeys: bool,
    /// No heartbeat for longer than its lease: all its actions are over, and it
    /// reads the mode again before it does anything else.
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
            lapsed: control.now.since(replica.seen_at) > replica.lease.max(HEARTBEAT_INTERVAL * 3),
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
    context.stores.operations.control_decide(&mut |control| rule(control).map(Some)).await?;
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
    let mut rule = |control: &Control| Ok(control::observe(control, reason, actor));
    Ok(context.stores.operations.control_decide(&mut rule).await?)
}

/// Records the address at which nodes reach this installation. Returns the
/// previous one if it was different.
pub async fn locate(
    context: &Context,
    public_url: &str,
    actor: &Actor,
) -> Result<Option<String>, Error> {
    let mut before = None;
    context
        .stores
        .operations
        .control_decide(&mut |control| {
            let located = control::locate(control, public_url, actor);
            before = located.as_ref().and(control.public_url.clone());
            Ok(located)
        })
        .await?;
    Ok(before)
}

/// One heartbeat of this replica.
///
/// *Expected flow:* read the high-water mark of every engine → commit an
/// increment of the counter and this replica's acknowledgement → raise every
/// mark, if an action began or ended since the last raise.
///
/// *Guarantees:*
/// * A mark that is ahead of the database proves a restore: the counter is
///   committed before a mark is raised to it, and a mark is read before the
///   counter. The same commit then enters observe-only mode.
/// * A restore to a backup from before an action is recognised. The backup has
///   the counter of its time, the counter has grown since, and the first
///   heartbeat after the action began or ended raises the marks above it. The
///   marks of all clusters rise after an action on one of them, so that one
///   readable mark is enough.
/// * A restore to a backup from after the last action is not recognised by a
///   mark, and need not be: nothing outside is newer than that database. A node
///   that enrolled since is newer; it enrols again by itself (`docs/restore.md`).
/// * The counter never passes a mark that this process has not read, and no
///   engine acts on a cluster before this function has compared its mark.
/// * A crash anywhere leaves marks that are too low. They prove nothing, and the
///   first heartbeat of the next process raises them, since the crashed one may
///   have acted.
///
/// *Caveats:* a replica that dies between its last action and its next heartbeat,
/// two seconds later, leaves the marks below that action until a replica starts
/// or acts. A mark that cannot be read or raised is an error of this heartbeat,
/// and while that lasts a restore may go unrecognised; the heartbeat is committed
/// all the same, so that replicas keep acknowledging the mode.
pub async fn heartbeat(
    context: &Context,
    engines: &Engines,
    permits: &Permits,
    worker: &str,
    lease: Duration,
) -> Result<KnownMode, HeartbeatError> {
    let actor = Actor::new(format!("replica:{worker}"));
    // An engine added meanwhile: the next heartbeat reads its mark before raising it.
    let engines_now = engines.iter();
    let mut problem = None;
    let mut marks = Marks { highest: None, all_read: true };
    let read = join_all(engines_now.iter().map(|(_, engine)| engine.high_water_mark_read())).await;
    for ((partition, engine), found) in engines_now.iter().zip(read) {
        match found {
            Ok(found) => {
                marks.highest = marks.highest.max(found);
                permits.mark_read(*partition, engine.engine());
            }
            Err(error) => problem = Some(named(engines, *partition, error)),
        }
        marks.all_read &= permits.was_mark_read(*partition, engine.engine());
    }
    permits.read(&context.stores).await?;
    let activity = permits.activity();
    let replica_report = ReplicaReport {
        worker: worker.to_owned(),
        lease,
        acknowledged: permits.acknowledged().unwrap_or(Revision(0)),
    };
    let mut after = None;
    context
        .stores
        .operations
        .control_decide(&mut |control| {
            let commit = control::heartbeat(control, marks, replica_report.clone(), &actor);
            after = Some(commit.clone());
            Ok(Some(commit))
        })
        .await?;
    // A decision that was written called the rule at least once.
    let Some(commit) = after else { return Ok(permits.read(&context.stores).await?) };
    let heartbeat = commit.control.heartbeat;
    let mut target = permits.mark_target(activity, heartbeat);
    if commit.claim_floor.is_some() {
        tracing::error!(
            heartbeat,
            "the database was restored to an earlier state: only observing until `slipway resume`"
        );
        // Before this comparison allows any engine to act.
        permits.read(&context.stores).await?;
        // The same backup may be restored again: the next floor must be above this.
        target = heartbeat;
    }
    if commit.wake_all {
        context.wakes.wake();
    }
    // Raise all marks concurrently, and do not stop at an error: an unreachable
    // cluster must not keep the marks of the others low.
    let raised =
        join_all(engines_now.iter().map(|(_, engine)| engine.high_water_mark_write(target))).await;
    for ((partition, _), raised) in engines_now.iter().zip(raised) {
        if let Err(error) = raised {
            problem.get_or_insert_with(|| named(engines, *partition, error));
        }
    }
    match problem {
        Some(error) => Err(error.into()),
        None => Ok(KnownMode::from(&commit.control)),
    }
}

/// Adds the name of the cluster to the error.
fn named(engines: &Engines, partition: Partition, error: SubstrateError) -> SubstrateError {
    match (engines.cluster(partition), error) {
        (Some(cluster), SubstrateError::Failed(problem)) => {
            SubstrateError::Failed(format!("cluster {cluster}: {problem}"))
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
