//! Leaks: read, find, resolve, remove.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use slipway_app::deletion::leaks::{self, ScanReport};
use slipway_app::deletion::port::LeakFilter;
use slipway_app::ports::Listed;
use slipway_core::deletion::leak;
use slipway_core::ids::LeakRecordId;
use slipway_core::nearest::not_one_of;
use slipway_wire::deletion::{Leak, LeakReason, LeakScan, LeakSuspicion};

use crate::request::{Answered, Body, Call, Id, Referring, Untagged, add_names, located, text};
use crate::state::ServerState;

/// Lists open leaks unless the query asks for another state.
pub(super) async fn list(call: Call) -> Answered {
    let page = call.query.page()?;
    let filter = LeakFilter {
        open: match call.query.get("state") {
            None | Some("open") => Some(true),
            Some("resolved") => Some(false),
            Some("all") => None,
            Some(other) => {
                return Err(not_one_of("state", other, &["open", "resolved", "all"]).into());
            }
        },
        kind: call.query.text("kind"),
    };
    let found = leaks::leaks(&call.context, &call.caller, &filter, page).await?;
    let items = Listed::complete(found, page.limit, |leak| leak.id).map(document);
    call.named_page(items, page.limit).await
}

pub(super) async fn get(call: Call, Id(id): Id<LeakRecordId>) -> Untagged<Leak> {
    let found = leaks::leak(&call.context, &call.caller, id).await?;
    Ok(Json(call.named(document(&found)).await?))
}

pub(super) async fn find(call: Call, State(state): State<ServerState>) -> Untagged<Vec<LeakScan>> {
    let reports = leaks::find(&state.finder, &call.caller).await?;
    let mut scans: Vec<_> = reports.iter().map(report).collect();
    for scan in &mut scans {
        add_names(&call.context, &mut scan.leaks).await?;
    }
    Ok(Json(scans))
}

pub(super) async fn resolve(
    call: Call,
    State(state): State<ServerState>,
    Id(id): Id<LeakRecordId>,
    Body(body): Body<LeakReason>,
) -> Untagged<Leak> {
    let found = leaks::resolve(&state.finder, &call.caller, id, &body.reason).await?;
    Ok(Json(call.named(document(&found)).await?))
}

/// 200 if the object is gone, 202 while it is still terminating.
pub(super) async fn remove(
    call: Call,
    State(state): State<ServerState>,
    Id(id): Id<LeakRecordId>,
    Body(body): Body<LeakReason>,
) -> Answered {
    let found = leaks::remove(&state.finder, &call.caller, id, &body.reason).await?;
    let status = if found.is_open() { StatusCode::ACCEPTED } else { StatusCode::OK };
    let document = call.named(document(&found)).await?;
    Ok(located(status, format!("/api/v1/leaks/{id}"), Json(document)))
}

impl Referring for Leak {
    fn references(&mut self) -> Vec<(Option<&str>, &mut Option<String>)> {
        vec![(self.provisioned_resource_id.as_deref(), &mut self.resource)]
    }
}

fn document(leak: &leak::Leak) -> Leak {
    let (removal, resolved) = (leak.removal.as_ref(), leak.resolved.as_ref());
    Leak {
        id: leak.id.to_string(),
        kind: leak.kind.clone(),
        state: if leak.is_open() { "open" } else { "resolved" }.to_owned(),
        resource: None,
        provisioned_resource_id: text(leak.provisioned_resource_id()),
        cluster: leak.cluster.clone(),
        namespace: leak.object_ref.as_ref().map(|object| object.namespace.clone()),
        name: leak.object_ref.as_ref().map(|object| object.name.clone()),
        uid: leak.uid.clone(),
        found_at: leak.found_at.to_string(),
        last_seen_at: text(leak.last_seen_at),
        evidence: leak.evidence.clone(),
        remedy: leak.remedy().to_owned(),
        removal_requested_at: text(removal.map(|removal| removal.at)),
        removal_requested_by: removal.map(|removal| removal.by.clone()),
        removal_reason: removal.map(|removal| removal.reason.clone()),
        resolved_at: text(resolved.map(|resolved| resolved.at)),
        resolved_by: resolved.and_then(|resolved| resolved.by.clone()),
        resolution: resolved.and_then(|resolved| resolved.resolution.clone()),
    }
}

fn report(report: &ScanReport) -> LeakScan {
    let suspected = report.suspected.iter().map(|suspected| LeakSuspicion {
        kind: suspected.kind.to_string(),
        namespace: suspected.object_ref.namespace.clone(),
        name: suspected.object_ref.name.clone(),
        first_seen_at: suspected.first_seen_at.to_string(),
        counts_from: suspected.counts_from.to_string(),
    });
    LeakScan {
        cluster: report.cluster.clone(),
        error: report.error.clone(),
        objects: report.objects,
        foreign: report.foreign,
        unreadable: report.unreadable.clone(),
        leaks: report.leaks.iter().map(document).collect(),
        suspected: suspected.collect(),
        woken: report.woken,
        resolved: report.resolved,
    }
}
