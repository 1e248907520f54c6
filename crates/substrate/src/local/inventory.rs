//! Lists every node directory below a root, page by page. Reads only.
//!
//! Each page lists the root anew: nothing is kept between two pages, and the next
//! scan finds what appeared or disappeared meanwhile. So the cost of a scan grows
//! with the square of the number of pages, which is fine for a few scans an hour.

use std::io;
use std::path::Path;

use serde_json::json;
use slipway_app::ports::substrate::{InventoryPage, InventoryRequest};
use slipway_core::deletion::leak::{Found, ObjectRef};
use slipway_render::composite;

use super::node::{self, Object};
use super::process;
use super::root::Root;

/// One page. Checks the identity of the root before and after: if the root went
/// away in between, everything looked gone.
pub(super) fn page(
    root: &Root,
    installation: &str,
    request: &InventoryRequest,
) -> Result<InventoryPage, String> {
    let recorded = request.substrate_uid.as_deref();
    sure(root, recorded)?;
    let after = request.after.as_deref().map(parse_cursor).transpose()?;
    let mut objects = root
        .objects(after.as_ref())
        .map_err(|error| format!("the substrate root cannot be listed: {error}"))?;
    let more = objects.len() > request.limit;
    objects.truncate(request.limit);
    let mut page = InventoryPage {
        next: objects.last().filter(|_| more).map(cursor),
        ..InventoryPage::default()
    };
    for object_ref in objects {
        let Some(directory) = root.node(&object_ref.namespace, &object_ref.name) else {
            continue;
        };
        match observe(&directory, installation, &object_ref) {
            Ok(Entry::Gone) => {}
            Ok(Entry::Foreign) => page.foreign += 1,
            Ok(Entry::Ours(found)) => page.found.push(*found),
            Err(error) => page.unreadable.push((object_ref, error.to_string())),
        }
    }
    sure(root, recorded)?;
    Ok(page)
}

fn sure(root: &Root, recorded: Option<&str>) -> Result<(), String> {
    root.observe().doubt(recorded).map_or(Ok(()), Err)
}

/// Names contain no slash, so a slash separates them.
fn cursor(object_ref: &ObjectRef) -> String {
    format!("{}/{}", object_ref.namespace, object_ref.name)
}

fn parse_cursor(text: &str) -> Result<ObjectRef, String> {
    let (namespace, name) =
        text.split_once('/').ok_or_else(|| format!("`{text}` is no cursor of this inventory"))?;
    Ok(ObjectRef { namespace: namespace.to_owned(), name: name.to_owned() })
}

enum Entry {
    /// It was deleted since it was listed.
    Gone,
    Foreign,
    Ours(Box<Found>),
}

fn observe(directory: &Path, installation: &str, object_ref: &ObjectRef) -> io::Result<Entry> {
    let Some(object) = Object::read(directory)? else {
        return Ok(Entry::Gone);
    };
    if composite::installation(object.value()) != Some(installation) {
        return Ok(Entry::Foreign);
    }
    let holder = process::holder(directory)?;
    Ok(Entry::Ours(Box::new(Found {
        object_ref: object_ref.clone(),
        uid: object.uid().to_owned(),
        provisioned_resource_id: object.provisioned_resource().and_then(|id| id.parse().ok()),
        claim_token: composite::claim_token(object.value()),
        group: composite::group(object.value()),
        evidence: json!({
            "directory": directory.display().to_string(),
            "pid": holder.pid().map(|pid| pid.as_raw_nonzero().get()),
            "running": holder != process::Holder::Nobody,
            "terminating": node::is_terminating(directory)?,
        }),
    })))
}
