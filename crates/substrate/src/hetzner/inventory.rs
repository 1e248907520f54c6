//! Lists every server of the project, or of one group, page by page. The cursor is the number of the page and
//! how many servers there were: a page of a list that changed meanwhile might leave one out, so
//! the scan is then an error and is repeated.

use serde_json::json;
use slipway_app::ports::substrate::{Error, InventoryPage, InventoryRequest};
use slipway_core::deletion::leak::{Found, ObjectRef};
use slipway_core::ids::GroupId;

use super::budget::Purpose;
use super::client::Filter;
use super::engine::{HetznerSubstrate, evidence};
use super::error::failed;
use super::labels;

/// One page of all servers. No label selector: servers of others are counted.
pub(super) async fn page(
    engine: &HetznerSubstrate,
    request: &InventoryRequest,
) -> Result<InventoryPage, Error> {
    listed(engine, Purpose::Background, Filter::default(), request).await
}

/// One page of the servers of a group. A gate decides by it, so it counts as an observation.
pub(super) async fn group_page(
    engine: &HetznerSubstrate,
    group: GroupId,
    request: &InventoryRequest,
) -> Result<InventoryPage, Error> {
    let selector = labels::of_group(group);
    let filter = Filter { labels: Some(&selector), ..Filter::default() };
    listed(engine, Purpose::Urgent, filter, request).await
}

/// One page, no larger than the API's. Checks the identity of the project before and after.
async fn listed(
    engine: &HetznerSubstrate,
    purpose: Purpose,
    filter: Filter<'_>,
    request: &InventoryRequest,
) -> Result<InventoryPage, Error> {
    let registered = request.substrate_uid.as_deref();
    let (number, counted) = match request.after.as_deref() {
        None => (1, None),
        Some(cursor) => parse_cursor(cursor)?,
    };
    let session = engine.session(purpose).await?;
    engine.recently_same_project(&session, registered).await?;
    let size = u64::try_from(request.limit).unwrap_or(u64::MAX);
    let listed = session.few_servers(filter, number, size).await.map_err(failed)?;
    if counted.is_some() && counted != listed.total {
        let problem = "servers came or went while they were listed; the scan is repeated";
        return Err(Error::Failed(problem.to_owned()));
    }
    let mut answer = InventoryPage::default();
    for server in &listed.items {
        if engine.foreign(server).is_some() {
            answer.foreign += 1;
            continue;
        }
        answer.found.push(Found {
            object_ref: ObjectRef {
                namespace: labels::namespace(&server.labels).unwrap_or_default().to_owned(),
                name: server.name.clone(),
            },
            uid: server.id.to_string(),
            provisioned_resource_id: labels::owner(&server.labels),
            claim_token: labels::claim_token(&server.labels),
            group: labels::group(&server.labels),
            evidence: json!({ "object": evidence(server), "installation": engine.installation }),
        });
    }
    answer.next = listed.next.map(|next| match listed.total {
        Some(total) => format!("{next}/{total}"),
        None => format!("{next}/"),
    });
    engine.same_project(&session, registered).await?;
    Ok(answer)
}

fn parse_cursor(text: &str) -> Result<(u64, Option<u64>), Error> {
    let wrong = || Error::Failed(format!("`{text}` is no cursor of this inventory"));
    let (page, total) = text.split_once('/').ok_or_else(wrong)?;
    let total = match total {
        "" => None,
        total => Some(total.parse().map_err(|_| wrong())?),
    };
    Ok((page.parse().map_err(|_| wrong())?, total))
}
