//! The shapes of requests and answers, as JSON Schemas that we wrote from the provider's
//! documentation (`shapes.json`), and the calls that this stand-in knows, each with its shapes
//! and its query parameters.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Value, json};

/// A call of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Servers,
    ServerCreate,
    Server,
    ServerUpdate,
    ServerDelete,
    ServerActions,
    ServerProtect,
    Action,
    PlacementGroups,
    PlacementGroupCreate,
    PlacementGroup,
    PlacementGroupUpdate,
    PlacementGroupDelete,
}

/// What a call takes and answers.
pub(super) struct Shape {
    /// Names of schemas; `None` where there is no body.
    pub(super) request: Option<&'static str>,
    pub(super) answer: Option<&'static str>,
    pub(super) status: u16,
    pub(super) query: &'static [&'static str],
}

const PAGED: &[&str] = &["name", "label_selector", "status", "type", "sort", "page", "per_page"];

impl Call {
    /// The call of a request, and the id in its path.
    pub(super) fn of(method: &str, path: &str) -> Option<(Self, u64)> {
        let parts: Vec<_> = path.trim_matches('/').split('/').collect();
        let id = |text: &str| text.parse::<u64>().ok();
        Some(match (method, parts.as_slice()) {
            ("GET", ["servers"]) => (Self::Servers, 0),
            ("POST", ["servers"]) => (Self::ServerCreate, 0),
            ("GET", ["servers", one]) => (Self::Server, id(one)?),
            ("PUT", ["servers", one]) => (Self::ServerUpdate, id(one)?),
            ("DELETE", ["servers", one]) => (Self::ServerDelete, id(one)?),
            ("GET", ["servers", one, "actions"]) => (Self::ServerActions, id(one)?),
            ("POST", ["servers", one, "actions", "change_protection"]) => {
                (Self::ServerProtect, id(one)?)
            }
            ("GET", ["actions", one]) => (Self::Action, id(one)?),
            ("GET", ["placement_groups"]) => (Self::PlacementGroups, 0),
            ("POST", ["placement_groups"]) => (Self::PlacementGroupCreate, 0),
            ("GET", ["placement_groups", one]) => (Self::PlacementGroup, id(one)?),
            ("PUT", ["placement_groups", one]) => (Self::PlacementGroupUpdate, id(one)?),
            ("DELETE", ["placement_groups", one]) => (Self::PlacementGroupDelete, id(one)?),
            _ => return None,
        })
    }

    pub(super) const fn shape(self) -> Shape {
        let (request, answer, status, query): (_, _, _, &[&str]) = match self {
            Self::Servers => (None, Some("servers_answer"), 200, PAGED),
            Self::ServerCreate => (Some("server_create"), Some("server_create_answer"), 201, &[]),
            Self::Server => (None, Some("server_answer"), 200, &[]),
            Self::ServerUpdate => (Some("server_update"), Some("server_answer"), 200, &[]),
            Self::ServerDelete => (None, Some("action_answer"), 200, &[]),
            Self::ServerActions => (None, Some("actions_answer"), 200, PAGED),
            Self::ServerProtect => (Some("protection_change"), Some("action_answer"), 201, &[]),
            Self::Action => (None, Some("action_answer"), 200, &[]),
            Self::PlacementGroups => (None, Some("placement_groups_answer"), 200, PAGED),
            Self::PlacementGroupCreate => {
                (Some("placement_group_create"), Some("placement_group_create_answer"), 201, &[])
            }
            Self::PlacementGroup => (None, Some("placement_group_answer"), 200, &[]),
            Self::PlacementGroupUpdate => {
                (Some("placement_group_update"), Some("placement_group_answer"), 200, &[])
            }
            Self::PlacementGroupDelete => (None, None, 204, &[]),
        };
        Shape { request, answer, status, query }
    }

    /// Whether it changes something.
    pub(super) const fn writes(self) -> bool {
        !matches!(
            self,
            Self::Servers
                | Self::Server
                | Self::ServerActions
                | Self::Action
                | Self::PlacementGroups
                | Self::PlacementGroup
        )
    }
}

static SCHEMAS: LazyLock<BTreeMap<String, Validator>> = LazyLock::new(|| {
    let all: Value = serde_json::from_str(include_str!("shapes.json")).unwrap_or_default();
    let names = all.as_object().into_iter().flat_map(|all| all.keys());
    let build = |name: &String| {
        let schema = json!({ "$ref": format!("#/$defs/{name}"), "$defs": all });
        let options = jsonschema::options().should_validate_formats(true);
        options.build(&schema).ok().map(|validator| (name.clone(), validator))
    };
    names.filter_map(build).collect()
});

/// What is wrong with a value of this shape, if anything is.
pub(super) fn fault(shape: &str, value: &Value) -> Option<String> {
    let Some(schema) = SCHEMAS.get(shape) else {
        return Some(format!("there is no usable schema `{shape}`"));
    };
    schema.iter_errors(value).next().map(|error| {
        let at = error.instance_path().to_string();
        format!("{shape}{at}: {error}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_that_a_call_names_has_a_schema() {
        for (method, path) in [
            ("GET", "/servers"),
            ("POST", "/servers"),
            ("GET", "/servers/1"),
            ("PUT", "/servers/1"),
            ("DELETE", "/servers/1"),
            ("GET", "/servers/1/actions"),
            ("POST", "/servers/1/actions/change_protection"),
            ("GET", "/actions/1"),
            ("GET", "/placement_groups"),
            ("POST", "/placement_groups"),
            ("GET", "/placement_groups/1"),
            ("PUT", "/placement_groups/1"),
            ("DELETE", "/placement_groups/1"),
        ] {
            let (call, _) = Call::of(method, path).unwrap();
            let shape = call.shape();
            for name in shape.request.into_iter().chain(shape.answer) {
                assert!(SCHEMAS.contains_key(name), "{name}");
            }
        }
        assert_eq!(Call::of("GET", "/volumes"), None);
    }

    #[test]
    fn a_request_with_an_unknown_field_or_a_bad_label_is_refused() {
        let good = json!({ "name": "web-1", "server_type": "cx22", "image": "ubuntu-24.04" });
        assert_eq!(fault("server_create", &good), None);
        for (field, value) in [
            ("name", json!("no host_name")),
            ("labels", json!({ "a": "with a blank" })),
            ("labels", json!({ "-a": "x" })),
            ("labels", json!({ "a": "x".repeat(64) })),
            ("placement_group", json!("by-name")),
            ("datacentre", json!("x")),
        ] {
            let mut bad = good.clone();
            bad[field] = value;
            assert!(fault("server_create", &bad).is_some(), "{bad}");
        }
    }
}
