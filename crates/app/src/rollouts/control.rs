//! Pausing, resuming and ending roll-outs.

use slipway_core::access::audit::Actor;
use slipway_core::commit::Commit;
use slipway_core::error::Refusal;
use slipway_core::ids::RolloutId;
use slipway_core::rollouts::record::{Progress, Rollout};
use slipway_core::rollouts::rules::{self, RolloutSnapshot};
use slipway_core::text::Reason;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::kind::NO_REASON;
use crate::rollouts::read::{self, in_reach};
use crate::rollouts::run::wake;
use crate::{Context, Error};

/// No member is changed any more until it is resumed. Those in work come to their end.
pub async fn pause(
    context: &Context,
    caller: &Caller,
    id: RolloutId,
    reason: Option<&str>,
) -> Result<(Rollout, Progress), Error> {
    let reason = Reason::parse(reason.unwrap_or(NO_REASON)).map_err(Refusal::from)?;
    let rule = |snapshot: &RolloutSnapshot, actor: &Actor| rules::pause(snapshot, &reason, actor);
    decide(context, caller, Operation::RolloutPause, id, rule).await
}

pub async fn resume(
    context: &Context,
    caller: &Caller,
    id: RolloutId,
    skip_failed: bool,
) -> Result<(Rollout, Progress), Error> {
    let rule =
        |snapshot: &RolloutSnapshot, actor: &Actor| rules::resume(snapshot, skip_failed, actor);
    decide(context, caller, Operation::RolloutResume, id, rule).await
}

/// Ends it; with `roll_back` every member that was changed gets back what it had.
pub async fn abort(
    context: &Context,
    caller: &Caller,
    id: RolloutId,
    roll_back: bool,
    reason: Option<&str>,
) -> Result<(Rollout, Progress), Error> {
    let reason = Reason::parse(reason.unwrap_or(NO_REASON)).map_err(Refusal::from)?;
    let rule = |snapshot: &RolloutSnapshot, actor: &Actor| {
        rules::abort(snapshot, roll_back, &reason, actor)
    };
    let operation = if roll_back { Operation::RolloutRollBack } else { Operation::RolloutAbort };
    decide(context, caller, operation, id, rule).await
}

async fn decide(
    context: &Context,
    caller: &Caller,
    operation: Operation,
    id: RolloutId,
    rule: impl Fn(&RolloutSnapshot, &Actor) -> Result<Commit, Refusal> + Send + Sync,
) -> Result<(Rollout, Progress), Error> {
    let actor = authorise(caller, operation)?;
    in_reach(context, caller, id).await?;
    let mut rule = |snapshot: &RolloutSnapshot| rule(snapshot, &actor);
    context.stores.rollouts.rollout_decide(id, &mut rule).await?;
    wake(context).await;
    read::rollout(context, caller, id).await
}
