//! Deployment objects: submit, read, withdraw.

use slipway_core::access::api_key::Principal;
use slipway_core::access::idempotency::Request;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::fleet::object::{self, DeploymentObject, ObjectSnapshot, Submitted};
use slipway_core::fleet::offer::Candidate;
use slipway_core::ids::{DeploymentObjectId, StackId};

use super::stacks;
use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::idempotency::{bind, record};
use crate::access::reach::not_found;
use crate::ports::store::Page;
use crate::rollouts::run;
use crate::{Context, Error};

/// Content, or a marker, which has none.
pub async fn submit(
    context: &Context,
    caller: &Caller,
    stack: StackId,
    (content, is_marker): (&str, bool),
    request: Option<Request>,
) -> Result<DeploymentObjectId, Error> {
    authorise(caller, Operation::FleetObjectSubmit)?;
    let submitted = Submitted::parse(content, is_marker)?;
    submit_parsed(context, caller, stack, &submitted, request).await
}

pub(super) async fn submit_parsed(
    context: &Context,
    caller: &Caller,
    stack: StackId,
    submitted: &Submitted,
    request: Option<Request>,
) -> Result<DeploymentObjectId, Error> {
    let actor = authorise(caller, Operation::FleetObjectSubmit)?;
    stacks::fetch(context, caller, stack, false).await?;
    let id = DeploymentObjectId::new(context.entropy.uuid());
    let record = record(context, request, id.into());
    let mut rule = |snapshot: &ObjectSnapshot| {
        let commit = object::submit(snapshot, id, submitted, &actor)?;
        Ok(bind(commit, record.as_ref()))
    };
    context.stores.fleet.decide_object(stack, None, &mut rule).await?;
    run::wake(context).await;
    context.wakes.wake_offers();
    Ok(id)
}

/// Submits the content of an older object of the stack again, as a new object: with a strategy
/// it is rolled out like any other.
pub async fn roll_back(
    context: &Context,
    caller: &Caller,
    stack: StackId,
    sequence: i64,
) -> Result<DeploymentObjectId, Error> {
    let actor = authorise(caller, Operation::FleetObjectSubmit)?;
    stacks::fetch(context, caller, stack, false).await?;
    let page = Page { after: Some(sequence.saturating_sub(1)), limit: 1 };
    let found = context.stores.fleet.object_list(stack, page).await?;
    let Some(original) = found.into_iter().find(|one| one.sequence == sequence) else {
        let message = format!(
            "the stack has no object {sequence}, or it is not kept any more; the list of its objects has those that are"
        );
        let refusal = Refusal::new(ErrorKind::DeploymentObjectNotFound, message);
        return Err(refusal.at("sequence_id").into());
    };
    let id = DeploymentObjectId::new(context.entropy.uuid());
    let mut rule =
        |snapshot: &ObjectSnapshot| object::submit(snapshot, id, &Submitted::Again, &actor);
    context.stores.fleet.decide_object(stack, Some(original.id), &mut rule).await?;
    run::wake(context).await;
    context.wakes.wake_offers();
    Ok(id)
}

/// Withdraws one object; the newest content that remains follows it.
pub async fn withdraw(
    context: &Context,
    caller: &Caller,
    id: DeploymentObjectId,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::FleetObjectWithdraw)?;
    let found = fetch(context, caller, id).await?;
    let successor = DeploymentObjectId::new(context.entropy.uuid());
    let mut rule = |snapshot: &ObjectSnapshot| object::withdraw(snapshot, successor, &actor);
    context.stores.fleet.decide_object(found.stack_id, Some(id), &mut rule).await?;
    context.wakes.wake_offers();
    Ok(())
}

/// For people and the owner of its stack, and for an agent that is connected with the stack or
/// holds it.
pub async fn fetch(
    context: &Context,
    caller: &Caller,
    id: DeploymentObjectId,
) -> Result<DeploymentObject, Error> {
    authorise(caller, Operation::FleetObjectRead)?;
    let missing = || not_found(ErrorKind::DeploymentObjectNotFound, DeploymentObjectId::KIND, id);
    let found = context.stores.fleet.object_fetch(id).await?.ok_or_else(missing)?;
    if let Principal::Agent(agent) = caller.principal {
        let offer = context.stores.fleet.offer_read(agent).await?;
        let own = found.agent_id.is_none_or(|only| only == agent);
        let known = |one: &Candidate| one.stack_id == found.stack_id && one.is_known();
        return if own && offer.candidates.iter().any(known) { Ok(found) } else { Err(missing()) };
    }
    match stacks::fetch(context, caller, found.stack_id, true).await {
        Ok(_) => Ok(found),
        Err(error) if error.kind() == ErrorKind::StackNotFound => Err(missing()),
        Err(error) => Err(error),
    }
}

/// In the order of their numbers.
pub async fn list(
    context: &Context,
    caller: &Caller,
    stack: StackId,
    page: Page<i64>,
) -> Result<Vec<DeploymentObject>, Error> {
    authorise(caller, Operation::FleetObjectRead)?;
    stacks::fetch(context, caller, stack, false).await?;
    Ok(context.stores.fleet.object_list(stack, page).await?)
}
