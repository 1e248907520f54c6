//! What agents say: heartbeats, reports about objects, and their health.

use axum::Json;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use slipway_app::fleet::overview;
use slipway_app::fleet::reports::{self, SubmitHealth, SubmitHeartbeat, SubmitReport};
use slipway_core::error::Refusal;
use slipway_core::fleet::overview::worst;
use slipway_core::fleet::report::{ObjectHealth, Report};
use slipway_core::ids::{AgentId, DeploymentObjectId, StackId};
use slipway_wire::fleet::{
    AgentEvent, DeploymentHealth, DeploymentHealthResponse, DeploymentObjectHealthSummary,
    HealthStatusUpdate, HeartbeatReport, NewAgentEvent, StackHealthResponse,
};
use uuid::Uuid;

use super::tags::same;
use crate::request::{
    Answered, Body, Call, Done, Id, Segments, Untagged, parse_json, read_body, text,
};

/// The body may be empty.
pub(super) async fn heartbeat(call: Call, Id(agent): Id<AgentId>, request: Request) -> Done {
    let bytes = read_body(request).await?;
    let body = match bytes.iter().all(u8::is_ascii_whitespace) {
        true => HeartbeatReport::default(),
        false => parse_json(&bytes)?,
    };
    let beat = SubmitHeartbeat {
        is_reachable: body.k8s_reachable,
        latency_millis: body.k8s_api_latency_ms,
        capabilities: body.capabilities,
    };
    reports::heartbeat(&call.context, &call.caller, agent, beat).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn report(
    call: Call,
    Id(agent): Id<AgentId>,
    Body(body): Body<NewAgentEvent>,
) -> Answered {
    same("agent_id", &body.agent_id, agent)?;
    let object = body.deployment_object_id.parse::<DeploymentObjectId>();
    let object = object.map_err(|error| Refusal::from(error).at("deployment_object_id"))?;
    let NewAgentEvent { event_type, status, message, .. } = body;
    let input = SubmitReport { object, event_type, status, message };
    let recorded = reports::report(&call.context, &call.caller, agent, input).await?;
    Ok((StatusCode::CREATED, Json(document(&recorded))).into_response())
}

/// Of one agent.
pub(super) async fn of_agent(call: Call, Id(agent): Id<AgentId>) -> Untagged<Vec<AgentEvent>> {
    let found = reports::list(&call.context, &call.caller, agent, limit(&call)?).await?;
    Ok(Json(found.iter().map(document).collect()))
}

/// Of all agents.
pub(super) async fn list(call: Call) -> Untagged<Vec<AgentEvent>> {
    let found = overview::reports(&call.context, &call.caller, limit(&call)?).await?;
    Ok(Json(found.iter().map(document).collect()))
}

/// All of them, unless the query has a limit.
fn limit(call: &Call) -> Result<u32, Refusal> {
    match call.query.get("limit") {
        None => Ok(u32::MAX),
        Some(_) => Ok(call.query.page::<Uuid>()?.limit),
    }
}

pub(super) async fn get(call: Call, Segments([id]): Segments<1>) -> Untagged<AgentEvent> {
    let id = id.parse::<Uuid>().map_err(|_| Refusal::invalid("id", "must be a UUID"))?;
    Ok(Json(document(&overview::report(&call.context, &call.caller, id).await?)))
}

pub(super) async fn health(
    call: Call,
    Id(agent): Id<AgentId>,
    Body(body): Body<HealthStatusUpdate>,
) -> Done {
    let mut input = Vec::with_capacity(body.deployment_objects.len());
    for (index, one) in body.deployment_objects.into_iter().enumerate() {
        let field = |name: &str| format!("deployment_objects[{index}].{name}");
        let object = one.id.parse::<DeploymentObjectId>();
        let checked_at = one.checked_at.parse();
        let summary = one.summary.map(serde_json::to_value).transpose();
        input.push(SubmitHealth {
            object: object.map_err(|error| Refusal::from(error).at(field("id")))?,
            status: one.status,
            summary: summary.map_err(|_| Refusal::invalid(field("summary"), "is not readable"))?,
            checked_at: checked_at.map_err(|_| {
                Refusal::invalid(field("checked_at"), "must be a time such as 2026-01-31T12:00:00Z")
            })?,
        });
    }
    reports::health(&call.context, &call.caller, agent, input).await?;
    Ok(StatusCode::OK)
}

pub(super) async fn of_object(
    call: Call,
    Id(object): Id<DeploymentObjectId>,
) -> Untagged<DeploymentHealthResponse> {
    let found = reports::health_of(&call.context, &call.caller, object).await?;
    let overall = worst(found.iter().map(|one| Some(one.status)));
    Ok(Json(DeploymentHealthResponse {
        deployment_object_id: object.to_string(),
        health_records: found.iter().map(record).collect(),
        overall_status: overall.to_string(),
    }))
}

pub(super) async fn of_stack(call: Call, Id(stack): Id<StackId>) -> Untagged<StackHealthResponse> {
    let found = overview::health(&call.context, &call.caller, stack).await?;
    let overall = worst(found.iter().map(|one| Some(one.status())));
    let objects = found.iter().map(|one| DeploymentObjectHealthSummary {
        degraded_agents: one.degraded,
        failing_agents: one.failing,
        healthy_agents: one.healthy,
        id: one.object_id.to_string(),
        status: one.status().to_string(),
    });
    Ok(Json(StackHealthResponse {
        deployment_objects: objects.collect(),
        overall_status: overall.to_string(),
        stack_id: stack.to_string(),
    }))
}

fn record(health: &ObjectHealth) -> DeploymentHealth {
    DeploymentHealth {
        agent_id: health.agent_id.to_string(),
        checked_at: health.checked_at.to_string(),
        created_at: health.checked_at.to_string(),
        deployment_object_id: health.object_id.to_string(),
        id: health.id.to_string(),
        status: health.status.to_string(),
        summary: text(health.summary.as_ref()),
        updated_at: health.checked_at.to_string(),
    }
}

pub(super) fn document(report: &Report) -> AgentEvent {
    AgentEvent {
        agent_id: report.agent_id.to_string(),
        created_at: report.first_at.to_string(),
        deleted_at: text(report.deleted_at),
        deployment_object_id: report.object_id.to_string(),
        event_type: report.event_type.clone(),
        id: report.id.to_string(),
        message: report.message.clone(),
        status: report.status.to_string(),
        updated_at: report.last_at.to_string(),
    }
}
