//! Observes servers. What exists comes from the list in memory. What does not is proven for each
//! address: no server has its name, none names its resource, and the same token shows the
//! registered project after both answers.
//!
//! A server id that answers 404 is not enough: a create whose answer was lost has an id that
//! nobody knows. Neither is a list by label alone: somebody may have removed our labels.

use std::collections::HashMap;

use slipway_app::ports::substrate::{Address, Error};
use slipway_core::broker::observation::CompositeReport;
use slipway_core::ids::ProvisionedResourceId;
use slipway_render::composite::LABEL_PROVISIONED_RESOURCE;

use super::budget::Purpose;
use super::client::{Filter, PAGE, Session};
use super::engine::HetznerSubstrate;
use super::error::failed;
use super::shapes::Server;

/// Resources in one label selector: 36 characters each, well below the length of a URL.
const AT_ONCE: usize = 25;

pub(super) async fn observe(
    engine: &HetznerSubstrate,
    addresses: &[Address],
) -> Vec<CompositeReport> {
    match try_observe(engine, addresses).await {
        Ok(reports) => reports,
        Err(error) => {
            let unknown = CompositeReport::Unknown { reason: error.to_string() };
            vec![unknown; addresses.len()]
        }
    }
}

async fn try_observe(
    engine: &HetznerSubstrate,
    addresses: &[Address],
) -> Result<Vec<CompositeReport>, Error> {
    let session = engine.session(Purpose::Observe).await?;
    // All addresses of one engine are on one cluster.
    let registered = addresses.first().and_then(|address| address.substrate_uid.as_deref());
    engine.recently_same_project(&session, registered).await?;
    engine.servers.refresh(&engine.client(), &session, &engine.selector()).await.map_err(failed)?;
    let mut reports = HashMap::new();
    let mut missing = Vec::new();
    for (index, address) in addresses.iter().enumerate() {
        if address.substrate_uid.as_deref() != registered {
            let reason = "it is registered in another project than its neighbours".to_owned();
            reports.insert(index, CompositeReport::Unknown { reason });
            continue;
        }
        match engine.known(&session, address).await {
            Ok(Some(known)) => {
                reports.insert(index, engine.report(&known, address));
            }
            Ok(None) => missing.push((index, address)),
            Err(error) => {
                let reason = error.to_string();
                reports.insert(index, CompositeReport::Unknown { reason });
            }
        }
    }
    if !missing.is_empty() {
        look_for(engine, &session, &missing).await?;
        engine.same_project(&session, registered).await?;
        for (index, address) in missing {
            let report = match engine.known(&session, address).await? {
                Some(known) => engine.report(&known, address),
                None => CompositeReport::Absent,
            };
            reports.insert(index, report);
        }
    }
    let unknown = || CompositeReport::Unknown { reason: "it was not observed".to_owned() };
    Ok((0..addresses.len()).map(|i| reports.remove(&i).unwrap_or_else(unknown)).collect())
}

/// Asks for the servers of these addresses by name and by label, and remembers those that are
/// there.
async fn look_for(
    engine: &HetznerSubstrate,
    session: &Session,
    missing: &[(usize, &Address)],
) -> Result<(), Error> {
    let ids: Vec<_> = missing.iter().map(|(_, one)| one.provisioned_resource_id).collect();
    let mut found = Vec::new();
    for ids in ids.chunks(AT_ONCE) {
        found.extend(by_resource(session, ids).await?);
    }
    let names: Vec<_> = missing.iter().map(|(_, one)| one.name.as_str()).collect();
    found.extend(by_names(session, &names).await?);
    for server in found {
        engine.servers.answered(server, None);
    }
    Ok(())
}

async fn by_resource(
    session: &Session,
    ids: &[ProvisionedResourceId],
) -> Result<Vec<Server>, Error> {
    let ids: Vec<_> = ids.iter().map(ToString::to_string).collect();
    let selector = format!("{LABEL_PROVISIONED_RESOURCE} in ({})", ids.join(","));
    let filter = Filter { labels: Some(&selector), ..Filter::default() };
    let (mut found, mut page) = (Vec::new(), 1);
    loop {
        let listed = session.servers(filter, page).await.map_err(failed)?;
        found.extend(listed.items);
        let Some(next) = listed.next else { return Ok(found) };
        page = next;
    }
}

/// One request for each name, unless all servers of the project are fewer pages than that.
///
/// Pages move while servers go, so such a list may miss one; the request by label, which is a
/// page of its own, does not. Only a server that lost our labels in the same instant slips
/// through both, and the second proof of a deletion a lease later finds it.
async fn by_names(session: &Session, names: &[&str]) -> Result<Vec<Server>, Error> {
    let mut found = Vec::new();
    if names.len() > 2 {
        let first = session.servers(Filter::default(), 1).await.map_err(failed)?;
        let pages = first.total.map_or(u64::MAX, |total| total.div_ceil(PAGE));
        if pages <= u64::try_from(names.len()).unwrap_or(u64::MAX) {
            let (mut all, mut next) = (first.items, first.next);
            while let Some(page) = next {
                let listed = session.servers(Filter::default(), page).await.map_err(failed)?;
                all.extend(listed.items);
                next = listed.next;
            }
            all.retain(|server| names.contains(&&*server.name));
            return Ok(all);
        }
    }
    for name in names {
        let filter = Filter { name: Some(name), ..Filter::default() };
        found.extend(session.servers(filter, 1).await.map_err(failed)?.items);
    }
    Ok(found)
}
