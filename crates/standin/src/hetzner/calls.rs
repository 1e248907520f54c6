//! What each call does, in the manner of the provider.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::script::Script;
use super::selector::Selector;
use super::shapes::Call;
use super::world::{Group, Server, World};
use crate::clock;

/// A refusal: status, code, message.
pub(super) type Refused = (u16, &'static str, String);

/// Objects in a page unless the request says otherwise, and at most.
const PAGE: usize = 25;
const PAGE_MAX: usize = 50;

/// A parsed request.
pub(super) struct Request<'a> {
    pub(super) call: Call,
    pub(super) id: u64,
    pub(super) query: &'a BTreeMap<String, String>,
    pub(super) body: &'a Value,
}

/// Carries a request out. Its body fits its shape.
pub(super) fn carry_out(
    world: &mut World,
    script: &mut Script,
    request: &Request<'_>,
) -> Result<Value, Refused> {
    let Request { call, id, query, body } = request;
    match call {
        Call::Servers => {
            let all: Vec<_> = world
                .servers
                .values()
                .map(|server| (&server.name, &server.labels, world.server_document(server)))
                .collect();
            listed("servers", all, query)
        }
        Call::ServerCreate => create(world, script, body),
        Call::Server => {
            let server = world.servers.get(id).ok_or_else(|| missing("server", *id))?;
            Ok(json!({ "server": world.server_document(server) }))
        }
        Call::ServerUpdate => {
            let taken = body["name"].as_str().is_some_and(|name| {
                world.servers.values().any(|other| other.name == name && other.id != *id)
            });
            let server = world.servers.get_mut(id).ok_or_else(|| missing("server", *id))?;
            if taken {
                return Err(not_unique("name"));
            }
            if let Some(name) = body["name"].as_str() {
                name.clone_into(&mut server.name);
            }
            if let Some(labels) = labels(body) {
                server.labels = labels;
            }
            let server = server.clone();
            Ok(json!({ "server": world.server_document(&server) }))
        }
        Call::ServerDelete => {
            let is_locked = world.is_locked(*id);
            let server = world.servers.get_mut(id).ok_or_else(|| missing("server", *id))?;
            if server.is_protected {
                return Err((403, "protected", "server deletion is protected".to_owned()));
            }
            if is_locked {
                return Err(locked());
            }
            server.status = "deleting";
            Ok(acted(world, "delete_server", *id, script.action_time))
        }
        Call::ServerActions => {
            world.servers.get(id).ok_or_else(|| missing("server", *id))?;
            let none = (String::new(), BTreeMap::new());
            let actions = world.actions.values().filter(|action| action.server == *id);
            let all = actions.map(|action| (&none.0, &none.1, action.document())).collect();
            listed("actions", all, query)
        }
        Call::ServerProtect => {
            let is_locked = world.is_locked(*id);
            let server = world.servers.get_mut(id).ok_or_else(|| missing("server", *id))?;
            if body["delete"] != body["rebuild"] {
                let message = "delete and rebuild need the same value".to_owned();
                return Err((422, "invalid_input", message));
            }
            if is_locked {
                return Err(locked());
            }
            server.is_protected = body["delete"].as_bool().unwrap_or(server.is_protected);
            Ok(acted(world, "change_protection", *id, Duration::ZERO))
        }
        Call::Action => {
            let action = world.actions.get(id).ok_or_else(|| missing("action", *id))?;
            Ok(json!({ "action": action.document() }))
        }
        Call::PlacementGroups => {
            let all = world.groups.values();
            let all = all.map(|one| (&one.name, &one.labels, world.group_document(one))).collect();
            listed("placement_groups", all, query)
        }
        Call::PlacementGroupCreate => {
            let name = body["name"].as_str().unwrap_or_default().to_owned();
            if world.groups.values().any(|other| other.name == name) {
                return Err(not_unique("name"));
            }
            let (id, created) = (world.new_id(), clock::now_in_seconds());
            let group = Group { id, name, labels: labels(body).unwrap_or_default(), created };
            let document = world.group_document(&group);
            world.groups.insert(id, group);
            Ok(json!({ "placement_group": document, "action": null }))
        }
        Call::PlacementGroup => {
            let group = world.groups.get(id).ok_or_else(|| missing("placement group", *id))?;
            Ok(json!({ "placement_group": world.group_document(group) }))
        }
        Call::PlacementGroupUpdate => {
            let group = world.groups.get_mut(id).ok_or_else(|| missing("placement group", *id))?;
            if let Some(labels) = labels(body) {
                group.labels = labels;
            }
            let group = group.clone();
            Ok(json!({ "placement_group": world.group_document(&group) }))
        }
        Call::PlacementGroupDelete => {
            world.groups.remove(id).ok_or_else(|| missing("placement group", *id))?;
            Ok(Value::Null)
        }
    }
}

fn create(world: &mut World, script: &mut Script, body: &Value) -> Result<Value, Refused> {
    let text = |field: &str| body[field].as_str().unwrap_or_default().to_owned();
    let name = text("name");
    if world.servers.values().any(|other| other.name == name) {
        return Err(not_unique("name"));
    }
    let group = body["placement_group"].as_u64();
    if let Some(group) = group.filter(|group| !world.groups.contains_key(group)) {
        return Err(missing("placement group", group));
    }
    let (server_type, location) = (text("server_type"), text("location"));
    let wanted = format!("{server_type}@{location}");
    if let Some(code) = script.without_capacity.get(&wanted) {
        let message = format!("no {server_type} can be placed in {location}");
        return Err(match code.as_str() {
            "placement_error" => (412, "placement_error", message),
            "resource_limit_exceeded" => (403, "resource_limit_exceeded", message),
            _ => (412, "resource_unavailable", message),
        });
    }
    let id = world.new_id();
    let server = Server {
        id,
        name,
        labels: labels(body).unwrap_or_default(),
        server_type,
        location,
        image: text("image"),
        user_data: text("user_data"),
        is_protected: false,
        status: "initializing",
        group,
        created: clock::now_in_seconds(),
    };
    world.servers.insert(id, server.clone());
    let error = script.fail_create.take();
    let starts = error.is_none();
    let action = world.begin("create_server", id, script.action_time, error);
    let next = starts.then(|| world.begin("start_server", id, script.action_time * 2, None));
    let document = |id: &u64| world.actions.get(id).map(super::world::Action::document);
    Ok(json!({
        "server": world.server_document(&server),
        "action": document(&action),
        "next_actions": next.iter().filter_map(document).collect::<Vec<_>>(),
        "root_password": "standin-root-password",
    }))
}

fn acted(world: &mut World, command: &'static str, server: u64, takes: Duration) -> Value {
    let id = world.begin(command, server, takes, None);
    json!({ "action": world.actions.get(&id).map(super::world::Action::document) })
}

fn labels(body: &Value) -> Option<BTreeMap<String, String>> {
    serde_json::from_value(body.get("labels")?.clone()).ok()
}

fn missing(kind: &str, id: u64) -> Refused {
    (404, "not_found", format!("{kind} with ID '{id}' not found"))
}

fn not_unique(field: &str) -> Refused {
    (409, "uniqueness_error", format!("{field} is already used"))
}

fn locked() -> Refused {
    (423, "locked", "server is locked by another action".to_owned())
}

/// One page of those that the query selects.
fn listed(
    key: &str,
    all: Vec<(&String, &BTreeMap<String, String>, Value)>,
    query: &BTreeMap<String, String>,
) -> Result<Value, Refused> {
    let invalid = |field: &str| (422, "invalid_input", format!("invalid input in field '{field}'"));
    let number = |field: &str, usual: usize| match query.get(field) {
        None => Ok(usual),
        Some(text) => text.parse().ok().filter(|n| *n > 0).ok_or_else(|| invalid(field)),
    };
    let page: usize = number("page", 1)?;
    let size = number("per_page", PAGE)?.min(PAGE_MAX);
    let selector = match query.get("label_selector").filter(|text| !text.is_empty()) {
        None => Selector::default(),
        Some(text) => Selector::parse(text).ok_or_else(|| invalid("label_selector"))?,
    };
    let name = query.get("name");
    let mut found: Vec<_> = all
        .into_iter()
        .filter(|(its, labels, _)| name.is_none_or(|name| name == *its) && selector.matches(labels))
        .map(|(_, _, document)| document)
        .collect();
    let total = found.len();
    let last = total.div_ceil(size).max(1);
    let page_of = found.drain(..).skip((page - 1) * size).take(size).collect::<Vec<_>>();
    let mut answer = Map::new();
    answer.insert(key.to_owned(), Value::Array(page_of));
    let pagination = json!({
        "page": page,
        "per_page": size,
        "previous_page": (page > 1).then(|| page - 1),
        "next_page": (page < last).then_some(page + 1),
        "last_page": last,
        "total_entries": total,
    });
    answer.insert("meta".to_owned(), json!({ "pagination": pagination }));
    Ok(Value::Object(answer))
}
