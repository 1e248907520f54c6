//! Reads of the node registry.

use axum::Json;
use slipway_app::nodes::port::NodeNames;
use slipway_app::nodes::read;
use slipway_core::ids::NodeId;
use slipway_core::nodes::node;
use slipway_core::time::Timestamp;
use slipway_wire::nodes::Node;

use crate::request::{Answered, Call, Id, Untagged, text};

pub(super) async fn list(call: Call) -> Answered {
    let page = call.query.page()?;
    let (found, names) = read::nodes(&call.context, &call.caller, page).await?;
    let now = call.now();
    Ok(call.page(found.map(|node| named(node, names.get(&node.id), now)), page.limit))
}

pub(super) async fn get(call: Call, Id(id): Id<NodeId>) -> Untagged<Node> {
    let (node, names) = read::node(&call.context, &call.caller, id).await?;
    Ok(Json(named(&node, names.as_ref(), call.now())))
}

/// The document of a node on its own.
fn named(node: &node::Node, names: Option<&NodeNames>, now: Timestamp) -> Node {
    Node {
        project: names.map(|names| names.project.clone()),
        resource: names.map(|names| names.resource.clone()),
        ..document(node, now)
    }
}

pub(crate) fn document(node: &node::Node, now: Timestamp) -> Node {
    let gone = node.deregistration.as_ref();
    Node {
        id: node.id.to_string(),
        project: None,
        project_id: node.project_id.to_string(),
        resource: None,
        resource_id: node.resource_id.to_string(),
        provisioned_resource_id: node.provisioned_resource_id.to_string(),
        hostname: node.hostname.clone(),
        capabilities: node.capabilities.clone(),
        mesh_ip: Some(node.mesh.ip.to_string()),
        version: node.reported.version.clone(),
        checksum: node.reported.checksum.clone(),
        status: node.reported.status.clone(),
        registered: node.is_registered(),
        reachability: node.reachability(now).to_string(),
        silent_seconds: node.silent_for(now).map(|silence| silence.as_secs()),
        registered_at: node.registered_at.to_string(),
        last_heartbeat_at: text(node.last_heartbeat_at),
        drain_requested_at: text(node.drain.map(|drain| drain.requested_at)),
        deregistered_at: text(gone.map(|gone| gone.at)),
        deregistered_how: text(gone.map(|gone| gone.how)),
        deregistered_by: gone.map(|gone| gone.by.clone()),
        deregistered_reason: gone.and_then(|gone| gone.reason.clone()),
    }
}
