//! How agents are doing, for people. Agents poll; nobody is connected for good.

use axum::Json;
use slipway_app::fleet::{overview, principal, reports, stacks};
use slipway_core::fleet::overview::AgentOverview;
use slipway_core::ids::{AgentId, StackId};
use slipway_core::time::Timestamp;
use slipway_wire::fleet::{
    AgentFleetStatusResponse, FleetAgentRecord, K8sEventHistoryResponse, PodLogHistoryResponse,
    RetentionInfo, WsConnectionsResponse,
};
use uuid::Uuid;

use super::reports::document;
use crate::request::{Call, Id, Untagged, text};

/// The reports that the status of one agent shows.
const RECENT: u32 = 20;

pub(super) async fn list(call: Call) -> Untagged<Vec<FleetAgentRecord>> {
    let project = principal::filter(&call.context, &call.caller, call.query.get("project")).await?;
    let found = overview::list(&call.context, &call.caller, project).await?;
    let now = call.now();
    Ok(Json(found.iter().map(|one| record(one, now)).collect()))
}

pub(super) async fn get(call: Call, Id(agent): Id<AgentId>) -> Untagged<AgentFleetStatusResponse> {
    let found = overview::fetch(&call.context, &call.caller, agent).await?;
    let recent = reports::list(&call.context, &call.caller, agent, RECENT).await?;
    Ok(Json(AgentFleetStatusResponse {
        recent_events: recent.iter().map(document).collect(),
        record: record(&found, call.now()),
    }))
}

fn record(overview: &AgentOverview, now: Timestamp) -> FleetAgentRecord {
    let AgentOverview { agent, pending, degraded, failing, last_report_at } = overview;
    let heartbeat = agent.heartbeat.map(|heartbeat| heartbeat.at);
    let cluster = agent.heartbeat.and_then(|heartbeat| heartbeat.cluster);
    let age = |at: Timestamp| i64::try_from(now.since(at).as_secs()).unwrap_or(i64::MAX);
    FleetAgentRecord {
        agent_id: agent.id.to_string(),
        claimed_work_orders: 0,
        cluster_name: agent.cluster_name.to_string(),
        connected_since: None,
        health_degraded: *degraded,
        health_failing: *failing,
        heartbeat_age_seconds: heartbeat.map(age),
        k8s_api_latency_ms: cluster.and_then(|cluster| cluster.latency_millis).map(i64::from),
        k8s_reachable: cluster.and_then(|cluster| cluster.is_reachable),
        last_event_at: text(*last_report_at),
        last_heartbeat: text(heartbeat),
        name: agent.name.to_string(),
        pending_object_count: *pending,
        pending_work_orders: 0,
        seconds_since_last_event: last_report_at.map(age),
        status: agent.status.to_string(),
        ws_connected: false,
    }
}

pub(super) async fn connections() -> Json<WsConnectionsResponse> {
    Json(WsConnectionsResponse {
        connected_agents: 0,
        connections: Vec::new(),
        live_subscribers: 0,
    })
}

/// Events and logs of pods stay in their clusters.
fn retention() -> RetentionInfo {
    RetentionInfo {
        effective_retention_seconds: 0,
        long_term_sink_hint: "not collected here; look at the cluster, or at where it sends them"
            .to_owned(),
        oldest_available_ts: None,
        retention_ceiling_seconds: 0,
    }
}

pub(super) async fn events(call: Call, Id(id): Id<StackId>) -> Untagged<K8sEventHistoryResponse> {
    call.query.page::<Uuid>()?;
    stacks::fetch(&call.context, &call.caller, id, false).await?;
    Ok(Json(K8sEventHistoryResponse { events: Vec::new(), retention: retention() }))
}

pub(super) async fn logs(call: Call, Id(id): Id<StackId>) -> Untagged<PodLogHistoryResponse> {
    call.query.page::<Uuid>()?;
    stacks::fetch(&call.context, &call.caller, id, false).await?;
    Ok(Json(PodLogHistoryResponse { lines: Vec::new(), retention: retention() }))
}
