//! Which resource is meant: an id is used as it is, a handle is looked up, and the server
//! finds the beginning of an id.

use clap::Args;
use slipway_core::ids::ResourceId;
use slipway_core::operations::reference::ids_from;
use slipway_wire::broker::Resource;

use crate::client::{Client, Listing};
use crate::complete;
use crate::error::Error;
use crate::suggest;

#[derive(Debug, Clone, Args)]
pub struct TargetArguments {
    /// Handle, id or beginning of the id of the resource
    #[arg(value_name = "RESOURCE", add = complete::names("resource"))]
    pub target: String,
    /// The project of the handle (name, id or beginning of the id)
    #[arg(long, add = complete::names("project"))]
    pub project: Option<String>,
}

/// Whether a deleted resource may be meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gone {
    /// For reading: the newest with that handle, if all are deleted.
    Allowed,
    /// For acting: only a resource that is not deleted.
    Refused,
}

fn is_id(target: &TargetArguments) -> bool {
    target.target.parse::<ResourceId>().is_ok()
}

/// The id of a resource that may be deleted, for a path. An id is not looked up, and the
/// server finds the handle of a quarantined row, which no list shows.
pub(crate) async fn find_id(client: &Client, target: &TargetArguments) -> Result<String, Error> {
    if is_id(target) {
        return Ok(target.target.clone());
    }
    match find(client, target, Gone::Allowed).await {
        Err(Error::Problem(problem)) if problem.code == "row_invalid" => Ok(target.target.clone()),
        found => Ok(found?.id),
    }
}

pub(crate) async fn find(
    client: &Client,
    target: &TargetArguments,
    gone: Gone,
) -> Result<Resource, Error> {
    let TargetArguments { target: given, project: named } = target;
    if is_id(target) {
        return client.get(&["resources", given]).await;
    }
    let project = named.as_deref().or(client.project());
    let wanted = Listing::default().with("project", project).with("handle", Some(given.as_str()));
    let listed = client.list::<Resource>(&["resources"], wanted.clone()).await?;
    let mut found = listed.items;
    if found.is_empty() && !listed.quarantined.is_empty() {
        // It exists, and no list shows it: the server says what is wrong with its row.
        return client.get(&["resources", given]).await;
    }
    if found.is_empty() && gone == Gone::Allowed {
        found = client.list(&["resources"], wanted.show_deleted(true)).await?.items;
        // Lists are ordered by id, and ids by creation.
        found = found.pop().into_iter().collect();
    }
    if found.len() > 1 {
        let project = |resource: &Resource| {
            format!("`{}`", resource.project.as_ref().unwrap_or(&resource.project_id))
        };
        let projects: Vec<_> = found.iter().map(project).collect();
        return Err(Error::Usage(format!(
            "`{given}` names a resource in each of the projects {}; choose with --project",
            projects.join(", ")
        )));
    }
    if let Some(found) = found.pop() {
        return Ok(found);
    }
    if named.is_none() && ids_from(given).is_some() {
        match client.get(&["resources", given]).await {
            Err(Error::Problem(problem)) if problem.status == 404 => {}
            found => return found,
        }
    }
    let within = project.map(|project| format!(" in project `{project}`"));
    let handles = ("resources", "handle");
    let meant = suggest::near(client, handles, project, given).await;
    Err(Error::NotFound(format!(
        "there is no resource with the handle `{given}`{}{meant}",
        within.unwrap_or_default()
    )))
}
