//! Registrations and targets.

use axum::Json;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use slipway_app::fleet::links;
use slipway_app::ports::Listed;
use slipway_app::ports::store::Page;
use slipway_core::access::api_key::Principal;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::fleet::links::{Registration, Target};
use slipway_core::ids::{AgentId, GeneratorId, StackId};
use slipway_wire::fleet::{
    AgentGeneratorRegistration, AgentRegistrationBody, AgentTarget, NewAgentTarget,
};
use uuid::Uuid;

use super::lists;
use super::tags::same;
use crate::error::Rejection;
use crate::request::{Answered, Body, Call, Done, Id, Segments, parse_json, read_body};

/// An agent speaks for itself; others name one in the body.
async fn subject(call: &Call, request: Request) -> Result<AgentId, Rejection> {
    let bytes = read_body(request).await?;
    let named = match bytes.iter().all(u8::is_ascii_whitespace) {
        true => None,
        false => parse_json::<AgentRegistrationBody>(&bytes)?.agent_id,
    };
    let named = named
        .map(|text| text.parse::<AgentId>().map_err(|error| Refusal::from(error).at("agent_id")));
    match (call.caller.principal, named.transpose()?) {
        (Principal::Agent(own), None) => Ok(own),
        (_, Some(named)) => Ok(named),
        (_, None) => Err(Refusal::invalid("agent_id", "must name the agent to register").into()),
    }
}

pub(super) async fn register(
    call: Call,
    Id(generator): Id<GeneratorId>,
    request: Request,
) -> Answered {
    let agent = subject(&call, request).await?;
    let id = links::register(&call.context, &call.caller, agent, generator).await?;
    // Only the new one: there may be more of them than a page has.
    let before = Uuid::from_u128(id.as_u128().saturating_sub(1));
    let page = Page { after: Some(before), limit: 1 };
    let all = links::registrations_of_agent(&call.context, &call.caller, agent, page).await?;
    let found = all.iter().find(|found| found.id == id).ok_or_else(removed)?;
    Ok((StatusCode::CREATED, Json(registration(found))).into_response())
}

pub(super) async fn unregister(
    call: Call,
    Id(generator): Id<GeneratorId>,
    request: Request,
) -> Done {
    let agent = subject(&call, request).await?;
    links::unregister(&call.context, &call.caller, agent, generator).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn of_agent(call: Call, Id(agent): Id<AgentId>) -> Answered {
    let mut pages = lists::Pages::new(&call)?;
    while let Some(page) = pages.next() {
        let limit = page.limit;
        let found = links::registrations_of_agent(&call.context, &call.caller, agent, page).await?;
        pages.add(Listed::complete(found, limit, |found| found.id).map(registration));
    }
    Ok(pages.answer())
}

pub(super) async fn of_generator(call: Call, Id(generator): Id<GeneratorId>) -> Answered {
    let mut pages = lists::Pages::new(&call)?;
    while let Some(page) = pages.next() {
        let limit = page.limit;
        let found =
            links::registrations_of_generator(&call.context, &call.caller, generator, page).await?;
        pages.add(Listed::complete(found, limit, |found| found.id).map(registration));
    }
    Ok(pages.answer())
}

pub(super) async fn targets(call: Call, Id(agent): Id<AgentId>) -> Answered {
    let mut pages = lists::Pages::new(&call)?;
    while let Some(page) = pages.next() {
        let limit = page.limit;
        let found = links::targets(&call.context, &call.caller, agent, page).await?;
        pages.add(Listed::complete(found, limit, |found| found.id).map(target));
    }
    Ok(pages.answer())
}

pub(super) async fn add_target(
    call: Call,
    Id(agent): Id<AgentId>,
    Body(body): Body<NewAgentTarget>,
) -> Answered {
    same("agent_id", &body.agent_id, agent)?;
    let stack = body.stack_id.parse::<StackId>();
    let stack = stack.map_err(|error| Refusal::from(error).at("stack_id"))?;
    let id = links::target(&call.context, &call.caller, agent, stack).await?;
    let made = target(&Target { id, agent_id: agent, stack_id: stack });
    Ok((StatusCode::CREATED, Json(made)).into_response())
}

pub(super) async fn remove_target(call: Call, Segments([agent, stack]): Segments<2>) -> Done {
    let agent = agent.parse::<AgentId>().map_err(|error| Refusal::from(error).at("id"))?;
    let stack = stack.parse::<StackId>().map_err(|error| Refusal::from(error).at("stack_id"))?;
    links::untarget(&call.context, &call.caller, agent, stack).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn removed() -> Refusal {
    Refusal::new(ErrorKind::EntryNotFound, "somebody removed it at the same time; add it again")
}

fn registration(row: &Registration) -> AgentGeneratorRegistration {
    AgentGeneratorRegistration {
        agent_id: row.agent_id.to_string(),
        generator_id: row.generator_id.to_string(),
        id: row.id.to_string(),
        registered_at: row.registered_at.to_string(),
    }
}

fn target(row: &Target) -> AgentTarget {
    AgentTarget {
        agent_id: row.agent_id.to_string(),
        id: row.id.to_string(),
        stack_id: row.stack_id.to_string(),
    }
}
