//! "Did you mean": after something was not found, and only then, one more
//! request asks what there is. A suggestion that cannot be had is left out; the
//! error stands by itself.

use serde_json::Value;
use slipway_core::nearest::nearest;

use crate::client::{Client, ResourceQuery};
use crate::error::Error;
use crate::terminal::clean;

/// More names than a person tells apart.
const LOOKED_AT: u32 = 500;

/// The handle of a resource that is near to this one.
pub(super) async fn handle(client: &Client, given: &str, project: Option<&String>) -> String {
    let query = ResourceQuery { project: project.cloned(), ..ResourceQuery::default() };
    let listed = client.resource_list(&query, Some(LOOKED_AT)).await;
    let handles: Vec<_> = listed
        .map(|listed| listed.items)
        .unwrap_or_default()
        .into_iter()
        .map(|r| r.handle)
        .collect();
    question(given, handles.iter().map(String::as_str))
}

/// Adds a name to a refusal of the server that says that one is not there:
/// `given` are the names by the code that refuses them.
pub(super) async fn name(client: &Client, error: Error, given: &[(&str, Option<&str>)]) -> Error {
    let Error::Problem(mut problem) = error else { return error };
    let refused = given.iter().find(|(code, _)| *code == problem.code);
    let Some((code, Some(given))) = refused else { return Error::Problem(problem) };
    let (list, field) = match *code {
        "blueprint_not_found" => ("blueprints", "slug"),
        "project_not_found" => ("projects", "name"),
        "credential_not_found" => ("credentials", "name"),
        _ => return Error::Problem(problem),
    };
    let listed = client.list_all::<Value>(&[list], false, Some(LOOKED_AT)).await;
    let items = listed.map(|listed| listed.items).unwrap_or_default();
    let names = items.iter().filter_map(|item| item[field].as_str());
    // The name is there, so something else about it is wrong.
    if !names.clone().any(|name| name == *given) {
        problem.message.push_str(&question(given, names));
    }
    Error::Problem(problem)
}

fn question<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> String {
    nearest(given, known)
        .map(|meant| format!("; did you mean `{}`?", clean(meant)))
        .unwrap_or_default()
}
