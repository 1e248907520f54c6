//! Lists every composite on a cluster, page by page, kind after kind. The cursor
//! is the name of the kind and the server's continue token.

use serde_json::json;
use slipway_app::ports::substrate::{InventoryPage, InventoryRequest};
use slipway_cluster::{Facts, Listing};
use slipway_core::catalog::blueprint_version::CompositeType;
use slipway_core::deletion::leak::{Found, ObjectRef};

use super::engine::{CrossplaneSubstrate, resource};
use super::live_object::LiveObject;

/// One page. Checks the identity of the cluster before and after.
pub(super) async fn page(
    engine: &CrossplaneSubstrate,
    request: &InventoryRequest,
) -> Result<InventoryPage, String> {
    let recorded = request.substrate_uid.as_deref();
    engine.same_cluster(recorded).await.map_err(|error| error.to_string())?;
    let cursor = request.after.as_deref().map(parse_cursor).transpose()?;
    let (first, token) = cursor.unwrap_or_default();
    let kinds = engine.kinds();
    if kinds.is_empty() {
        let problem = "no kind of composite is known yet, so nothing can be listed; the scan is repeated once a resource was observed";
        return Err(problem.to_owned());
    }
    let mut left: Vec<_> = kinds.iter().map(|kind| &kind.composite_type).collect();
    left.retain(|kind| name(kind) >= first);
    left.sort_by_key(|kind| name(kind));
    let mut left = left.into_iter();
    let mut answer = InventoryPage::default();
    let Some(kind) = left.next() else {
        return Ok(answer);
    };
    // The token of a kind that is gone by now does not fit the next kind.
    let token = token.filter(|_| name(kind) == first);
    let limit = u32::try_from(request.limit).unwrap_or(u32::MAX);
    // No label selector: objects of other installations are counted.
    let resource = resource(kind);
    let listed = engine.connection().list_page(Listing::all(&resource), limit, token).await;
    let listed = listed.map_err(|error| error.to_string())?;
    for object in &listed.items {
        let metadata = &object.metadata;
        let object_ref = ObjectRef {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
        };
        match LiveObject::parse(object) {
            Some(found) if engine.foreign(&found, "").is_some() => answer.foreign += 1,
            Some(found) => {
                let live = found.live();
                answer.found.push(Found {
                    object_ref,
                    uid: live.uid,
                    provisioned_resource_id: found.owner,
                    claim_token: found.claim_token,
                    group: found.group,
                    evidence: json!({ "object": live.evidence, "installation": engine.installation() }),
                });
            }
            None => answer.unreadable.push((object_ref, "it has no uid".to_owned())),
        }
    }
    answer.next = match listed.next {
        Some(token) => Some(format!("{}/{token}", name(kind))),
        None => left.next().map(|next| format!("{}/", name(next))),
    };
    engine.same_cluster(recorded).await.map_err(|error| error.to_string())?;
    Ok(answer)
}

/// Orders the kinds, also if the engine learns of more between two pages.
/// Contains no slash.
fn name(kind: &CompositeType) -> String {
    format!("{}.{}.{}", kind.group, kind.version, kind.plural)
}

/// The kind to continue with, and the server's token for its next page.
fn parse_cursor(text: &str) -> Result<(String, Option<String>), String> {
    let wrong = || format!("`{text}` is no cursor of this inventory");
    let (kind, token) = text.split_once('/').ok_or_else(wrong)?;
    Ok((kind.to_owned(), Some(token.to_owned()).filter(|token| !token.is_empty())))
}
