//! Which resource is meant: an id is one, a handle is looked up.

use slipway_core::ids::ResourceId;
use slipway_wire::api::{Resource, ResourceDetail};

use super::suggest;
use crate::arguments::TargetArguments;
use crate::client::{Client, ResourceQuery};
use crate::error::Error;

/// Whether one that is gone may be meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gone {
    /// For looking: the newest of that handle, if none is left.
    Allowed,
    /// For acting: a handle means what is there.
    Refused,
}

fn is_id(target: &TargetArguments) -> bool {
    target.target.parse::<ResourceId>().is_ok()
}

/// The same with all that is known of it.
pub(super) async fn find_whole(
    client: &Client,
    target: &TargetArguments,
) -> Result<ResourceDetail, Error> {
    let id = if is_id(target) {
        target.target.clone()
    } else {
        find(client, target, Gone::Allowed).await?.id
    };
    client.fetch(&["resources", &id]).await
}

pub(super) async fn find(
    client: &Client,
    target: &TargetArguments,
    gone: Gone,
) -> Result<Resource, Error> {
    if is_id(target) {
        return client.resource_get(&target.target).await;
    }
    let mut query = ResourceQuery {
        project: target.project.clone(),
        handle: Some(target.target.clone()),
        ..ResourceQuery::default()
    };
    let mut found = client.resource_list(&query, None).await?.items;
    if found.is_empty() && gone == Gone::Allowed {
        query.show_deleted = true;
        found = client.resource_list(&query, None).await?.items;
        // Ids are in the order of their making, and so is the list.
        found = found.pop().into_iter().collect();
    }
    if found.len() > 1 {
        let projects: Vec<_> = found.iter().map(|resource| resource.project_id.as_str()).collect();
        return Err(Error::Usage(format!(
            "`{}` names a resource in each of the projects {}; choose with --project",
            target.target,
            projects.join(", ")
        )));
    }
    if let Some(found) = found.pop() {
        return Ok(found);
    }
    let place = target.project.as_ref().map(|project| format!(" in project `{project}`"));
    let meant = suggest::handle(client, &target.target, target.project.as_ref()).await;
    Err(Error::NotFound(format!(
        "there is no resource with the handle `{}`{}{meant}",
        target.target,
        place.unwrap_or_default()
    )))
}
