//! The mode of the installation: freezing and lifting, observing and resuming,
//! the plan of what is withheld, and the heartbeat by which replicas say that they
//! live and a restored database is recognised.

use std::time::Duration;

use futures::future::join_all;
use slipway_core::Refusal;
use slipway_core::audit::Actor;
use slipway_core::ids::{Partition, ProvisionedResourceId, Revision};
use slipway_core::rules::control::{self, Control, Marks, Mode, ReplicaReport};
use slipway_core::text::Reason;

use crate::authorise::{Caller, Operation, authorise};
use crate::permits::{KnownMode, Permits};
use crate::ports::operations::{Replica, WithheldAction};
use crate::ports::store::Page;
use crate::ports::substrate::Error as SubstrateError;
use crate::usecases::converge::Engines;
use crate::{Context, Error};

/// How often a replica heartbeats; see [`heartbeat`].
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);

/// The mode, and who obeys it.
#[derive(Debug, Clone)]
pub struct Status {
    pub control: Control,
    pub replicas: Vec<ReplicaStatus>,
    /// No action that began under an earlier mode is under way anywhere.
    pub settled: bool,
}

/// A replica and what it means for the mode.
#[derive(Debug, Clone)]
pub struct ReplicaStatus {
    pub replica: Replica,
    /// Everything it does obeys the mode that is in force.
    pub obeys: bool,
    /// It has not been heard of for longer than its lease: whatever it did is
    /// over, and it reads the mode anew before it does anything else.
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
    let reason = Reason::parse(reason).map_err(Refusal::from)?;
    context
        .stores
        .operations
        .control_decide(&mut |control| control::freeze(control, length, &reason, &actor).map(Some))
        .await?;
    context.wakes.wake();
    Ok(())
}

pub async fn unfreeze(context: &Context, caller: &Caller, reason: &str) -> Result<(), Error> {
    let actor = authorise(caller, Operation::ControlUnfreeze)?;
    let reason = Reason::parse(reason).map_err(Refusal::from)?;
    context
        .stores
        .operations
        .control_decide(&mut |control| control::unfreeze(control, &reason, &actor).map(Some))
        .await?;
    context.wakes.wake();
    Ok(())
}

pub async fn resume(context: &Context, caller: &Caller, reason: &str) -> Result<(), Error> {
    let actor = authorise(caller, Operation::ControlResume)?;
    let reason = Reason::parse(reason).map_err(Refusal::from)?;
    context
        .stores
        .operations
        .control_decide(&mut |control| control::resume(control, &reason, &actor).map(Some))
        .await?;
    context.wakes.wake();
    Ok(())
}

/// One page of what is withheld, and how much was not looked at yet.
pub async fn withheld(
    context: &Context,
    caller: &Caller,
    page: Page<ProvisionedResourceId>,
) -> Result<(Vec<WithheldAction>, u64), Error> {
    authorise(caller, Operation::WithheldRead)?;
    let lines = context.stores.operations.withheld_list(page).await?;
    Ok((lines, context.stores.operations.withheld_unchecked().await?))
}

/// Starts in observe-only mode, on the word of whoever started this process.
pub async fn observe(context: &Context, reason: &str, actor: &Actor) -> Result<(), Error> {
    let mut rule = |control: &Control| Ok(control::observe(control, reason, actor));
    Ok(context.stores.operations.control_decide(&mut rule).await?)
}

/// Records how nodes reach this installation. Answers the address before, if
/// that was another one.
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
/// *Expected flow:* read the high-water mark of every engine → commit one more
/// heartbeat and this replica's acknowledgement → raise every mark, if an action
/// began or ended since the last raise.
///
/// *Guarantees:*
/// * A mark that is ahead of the database proves a restore: the counter is
///   committed before a mark is raised to it, and a mark is read before the
///   counter. The same commit then ends all acting.
/// * A restore to a backup from before an action is noticed. The backup has the
///   counter of its time, the counter has grown since, and the first heartbeat after
///   the action began or ended raises the marks above it. The marks of all
///   clusters rise after an action on one of them, so that one that can be read
///   is enough.
/// * A restore to a backup from after the last action is not noticed by a mark,
///   and need not be: nothing outside is newer than that database. A node that
///   enrolled since is newer; it enrols again by itself (`docs/restore.md`).
/// * The counter never passes a mark that was not read in this life, and an
///   engine acts on no cluster before this function compared its mark.
/// * A crash anywhere leaves marks that are behind. They prove nothing, and the
///   first heartbeat of the next life raises them, since its earlier life may have
///   acted.
///
/// *Caveats:* a replica that dies between its last action and its next heartbeat, two
/// seconds later, leaves the marks below that action until a replica starts or
/// acts. A mark that cannot be read or raised is an error of this heartbeat, and
/// while that lasts a restore may go unnoticed; the mode is counted all the same,
/// so that replicas keep acknowledging it.
pub async fn heartbeat(
    context: &Context,
    engines: &Engines,
    permits: &Permits,
    worker: &str,
    lease: Duration,
) -> Result<KnownMode, HeartbeatError> {
    let actor = Actor::new(format!("replica:{worker}"));
    // One that comes meanwhile is read by the next heartbeat before it is raised.
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
    // A rule is asked at least once in a decision that was written.
    let Some(commit) = after else { return Ok(permits.read(&context.stores).await?) };
    let heartbeat = commit.control.heartbeat;
    let mut target = permits.mark_target(activity, heartbeat);
    if commit.claim_floor.is_some() {
        tracing::error!(
            heartbeat,
            "the database was restored to an earlier state: only observing until `slipway resume`"
        );
        // Before an engine may act on the word of this comparison.
        permits.read(&context.stores).await?;
        // The same backup may be restored again: the next floor lies above this.
        target = heartbeat;
    }
    if commit.wake_all {
        context.wakes.wake();
    }
    // Side by side, and every one of them: a cluster that is away leaves the
    // marks of the others as they should be.
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

/// The error with the cluster that it is about.
fn named(engines: &Engines, partition: Partition, error: SubstrateError) -> SubstrateError {
    match (engines.cluster(partition), error) {
        (Some(cluster), SubstrateError::Failed(problem)) => {
            SubstrateError::Failed(format!("cluster {cluster}: {problem}"))
        }
        (_, error) => error,
    }
}

/// Why a heartbeat was not whole.
#[derive(Debug, thiserror::Error)]
pub enum HeartbeatError {
    #[error(transparent)]
    Store(#[from] crate::ports::store::Error),
    #[error("the high-water mark: {0}")]
    HighWaterMark(#[from] crate::ports::substrate::Error),
}

/// What a caller without a key may know of the mode: not who and why.
pub fn summary(mode: &Mode) -> String {
    match mode {
        Mode::Acting => "acting".to_owned(),
        Mode::Frozen(freeze) => format!("frozen until {}", freeze.until),
        Mode::Observing(observing) => format!("only observing since {}", observing.since),
    }
}
