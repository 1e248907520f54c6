//! Objects as documents, and what sources declared.

use axum::Json;
use axum::http::StatusCode;
use slipway_app::files::port::Source;
use slipway_app::files::read::{self, DeclaredLine};
use slipway_app::files::{apply, kind};
use slipway_app::ports::store::Page;
use slipway_core::error::Refusal;
use slipway_wire::files::{ApplySource, DeclaredObject, Document, ObjectReference, ReadDocuments};

use super::document::{document, reference, referred};
use crate::catalog::version_document;
use crate::request::{Answered, Body, Call, Done, Segments, Untagged};

pub(super) async fn documents(
    call: Call,
    Body(body): Body<ReadDocuments>,
) -> Untagged<Vec<Document>> {
    let project = read::usual_project(&call.context, &call.caller).await?;
    let addresses = body.objects.into_iter().map(|object| referred(object, &project));
    let addresses = addresses.collect::<Result<Vec<_>, _>>()?;
    let found = read::documents(&call.context, &call.caller, &addresses).await?;
    let shown = addresses.iter().zip(found).map(|(address, live)| {
        let missing = || {
            let message = format!("there is no {address}; check its name");
            Refusal::new(kind::of(address.kind).missing(), message)
        };
        let live = live.ok_or_else(missing)?;
        Ok(document(&live, |version| version_document(&live.address.name, version)))
    });
    Ok(Json(shown.collect::<Result<_, Refusal>>()?))
}

pub(super) async fn sources(call: Call) -> Answered {
    let Page { after, limit } = call.query.page::<String>()?;
    let found = read::sources(&call.context, &call.caller, after.as_deref(), limit).await?;
    Ok(call.page(found.map(source), limit))
}

fn source(source: &Source) -> ApplySource {
    ApplySource {
        name: source.name.clone(),
        objects: source.objects,
        faults: source.faults,
        updated_at: source.updated_at.to_string(),
    }
}

pub(super) async fn declared(call: Call, Segments([source]): Segments<1>) -> Answered {
    let page = call.query.page()?;
    let found = read::declared(&call.context, &call.caller, &source, page).await?;
    Ok(call.page(found.map(line), page.limit))
}

fn line(line: &DeclaredLine) -> DeclaredObject {
    let (row, updated_at) = &line.declared;
    DeclaredObject {
        object: reference(&row.address),
        id: row.subject_id.to_string(),
        fields: row.fields.keys().cloned().collect(),
        origin: row.origin.clone(),
        shared_with: line.shared_with.clone(),
        updated_at: updated_at.to_string(),
    }
}

pub(super) async fn release(call: Call, Segments([source]): Segments<1>) -> Done {
    let text = |name: &str| call.query.get(name).map(str::to_owned);
    let object = ObjectReference {
        kind: text("kind").unwrap_or_default(),
        project: text("project"),
        cloud: text("cloud"),
        name: text("name").unwrap_or_default(),
    };
    let project = read::usual_project(&call.context, &call.caller).await?;
    let address = referred(object, &project)?;
    apply::release(&call.context, &call.caller, &source, &address).await?;
    Ok(StatusCode::NO_CONTENT)
}
