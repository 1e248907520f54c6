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

/// Adds a suggestion to a refusal because of an unknown name: `given` has the
/// names by the code of their refusal.
pub(crate) async fn name(client: &Client, error: Error, given: &[(&str, Option<&str>)]) -> Error {
    let Error::Problem(mut problem) = error else { return error };
    let refused = given.iter().find(|(code, _)| *code == problem.code);
    let Some((code, Some(given))) = refused else { return Error::Problem(problem) };
    let names = match *code {
        "blueprint_not_found" => ("blueprints", "slug"),
        "project_not_found" => ("projects", "name"),
        "credential_not_found" => ("credentials", "name"),
        _ => return Error::Problem(problem),
    };
    problem.message.push_str(&near(client, names, None, given).await);
    Error::Problem(problem)
}
