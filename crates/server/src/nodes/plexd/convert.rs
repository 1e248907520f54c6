//! Converts between the registry and the node protocol.

use data_encoding::BASE64;
use serde_json::{Map, Value};
use slipway_app::nodes::port::{self, MeshView};
use slipway_core::nodes::node::{Reachability, Reported};
use slipway_core::time::Timestamp;
use slipway_wire::nodes::plexd::{
    Capabilities, DescribedCapabilities, NamedCapability, Peer, ReachabilityState, SigningKeys,
    StateReply,
};

/// Most names that are kept of an agent's description. The rest is dropped:
/// nothing depends on them, and an agent must not be refused for having many
/// capabilities.
const MAX_DESCRIBED: usize = 32;

pub(super) fn peers(mesh: &MeshView) -> Vec<Peer> {
    mesh.peers.iter().map(peer).collect()
}

fn peer(node: &port::Peer) -> Peer {
    let ip = node.ip;
    let whole = if ip.is_ipv4() { 32 } else { 128 };
    let id = node.id.to_string();
    Peer {
        node_id: id.clone(),
        id,
        public_key: BASE64.encode(&node.public_key),
        mesh_ip: ip.to_string(),
        hostname: node.hostname.clone(),
        endpoint: String::new(),
        allowed_ips: vec![format!("{ip}/{whole}")],
        psk: String::new(),
    }
}

pub(super) fn state(mesh: &MeshView, signing_public_key: &str, now: Timestamp) -> StateReply {
    let node = &mesh.node;
    let state = match node.reachability(now) {
        Reachability::Unknown => "never_reported",
        known => known.as_str(),
    };
    StateReply {
        peers: peers(mesh),
        policies: Vec::new(),
        signing_keys: SigningKeys { current: signing_public_key.to_owned() },
        metadata: Map::new(),
        data: Vec::new(),
        secret_refs: Vec::new(),
        reachability: ReachabilityState {
            state: state.to_owned(),
            last_heartbeat_at: node.last_heartbeat_at.map(|at| at.to_string()),
            changed_at: node.last_heartbeat_at.unwrap_or(node.registered_at).to_string(),
        },
        policy: None,
        bridge: None,
        state: None,
        reports: None,
        executions: Vec::new(),
        sessions: Vec::new(),
    }
}

/// The names of a node's capabilities, and what it reports about its binary.
/// Names of actions and hooks get a prefix: an action called `drain` is not the
/// capability to acknowledge a drain, and a server that confused them would
/// wait for ever.
pub(super) fn capabilities(sent: Option<Capabilities>) -> (Vec<String>, Reported) {
    match sent {
        None => (Vec::new(), Reported::default()),
        Some(Capabilities::Names(names)) => (names, Reported::default()),
        Some(Capabilities::Described(described)) => {
            let DescribedCapabilities { binary, builtin_actions, hooks } = described;
            let named = |prefix: &'static str, list: Option<Vec<NamedCapability>>| {
                list.into_iter().flatten().map(move |entry| format!("{prefix}:{}", entry.name))
            };
            let fits = |name: &String| name.len() <= 128 && !name.chars().any(char::is_control);
            let names = named("action", builtin_actions).chain(named("hook", hooks));
            let binary = binary.unwrap_or_default();
            let reported =
                Reported::of(binary.version.as_deref(), binary.checksum.as_deref(), None);
            (names.filter(fits).take(MAX_DESCRIBED).collect(), reported)
        }
    }
}

/// What a heartbeat reports about its sender. Other fields are ignored, and a
/// body that cannot be parsed is a sign of life all the same.
pub(super) fn reported(heartbeat: &[u8]) -> Reported {
    let body: Value = serde_json::from_slice(heartbeat).unwrap_or_default();
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    Reported::of(text("binary_version"), text("binary_checksum"), text("status"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_action_called_drain_is_not_the_capability() {
        let sent = json!({
            "binary": { "version": "0.9.1", "checksum": "sha256:ab" },
            "builtin_actions": [{ "name": "drain", "description": "", "parameters": null }],
            "hooks": null,
        });
        let (names, reported) = capabilities(serde_json::from_value(sent).unwrap());
        assert_eq!(names, ["action:drain"]);
        assert_eq!(reported, Reported::of(Some("0.9.1"), Some("sha256:ab"), None));
        let many = json!({ "hooks": vec![json!({ "name": "h" }); 99] });
        assert_eq!(capabilities(serde_json::from_value(many).unwrap()).0.len(), MAX_DESCRIBED);
        let names = capabilities(serde_json::from_value(json!(["drain"])).unwrap()).0;
        assert_eq!(names, ["drain"]);
    }

    #[test]
    fn a_heartbeat_that_cannot_be_read_says_nothing() {
        for body in ["", "{", "[]", r#"{"status":7,"binary_version":null}"#] {
            assert_eq!(reported(body.as_bytes()), Reported::default(), "{body}");
        }
        let said = reported(br#"{"status":"healthy","binary_version":"1.2.3","uptime":"1h"}"#);
        assert_eq!(said, Reported::of(Some("1.2.3"), None, Some("healthy")));
    }
}
