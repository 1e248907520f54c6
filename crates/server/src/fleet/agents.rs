//! Agents.

use std::sync::OnceLock;

use axum::Json;
use serde_json::Value;
use slipway_app::fleet::agents::{self, CreateAgent};
use slipway_app::ports::store::Page;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::fleet::agent::{self, AgentChange, AgentStatus};
use slipway_core::ids::{AgentId, GeneratorId};
use slipway_wire::fleet::{Agent, AgentKey, CreateAgentRequest, CreateAgentResponse, UpdateAgent};

use super::{deleting, lists, put};
use crate::request::{
    Answered, Body, Call, Creation, Documented, Id, IfMatch, Made, Referring, Shown, Tagged,
    Untagged, create_once, delete_options, kind, text,
};

pub(super) async fn list(call: Call) -> Answered {
    let filter = lists::filter(&call).await?;
    let mut pages = lists::Pages::new(&call)?;
    while let Some(page) = pages.next() {
        let page = Page { after: page.after.map(AgentId::new), limit: page.limit };
        let found = agents::list(&call.context, &call.caller, &filter, page).await?;
        pages.add(found.map(agent::Agent::document));
    }
    Ok(pages.answer())
}

/// With its key, and registered with these generators, all of it or nothing.
pub(super) async fn create(call: Call, new: Creation<CreateAgentRequest>) -> Made {
    let drawn = OnceLock::new();
    let make = async |body: CreateAgentRequest, request| {
        let parse = |text: &String| {
            text.parse::<GeneratorId>().map_err(|error| Refusal::from(error).at("generator_ids"))
        };
        let generators = body.generator_ids.iter().map(parse).collect::<Result<_, _>>()?;
        let CreateAgentRequest { project, name, cluster_name, .. } = body;
        let input = CreateAgent { project, name, cluster_name, generators };
        let (id, key) = agents::create(&call.context, &call.caller, input, request).await?;
        // Of two concurrent requests, the loser has drawn a key that does not exist.
        let _ = drawn.set(key);
        Ok(id)
    };
    let show = async |id| {
        let Tagged { revision, document: agent } =
            kind::show::<agent::Agent>(&call, id, true).await?;
        let document = CreateAgentResponse { agent, initial_pak: String::new() };
        Ok(Tagged { revision, document }.created(call.below(id)))
    };
    Ok(create_once(&call, new, make, show).await?.with_secret("initial_pak", drawn.get()))
}

/// The agent of these two names.
pub(super) async fn find(call: Call) -> Shown<Agent> {
    for name in ["name", "cluster_name"] {
        if call.query.get(name).is_none() {
            return Err(Refusal::invalid(name, "must be given").into());
        }
    }
    let filter = lists::filter(&call).await?;
    let page = Page { after: None, limit: 2 };
    let found = agents::list(&call.context, &call.caller, &filter, page).await?.items;
    match &found[..] {
        [one] => Ok(Tagged { revision: one.revision.0, document: one.document() }),
        [] => {
            let message = "there is no agent of this name and cluster; check both";
            Err(Refusal::new(ErrorKind::AgentNotFound, message).into())
        }
        _ => Err(Refusal::invalid("project", "must be given: several projects have such an agent")
            .into()),
    }
}

pub(super) async fn get(call: Call, Id(id): Id<AgentId>) -> Shown<Agent> {
    show(&call, id, call.query.flag("show_deleted")?).await
}

async fn show(call: &Call, id: AgentId, show_deleted: bool) -> Shown<Agent> {
    let found = agents::fetch(&call.context, &call.caller, id, show_deleted).await?;
    Ok(Tagged { revision: found.revision.0, document: found.document() })
}

pub(super) async fn update(
    call: Call,
    Id(id): Id<AgentId>,
    IfMatch(expected): IfMatch,
    Body(body): Body<Value>,
) -> Shown<Agent> {
    let found = agents::fetch(&call.context, &call.caller, id, false).await?;
    let given: UpdateAgent = put::settable(&body, &found.document(), &SETTABLE)?;
    let status = given.status.map(|text| AgentStatus::parse_field("status", &text));
    let change = AgentChange {
        name: put::name("name", given.name)?,
        cluster_name: put::name("cluster_name", given.cluster_name)?,
        status: status.transpose()?,
    };
    agents::update(&call.context, &call.caller, id, &change, expected).await?;
    call.context.wakes.wake_offers();
    show(&call, id, false).await
}

/// What changes with every heartbeat may differ from what was read.
const SETTABLE: [&str; 7] = [
    "name",
    "cluster_name",
    "status",
    "last_heartbeat",
    "k8s_reachable",
    "k8s_api_latency_ms",
    "k8s_reported_at",
];

pub(super) async fn delete(
    call: Call,
    Id(id): Id<AgentId>,
    IfMatch(expected): IfMatch,
) -> Answered {
    let options = delete_options(&call.query, expected)?;
    let deletion = agents::delete(&call.context, &call.caller, id, options).await?;
    Ok(deleting::answer(deletion))
}

pub(super) async fn rotate(call: Call, Id(id): Id<AgentId>) -> Untagged<AgentKey> {
    let pak = agents::key(&call.context, &call.caller, id).await?.expose().to_owned();
    let agent = agents::fetch(&call.context, &call.caller, id, false).await?.document();
    Ok(Json(AgentKey { agent, pak }))
}

impl Referring for Agent {}

impl Documented for agent::Agent {
    type Document = Agent;

    fn document(&self) -> Agent {
        let cluster = self.heartbeat.and_then(|heartbeat| heartbeat.cluster);
        Agent {
            cluster_name: self.cluster_name.to_string(),
            created_at: self.created_at.to_string(),
            deleted_at: text(self.deleted_at),
            id: self.id.to_string(),
            k8s_api_latency_ms: cluster.and_then(|cluster| cluster.latency_millis),
            k8s_reachable: cluster.and_then(|cluster| cluster.is_reachable),
            k8s_reported_at: text(cluster.map(|cluster| cluster.at)),
            last_heartbeat: text(self.heartbeat.map(|heartbeat| heartbeat.at)),
            name: self.name.to_string(),
            status: self.status.to_string(),
            updated_at: self.updated_at.to_string(),
        }
    }
}
