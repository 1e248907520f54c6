//! "Did you mean": only after something was not found, one more request lists
//! the existing names. If that fails the suggestion is left out, and the error
//! is shown without it.

use serde_json::Value;
use slipway_core::nearest::nearest;

use crate::client::{Client, Listing};
use crate::error::Error;
use crate::terminal::clean;

/// More names than a person can tell apart.
const LIMIT: u32 = 500;

/// The name in a list (of one project, if given) closest to the given one, as a
/// question to append to an error. Empty if no name is close, or if the name
/// itself exists, so that something else is wrong.
pub(crate) async fn near(
    client: &Client,
    (list, field): (&str, &str),
    project: Option<&str>,
    given: &str,
) -> String {
    let wanted = Listing::first(Some(LIMIT)).with("project", project);
    let listed = client.list::<Value>(&[list], wanted).await;
    let items = listed.map(|listed| listed.items).unwrap_or_default();
    let names = items.iter().filter_map(|item| item[field].as_str());
    if names.clone().any(|name| name == given) {
        return String::new();
    }
    let meant = nearest(given, names);
    meant.map(|meant| format!("; did you mean `{}`?", clean(meant))).unwrap_or_default()
}

/// Adds a suggestion to each fault because of an unknown name: `given` has the
/// names by the code of their fault.
pub(crate) async fn name(client: &Client, error: Error, given: &[(&str, Option<&str>)]) -> Error {
    let Error::Problem(mut problem) = error else { return error };
    for (code, names) in NAMES {
        let refused = given.iter().find(|(refused, _)| *refused == code);
        let Some((_, Some(given))) = refused else { continue };
        let is_first = problem.code == code;
        let faults: Vec<_> = problem.errors.iter_mut().filter(|fault| fault.code == code).collect();
        if !is_first && faults.is_empty() {
            continue;
        }
        let meant = near(client, names, None, given).await;
        faults.into_iter().for_each(|fault| fault.message.push_str(&meant));
        if is_first {
            problem.message.push_str(&meant);
        }
    }
    Error::Problem(problem)
}

/// The same for a name in the path of a request.
pub(crate) async fn reference(client: &Client, error: Error, given: &str) -> Error {
    // The server has named what was meant, or the name is in a filter.
    if given.is_empty() {
        return error;
    }
    let given: Vec<_> = NAMES.iter().map(|(code, _)| (*code, Some(given))).collect();
    name(client, error, &given).await
}

/// By the code of the refusal: the list that has the names, and their field.
const NAMES: [(&str, (&str, &str)); 10] = [
    ("blueprint_not_found", ("blueprints", "slug")),
    ("project_not_found", ("projects", "name")),
    ("credential_not_found", ("credentials", "name")),
    ("cloud_not_found", ("clouds", "name")),
    ("cluster_not_found", ("clusters", "name")),
    ("generator_not_found", ("generators", "name")),
    ("stack_not_found", ("stacks", "name")),
    ("template_not_found", ("templates", "name")),
    ("agent_not_found", ("agents", "name")),
    ("workspace_not_found", ("workspaces", "name")),
];
