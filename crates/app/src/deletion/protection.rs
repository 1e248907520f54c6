//! Protecting things from deletion.

use std::time::Duration;

use slipway_core::access::audit::Actor;
use slipway_core::commit::Commit;
use slipway_core::deletion::protection::{self, Protection, ProtectionSnapshot};
use slipway_core::error::Refusal;
use slipway_core::subject::Subject;
use slipway_core::text::Reason;
use uuid::Uuid;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::ports::Listed;
use crate::ports::store::Page;
use crate::{Context, Error};

/// What to do about the protection of a thing.
#[derive(Debug, Clone, Copy)]
pub enum Change {
    Set,
    Remove,
    /// For this long.
    Lift(Duration),
}

/// Answers the protection as it is afterwards.
pub async fn change(
    context: &Context,
    caller: &Caller,
    subject: Subject,
    change: Change,
    reason: &str,
) -> Result<Option<Protection>, Error> {
    let operation = match change {
        Change::Set => Operation::ProtectionSet,
        Change::Remove => Operation::ProtectionRemove,
        Change::Lift(_) => Operation::ProtectionLift,
    };
    let actor = authorise(caller, operation)?;
    let reason = Reason::parse(reason).map_err(Refusal::from)?;
    let mut after = None;
    let mut rule = |snapshot: &ProtectionSnapshot| {
        in_reach(snapshot, caller)?;
        let commit = decide(snapshot, change, &reason, &actor)?;
        after = protection::after(snapshot, &commit);
        Ok(commit)
    };
    context.stores.deletion.protection_decide(subject, &mut rule).await?;
    Ok(after)
}

/// What is out of reach is as unknown as what does not exist.
fn in_reach(snapshot: &ProtectionSnapshot, caller: &Caller) -> Result<(), Refusal> {
    let own = caller.project.is_none_or(|own| snapshot.project_id == Some(own));
    own.then_some(()).ok_or_else(|| {
        let kind = snapshot.subject.kind;
        let message = format!("there is no {kind} `{}`; check its name or id", snapshot.subject.id);
        Refusal::new(slipway_core::ErrorKind::ResourceNotFound, message)
    })
}

fn decide(
    snapshot: &ProtectionSnapshot,
    change: Change,
    reason: &Reason,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    match change {
        Change::Set => protection::protect(snapshot, reason, actor),
        Change::Remove => Ok(protection::unprotect(snapshot, reason, actor)),
        Change::Lift(duration) => protection::lift(snapshot, duration, reason, actor),
    }
}

/// The protections that the caller reaches.
pub async fn list(
    context: &Context,
    caller: &Caller,
    page: Page<Uuid>,
) -> Result<Listed<Protection, Uuid>, Error> {
    authorise(caller, Operation::ProtectionRead)?;
    let items = context.stores.deletion.protection_list(caller.project, page).await?;
    Ok(Listed::complete(items, page.limit, |last| last.subject.id))
}
