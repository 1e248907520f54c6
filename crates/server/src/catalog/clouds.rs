//! Clouds.

use axum::http::StatusCode;
use slipway_app::catalog::clouds;
use slipway_core::catalog::cloud;
use slipway_wire::catalog::{Cloud, CreateCloud, UpdateCloud};

use crate::deletion;
use crate::request::{
    Answered, Body, Call, Creation, IfMatch, Made, Segments, Shown, Tagged, create_once, text,
};

pub(super) async fn create(call: Call, new: Creation<CreateCloud>) -> Made {
    let call = &call;
    let make = |body: CreateCloud, request| async move {
        let CreateCloud { name, provider, endpoint } = body;
        clouds::create(&call.context, &call.caller, &name, &provider, endpoint, request).await
    };
    let show = |id| async move { Ok(fetch(call, &id, true).await?.created(call.below(id))) };
    create_once(call, new, make, show).await
}

pub(super) async fn list(call: Call) -> Answered {
    let (page, show_deleted) = (call.query.page()?, call.query.flag("show_deleted")?);
    let found = clouds::list(&call.context, &call.caller, page, show_deleted).await?;
    Ok(call.page(found.map(document), page.limit))
}

pub(super) async fn get(call: Call, Segments([cloud]): Segments<1>) -> Shown<Cloud> {
    fetch(&call, &cloud, call.query.flag("show_deleted")?).await
}

pub(super) async fn update(
    call: Call,
    Segments([cloud]): Segments<1>,
    IfMatch(expected): IfMatch,
    Body(body): Body<UpdateCloud>,
) -> Shown<Cloud> {
    clouds::update(&call.context, &call.caller, &cloud, body.endpoint, expected).await?;
    fetch(&call, &cloud, false).await
}

pub(super) async fn delete(
    call: Call,
    Segments([cloud]): Segments<1>,
    IfMatch(expected): IfMatch,
) -> Answered {
    let reason = call.query.get("reason");
    let id = clouds::delete(&call.context, &call.caller, &cloud, reason, expected).await?;
    deletion::answer(&call, StatusCode::OK, id).await
}

async fn fetch(call: &Call, reference: impl ToString, show_deleted: bool) -> Shown<Cloud> {
    let reference = reference.to_string();
    let cloud = clouds::fetch(&call.context, &call.caller, &reference, show_deleted).await?;
    Ok(Tagged { revision: cloud.revision.0, document: document(&cloud) })
}

fn document(cloud: &cloud::Cloud) -> Cloud {
    Cloud {
        id: cloud.id.to_string(),
        name: cloud.name.to_string(),
        provider: cloud.provider.clone(),
        endpoint: cloud.endpoint.as_map().clone(),
        revision: cloud.revision.0,
        created_at: cloud.created_at.to_string(),
        updated_at: cloud.updated_at.to_string(),
        deleted_at: text(cloud.deleted_at),
        deletion_id: text(cloud.deletion_id),
    }
}
