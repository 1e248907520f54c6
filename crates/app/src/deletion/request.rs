//! Asking for deletions, and cancelling them.

use std::time::Duration;

use slipway_core::deletion::cancel;
use slipway_core::deletion::door::{Ask, Doored};
use slipway_core::deletion::request::{self, Deletable};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::DeletionId;
use slipway_core::precondition::Expected;
use slipway_core::text::Reason;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::port::Owned;
use crate::access::reach::{not_found, reach};
use crate::deletion::run::Runner;
use crate::kind::{NO_REASON, StoredKind};
use crate::{Context, Error};

/// A kind that is deleted softly.
pub trait DeletableKind: StoredKind<Snapshot = <Self as Deletable>::Snapshot> + Deletable {
    const OPERATION: Operation;
}

/// What a caller says about a deletion.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeleteOptions<'a> {
    pub reason: Option<&'a str>,
    pub expected: Expected,
    /// How long to wait before anything is touched; the default if not said.
    pub grace: Option<Duration>,
    /// Whether what is in it goes with it.
    pub cascade: bool,
}

impl DeleteOptions<'_> {
    pub(crate) fn ask(&self, context: &Context) -> Result<Ask, Refusal> {
        let ask = Ask {
            deletion_id: DeletionId::new(context.entropy.uuid()),
            reason: Reason::parse(self.reason.unwrap_or(NO_REASON))?,
            expected: self.expected,
            grace: self.grace,
            cascade: self.cascade,
        };
        ask.check()?;
        Ok(ask)
    }
}

/// Deletes something that is a row of ours, or returns the deletion that is under way.
pub async fn delete<K: DeletableKind>(
    context: &Context,
    caller: &Caller,
    key: &<K as StoredKind>::Key,
    options: DeleteOptions<'_>,
) -> Result<DeletionId, Error> {
    let actor = authorise(caller, K::OPERATION)?;
    let ask = options.ask(context)?;
    let mut deletion_id = ask.deletion_id;
    let mut rule = |snapshot: &Doored<_>| {
        let requested = request::request::<K>(&snapshot.of, &snapshot.door, &ask, &actor)?;
        deletion_id = requested.deletion_id;
        Ok(requested.commit)
    };
    let defaults = context.settings.deletion;
    let store = context.stores.kind::<K>();
    store.decide_deletion(key, subject::<K>, defaults, &mut rule).await?;
    wake(context).await;
    Ok(deletion_id)
}

/// What of a snapshot is deleted.
pub(crate) fn subject<K: DeletableKind>(
    snapshot: &<K as StoredKind>::Snapshot,
) -> Option<slipway_core::subject::Subject> {
    K::found(snapshot).0.as_ref().map(|row| row.id().into())
}

/// After a deletion was requested, changed or cancelled: its loop goes on now, in whatever
/// replica. The change is committed, so a failure here is no answer to it: the loop finds it
/// by itself at its next pass.
pub(crate) async fn wake(context: &Context) {
    if let Err(error) = context.stores.operations.task_wake(Runner::TASK).await {
        tracing::warn!(%error, "the loop over deletions was not woken; it comes later by itself");
    }
    wake_loops(context);
}

/// The loops of this process, after something was marked or taken down.
pub(crate) fn wake_loops(context: &Context) {
    context.wakes.wake();
    context.wakes.wake_placement();
    context.wakes.deletions.notify_one();
}

/// Cancels a deletion before its grace ends.
pub async fn cancel(
    context: &Context,
    caller: &Caller,
    id: DeletionId,
    reason: Option<&str>,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::DeletionCancel)?;
    let missing = || not_found(ErrorKind::DeletionNotFound, "deletion", id);
    reach(context, caller, Owned::Deletion(id), missing).await?;
    let reason = Reason::parse(reason.unwrap_or(NO_REASON)).map_err(Refusal::from)?;
    let mut rule = |snapshot: &_| cancel::cancel(snapshot, &reason, &actor);
    context.stores.deletion.deletion_decide(id, &mut rule).await?;
    wake(context).await;
    Ok(())
}
