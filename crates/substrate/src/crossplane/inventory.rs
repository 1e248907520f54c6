//! Everything of this installation on a cluster, page by page, kind after
//! kind. The cursor is the number of the kind and the server's own token.

use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::json;
use slipway_app::ports::substrate::{InventoryPage, InventoryRequest};
use slipway_core::leak::{Found, Place};

use super::engine::CrossplaneSubstrate;
use super::fold::Entry;
use super::trouble;

/// One page. Which cluster it is, is asked before and after.
pub(super) async fn page(
    engine: &CrossplaneSubstrate,
    request: &InventoryRequest,
) -> Result<InventoryPage, String> {
    let recorded = request.substrate_uid.as_deref();
    engine.same_cluster(recorded).await?;
    let (number, token) = request.after.as_deref().map_or(Ok((0, None)), parse_cursor)?;
    let kinds = engine.kinds();
    let mut answer = InventoryPage::default();
    let Some(kind) = kinds.get(number) else {
        return Ok(answer);
    };
    let limit = u32::try_from(request.limit).unwrap_or(u32::MAX);
    let mut parameters = ListParams::default().labels(&engine.selector()).limit(limit);
    parameters.continue_token = token;
    let listed = engine.everywhere(&kind.composite_type).await?.list(&parameters).await;
    let what = format!("list {}", kind.composite_type.plural);
    let listed = listed.map_err(|error| trouble::describe(&what, &error))?;
    for object in &listed.items {
        let place =
            Place { namespace: object.namespace().unwrap_or_default(), name: object.name_any() };
        match Entry::of(object) {
            Some(entry) => {
                let live = entry.live();
                answer.found.push(Found {
                    place,
                    uid: live.uid,
                    provisioned_resource_id: entry.owner,
                    claim_token: entry.claim_token,
                    evidence: json!({ "object": live.evidence, "installation": engine.installation() }),
                });
            }
            None => answer.unreadable.push((place, "it has no uid".to_owned())),
        }
    }
    let more = listed.metadata.continue_.filter(|token| !token.is_empty());
    answer.next = match more {
        Some(token) => Some(format!("{number}/{token}")),
        None => (number + 1 < kinds.len()).then(|| format!("{}/", number + 1)),
    };
    engine.same_cluster(recorded).await?;
    Ok(answer)
}

fn parse_cursor(text: &str) -> Result<(usize, Option<String>), String> {
    let wrong = || format!("`{text}` is no cursor of this inventory");
    let (number, token) = text.split_once('/').ok_or_else(wrong)?;
    let token = Some(token.to_owned()).filter(|token| !token.is_empty());
    Ok((number.parse().map_err(|_| wrong())?, token))
}
