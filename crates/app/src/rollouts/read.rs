//! Reads roll-outs.

use slipway_core::error::ErrorKind;
use slipway_core::ids::RolloutId;
use slipway_core::rollouts::record::{Member, MemberState, Progress, Rollout};

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::reach::not_found;
use crate::ports::Listed;
use crate::ports::store::Page;
use crate::rollouts::port::RolloutFilter;
use crate::{Context, Error};

/// One roll-out, and how far it is.
pub async fn rollout(
    context: &Context,
    caller: &Caller,
    id: RolloutId,
) -> Result<(Rollout, Progress), Error> {
    authorise(caller, Operation::RolloutRead)?;
    let rollout = in_reach(context, caller, id).await?;
    let mut progress = context.stores.rollouts.rollout_progress(&[id]).await?;
    Ok((rollout, progress.remove(&id).unwrap_or_default()))
}

pub async fn rollouts(
    context: &Context,
    caller: &Caller,
    filter: RolloutFilter,
    page: Page<RolloutId>,
) -> Result<Listed<(Rollout, Progress)>, Error> {
    authorise(caller, Operation::RolloutRead)?;
    let filter = RolloutFilter { own: caller.project, ..filter };
    let listed = context.stores.rollouts.rollout_list(&filter, page).await?;
    let ids: Vec<_> = listed.iter().map(|rollout| rollout.id).collect();
    let progress = context.stores.rollouts.rollout_progress(&ids).await?;
    Ok(listed.map(|rollout| {
        let progress = progress.get(&rollout.id).cloned().unwrap_or_default();
        (rollout.clone(), progress)
    }))
}

pub async fn members(
    context: &Context,
    caller: &Caller,
    id: RolloutId,
    state: Option<MemberState>,
    page: Page<i32>,
) -> Result<Vec<Member>, Error> {
    authorise(caller, Operation::RolloutRead)?;
    in_reach(context, caller, id).await?;
    Ok(context.stores.rollouts.rollout_members(id, state, page).await?)
}

/// A caller of one project sees the roll-outs that concern no other one.
pub(super) async fn in_reach(
    context: &Context,
    caller: &Caller,
    id: RolloutId,
) -> Result<Rollout, Error> {
    let found = context.stores.rollouts.rollout_fetch(id).await?;
    let reached = |rollout: &Rollout| {
        caller.project.is_none_or(|own| rollout.project_id.is_some_and(|project| project == own))
    };
    let missing = || not_found(ErrorKind::RolloutNotFound, "roll-out", id);
    found.filter(reached).ok_or_else(missing)
}
