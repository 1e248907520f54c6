//! Deployment objects.

use axum::Json;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::response::IntoResponse;
use slipway_app::fleet::objects;
use slipway_app::ports::Listed;
use slipway_core::error::Refusal;
use slipway_core::fleet::content::CONTENT_MAX;
use slipway_core::fleet::object;
use slipway_core::ids::{DeploymentObjectId, StackId};
use slipway_wire::fleet::{CreateDeploymentObjectRequest, DeploymentObject, RollBackStack};

use super::lists;
use crate::request::{
    Answered, Body, Call, Created, Creation, Done, Id, Made, create_once, located, parse_json,
    read_body_up_to, text,
};

/// The longest body: JSON writes a line break as two bytes.
pub(super) const BODY_MAX: usize = 2 * CONTENT_MAX + 65_536;

pub(super) async fn list(call: Call, Id(stack): Id<StackId>) -> Answered {
    let mut pages = lists::Pages::new(&call)?;
    while let Some(page) = pages.next() {
        let limit = page.limit;
        let found = objects::list(&call.context, &call.caller, stack, page).await?;
        let found = Listed::complete(found, limit, |object| object.sequence);
        pages.add(found.map(document));
    }
    Ok(pages.answer())
}

/// JSON, or the content itself as `application/yaml`.
pub(super) async fn submit(call: Call, Id(stack): Id<StackId>, request: Request) -> Made {
    let is_marker = call.query.flag("deletion_marker")?;
    let new = match is_yaml(request.headers(), CONTENT_TYPE) {
        true => Creation::read(request, BODY_MAX, plain).await?,
        false => Creation::read_json(request, BODY_MAX).await?,
    };
    let make = async |body: CreateDeploymentObjectRequest, request| {
        let is_marker = is_marker || body.is_deletion_marker;
        let submitted = (body.yaml_content.as_str(), is_marker);
        objects::submit(&call.context, &call.caller, stack, submitted, request).await
    };
    made(&call, new, make).await
}

fn plain(bytes: &[u8]) -> Result<CreateDeploymentObjectRequest, Refusal> {
    let content = std::str::from_utf8(bytes);
    let content = content.map_err(|_| Refusal::invalid("yaml_content", "is not UTF-8"))?;
    let yaml_content = content.to_owned();
    Ok(CreateDeploymentObjectRequest { is_deletion_marker: false, yaml_content })
}

/// Makes an object and answers it.
pub(super) async fn made<B>(
    call: &Call,
    new: Creation<B>,
    make: impl AsyncFnOnce(
        B,
        Option<slipway_core::access::idempotency::Request>,
    ) -> Result<DeploymentObjectId, slipway_app::Error>,
) -> Made {
    let show = async |id| {
        let id = DeploymentObjectId::new(id);
        let found = objects::fetch(&call.context, &call.caller, id).await?;
        Ok(Created::new(&document(&found), format!("/api/v1/deployment-objects/{id}"), None))
    };
    create_once(call, new, make, show).await
}

/// JSON, or the content itself to those who accept `application/yaml` alone.
pub(super) async fn get(
    call: Call,
    Id(id): Id<DeploymentObjectId>,
    headers: HeaderMap,
) -> Answered {
    let found = objects::fetch(&call.context, &call.caller, id).await?;
    if is_yaml(&headers, ACCEPT) {
        return Ok(([(CONTENT_TYPE, "application/yaml")], found.content).into_response());
    }
    Ok(Json(document(&found)).into_response())
}

pub(super) async fn withdraw(call: Call, Id(id): Id<DeploymentObjectId>) -> Done {
    objects::withdraw(&call.context, &call.caller, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Submits the content of an older object again.
pub(super) async fn roll_back(
    call: Call,
    Id(stack): Id<StackId>,
    Body(body): Body<RollBackStack>,
) -> Answered {
    let sequence = body.sequence_id;
    let id = objects::roll_back(&call.context, &call.caller, stack, sequence).await?;
    let found = objects::fetch(&call.context, &call.caller, id).await?;
    let location = format!("/api/v1/deployment-objects/{id}");
    Ok(located(StatusCode::CREATED, location, Json(document(&found))))
}

fn is_yaml(headers: &HeaderMap, name: axum::http::HeaderName) -> bool {
    let given = headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = given.split([';', ',']).next().unwrap_or_default().trim().to_ascii_lowercase();
    ["application/yaml", "application/x-yaml", "text/yaml"].contains(&essence.as_str())
}

pub(super) fn document(object: &object::DeploymentObject) -> DeploymentObject {
    DeploymentObject {
        created_at: object.submitted_at.to_string(),
        deleted_at: text(object.deleted_at),
        id: object.id.to_string(),
        is_deletion_marker: object.is_marker,
        keep: object.keeps,
        per_agent: object.per_agent.is_some(),
        sequence_id: object.sequence,
        stack_id: object.stack_id.to_string(),
        submitted_at: object.submitted_at.to_string(),
        updated_at: object.withdrawn_at.unwrap_or(object.submitted_at).to_string(),
        yaml_checksum: object.checksum.clone(),
        yaml_content: object.content.clone(),
    }
}

/// Reads a JSON body that may have a content.
pub(super) async fn large<T: serde::de::DeserializeOwned>(
    request: Request,
) -> Result<T, crate::error::Rejection> {
    let bytes = read_body_up_to(request, BODY_MAX).await?;
    Ok(parse_json(&bytes)?)
}
