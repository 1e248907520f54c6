//! Registrations of agents with generators, and targets.

use slipway_core::error::ErrorKind;
use slipway_core::fleet::links::{
    self, Registration, RegistrationSnapshot, Target, TargetSnapshot,
};
use slipway_core::ids::{AgentId, GeneratorId, StackId};
use uuid::Uuid;

use super::{agents, generators, stacks};
use crate::access::authorise::{Caller, Operation, authorise};
use crate::ports::store::Page;
use crate::{Context, Error};

/// An agent registers itself; an admin registers any.
pub async fn register(
    context: &Context,
    caller: &Caller,
    agent: AgentId,
    generator: GeneratorId,
) -> Result<Uuid, Error> {
    let actor = authorise(caller, Operation::FleetAgentRegister)?;
    agents::fetch(context, caller, agent, false).await?;
    let id = context.entropy.uuid();
    let mut rule = |snapshot: &RegistrationSnapshot| links::register(snapshot, id, &actor);
    context.stores.fleet.decide_registration(agent, generator, &mut rule).await?;
    context.wakes.wake_offers();
    Ok(id)
}

/// The agent is told to remove what it holds of the generator.
pub async fn unregister(
    context: &Context,
    caller: &Caller,
    agent: AgentId,
    generator: GeneratorId,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::FleetAgentRegister)?;
    agents::fetch(context, caller, agent, false).await?;
    let mut rule = |snapshot: &RegistrationSnapshot| links::unregister(snapshot, &actor);
    context.stores.fleet.decide_registration(agent, generator, &mut rule).await?;
    context.wakes.wake_offers();
    Ok(())
}

pub async fn registrations_of_agent(
    context: &Context,
    caller: &Caller,
    agent: AgentId,
    page: Page<Uuid>,
) -> Result<Vec<Registration>, Error> {
    agents::fetch(context, caller, agent, false).await?;
    Ok(context.stores.fleet.registration_list(Some(agent), None, page).await?)
}

pub async fn registrations_of_generator(
    context: &Context,
    caller: &Caller,
    generator: GeneratorId,
    page: Page<Uuid>,
) -> Result<Vec<Registration>, Error> {
    generators::fetch(context, caller, generator, false).await?;
    Ok(context.stores.fleet.registration_list(None, Some(generator), page).await?)
}

/// Somebody outside the project of an agent learns nothing of it.
fn in_project<'a>(
    caller: &'a Caller,
    agent: AgentId,
) -> impl Fn(&TargetSnapshot) -> Result<(), slipway_core::Refusal> + 'a {
    move |snapshot| match &snapshot.agent {
        Some(found) if !caller.reaches(found.project_id) => {
            let kind = ErrorKind::AgentNotFound;
            Err(crate::kind::missing(kind, AgentId::KIND, &agent.to_string()))
        }
        _ => Ok(()),
    }
}

/// A generator targets its own stacks.
pub async fn target(
    context: &Context,
    caller: &Caller,
    agent: AgentId,
    stack: StackId,
) -> Result<Uuid, Error> {
    let actor = authorise(caller, Operation::FleetAgentTarget)?;
    stacks::fetch(context, caller, stack, false).await?;
    let id = context.entropy.uuid();
    let reached = in_project(caller, agent);
    let mut rule = |snapshot: &TargetSnapshot| {
        reached(snapshot)?;
        links::target(snapshot, id, &actor)
    };
    context.stores.fleet.decide_target(agent, stack, &mut rule).await?;
    context.wakes.wake_offers();
    Ok(id)
}

/// Also of a deleted stack.
pub async fn untarget(
    context: &Context,
    caller: &Caller,
    agent: AgentId,
    stack: StackId,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::FleetAgentTarget)?;
    stacks::fetch(context, caller, stack, true).await?;
    let reached = in_project(caller, agent);
    let mut rule = |snapshot: &TargetSnapshot| {
        reached(snapshot)?;
        links::untarget(snapshot, &actor)
    };
    context.stores.fleet.decide_target(agent, stack, &mut rule).await?;
    context.wakes.wake_offers();
    Ok(())
}

pub async fn targets(
    context: &Context,
    caller: &Caller,
    agent: AgentId,
    page: Page<Uuid>,
) -> Result<Vec<Target>, Error> {
    agents::fetch(context, caller, agent, false).await?;
    Ok(context.stores.fleet.target_list(agent, page).await?)
}
