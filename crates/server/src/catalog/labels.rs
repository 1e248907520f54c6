//! Label definitions.

use axum::http::StatusCode;
use slipway_app::catalog::labels;
use slipway_core::catalog::label;
use slipway_wire::catalog::{DefineLabel, LabelDefinition, UpdateLabel};

use crate::error::Rejection;
use crate::request::{
    Answered, Body, Call, Creation, IfMatch, Made, Segments, Shown, Tagged, create_once,
};

pub(super) async fn define(call: Call, new: Creation<DefineLabel>) -> Made {
    let call = &call;
    let make = |body: DefineLabel, request| async move {
        let DefineLabel { key, description, propagate } = body;
        labels::define(&call.context, &call.caller, &key, &description, propagate, request).await
    };
    // The location has the id: a key may contain a slash, a segment may not.
    let show = |id| async move { Ok(fetch(call, &id).await?.created(call.below(id))) };
    create_once(call, new, make, show).await
}

pub(super) async fn list(call: Call) -> Answered {
    let page = call.query.page()?;
    let found = labels::list(&call.context, &call.caller, page).await?;
    Ok(call.page(found.map(document), page.limit))
}

pub(super) async fn get(call: Call, Segments([label]): Segments<1>) -> Shown<LabelDefinition> {
    fetch(&call, &label).await
}

pub(super) async fn update(
    call: Call,
    Segments([label]): Segments<1>,
    IfMatch(expected): IfMatch,
    Body(UpdateLabel { description, propagate }): Body<UpdateLabel>,
) -> Shown<LabelDefinition> {
    let description = description.as_deref();
    labels::update(&call.context, &call.caller, &label, description, propagate, expected).await?;
    fetch(&call, &label).await
}

pub(super) async fn delete(
    call: Call,
    Segments([label]): Segments<1>,
    IfMatch(expected): IfMatch,
) -> Result<StatusCode, Rejection> {
    labels::delete(&call.context, &call.caller, &label, expected).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn fetch(call: &Call, reference: impl ToString) -> Shown<LabelDefinition> {
    let label = labels::fetch(&call.context, &call.caller, &reference.to_string()).await?;
    Ok(Tagged { revision: label.revision.0, document: document(&label) })
}

fn document(label: &label::LabelDefinition) -> LabelDefinition {
    LabelDefinition {
        id: label.id.to_string(),
        key: label.key.as_str().to_owned(),
        description: label.description.clone(),
        propagate: label.propagate,
        revision: label.revision.0,
        created_at: label.created_at.to_string(),
        updated_at: label.updated_at.to_string(),
    }
}
