//! How agents and stacks are doing, for people; and what an agent is to have.

use slipway_core::error::ErrorKind;
use slipway_core::fleet::overview::{AgentOverview, ObjectHealthCount};
use slipway_core::fleet::report::Report;
use slipway_core::fleet::stack::Stack;
use slipway_core::ids::{AgentId, ProjectId, StackId};
use uuid::Uuid;

use super::{agents, stacks};
use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::reach::not_found;
use crate::{Context, Error};

/// Every agent that the caller reaches.
pub async fn list(
    context: &Context,
    caller: &Caller,
    project: Option<ProjectId>,
) -> Result<Vec<AgentOverview>, Error> {
    authorise(caller, Operation::FleetOverview)?;
    Ok(context.stores.fleet.agent_overview(caller.project.or(project), None).await?)
}

pub async fn fetch(
    context: &Context,
    caller: &Caller,
    id: AgentId,
) -> Result<AgentOverview, Error> {
    let agent = agents::fetch(context, caller, id, false).await?;
    let found = context.stores.fleet.agent_overview(None, Some(agent.id)).await?;
    found.into_iter().next().ok_or_else(|| not_found(ErrorKind::AgentNotFound, AgentId::KIND, id))
}

/// The live stacks that an agent is to have.
pub async fn stacks_of(
    context: &Context,
    caller: &Caller,
    id: AgentId,
) -> Result<Vec<Stack>, Error> {
    agents::fetch(context, caller, id, false).await?;
    Ok(context.stores.fleet.agent_stacks(id).await?)
}

/// The objects of a stack that agents see, the newest first.
pub async fn health(
    context: &Context,
    caller: &Caller,
    id: StackId,
) -> Result<Vec<ObjectHealthCount>, Error> {
    authorise(caller, Operation::FleetOverview)?;
    stacks::fetch(context, caller, id, false).await?;
    Ok(context.stores.fleet.stack_health(id).await?)
}

/// Reports of all agents that the caller reaches, newest first.
pub async fn reports(context: &Context, caller: &Caller, limit: u32) -> Result<Vec<Report>, Error> {
    authorise(caller, Operation::FleetOverview)?;
    Ok(context.stores.fleet.report_list(None, caller.project, limit).await?)
}

pub async fn report(context: &Context, caller: &Caller, id: Uuid) -> Result<Report, Error> {
    authorise(caller, Operation::FleetOverview)?;
    let found = context.stores.fleet.report_fetch(id, caller.project).await?;
    found.ok_or_else(|| not_found(ErrorKind::EntryNotFound, "report", id))
}
