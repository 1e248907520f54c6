//! Asking for deletions, and cancelling them.

use std::time::Duration;

use slipway_core::deletion::cancel;
use slipway_core::deletion::door::{Ask, Braked, DoorInput, Doored};
use slipway_core::deletion::request::{self, Deletable, DeletionSnapshot};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{DeletionId, PlanId};
use slipway_core::precondition::Expected;
use slipway_core::subject::SubjectKind;
use slipway_core::text::Reason;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::port::Owned;
use crate::access::reach::{not_found, reach};
use crate::deletion::plan;
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
    /// Whether agents let go of what is deleted: of a stack or a generator.
    pub keep: bool,
    /// An admin lets it pass the brake and the approval, and says why.
    pub break_glass: bool,
    /// What it has to take away, and nothing else.
    pub plan: Option<PlanId>,
}

impl DeleteOptions<'_> {
    pub(crate) fn ask(&self, context: &Context, caller: &Caller) -> Result<Ask, Refusal> {
        if self.break_glass {
            authorise(caller, Operation::DeletionBreakGlass)?;
            if self.reason.is_none() {
                let problem =
                    "is required with break_glass: say why neither brake nor approval counts";
                return Err(Refusal::invalid("reason", problem));
            }
        }
        let ask = Ask {
            deletion_id: DeletionId::new(context.entropy.uuid()),
            reason: Reason::parse(self.reason.unwrap_or(NO_REASON))?,
            expected: self.expected,
            grace: self.grace,
            cascade: self.cascade,
            keep: self.keep,
            break_glass: self.break_glass,
            plan: self.plan,
        };
        ask.check()?;
        Ok(ask)
    }

    /// The same for a caller that may name a plan.
    pub(crate) async fn ask_in_reach(
        &self,
        context: &Context,
        caller: &Caller,
    ) -> Result<Ask, Error> {
        if let Some(plan) = self.plan {
            plan::in_reach(context, caller, plan).await?;
        }
        Ok(self.ask(context, caller)?)
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
    let ask = options.ask_in_reach(context, caller).await?;
    let (mut deletion_id, mut refused) = (ask.deletion_id, None);
    let mut rule = |snapshot: &Doored<_>| {
        let requested = request::request::<K>(&snapshot.of, &snapshot.door, &ask, &actor)?;
        (deletion_id, refused) = (requested.deletion_id, requested.refused);
        Ok(requested.commit)
    };
    let store = context.stores.kind::<K>();
    store.decide_deletion(key, subject::<K>, input(context, caller, &ask), &mut rule).await?;
    if let Some(refused) = refused {
        return Err(refused.into());
    }
    wake(context).await;
    Ok(deletion_id)
}

/// The caller at the door. A part of this process has no key and no brake.
pub(crate) fn input(context: &Context, caller: &Caller, ask: &Ask) -> DoorInput {
    DoorInput { caller: braked(context, caller), ..ask.input(context.settings.deletion) }
}

pub(crate) fn braked(context: &Context, caller: &Caller) -> Option<Braked> {
    let limits = context.settings.brake;
    caller.key_id.map(|key| Braked { key, name: caller.name.clone(), limits })
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
    context.wakes.wake_offers();
    context.wakes.wake_placement();
    context.wakes.deletions.notify_one();
    context.wakes.tenant_tasks.notify_one();
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
    let mut rule = |snapshot: &DeletionSnapshot| {
        if snapshot.deletion.target.kind == SubjectKind::Workspace {
            authorise(caller, Operation::WorkspaceCancel)?;
        }
        cancel::cancel(snapshot, &reason, &actor)
    };
    context.stores.deletion.deletion_decide(id, &mut rule).await?;
    wake(context).await;
    Ok(())
}
