//! Blueprints and their versions.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use slipway_app::ports::store::Page;
use slipway_app::usecases::catalog::blueprints;
use slipway_core::catalog::blueprint::GivenContent;
use slipway_core::ids::{BlueprintId, BlueprintVersionId, ClusterId};
use slipway_wire::catalog::{CreateBlueprint, PublishVersion, UpdateBlueprint};

use super::documents::{self, tagged};
use super::list::page;
use crate::error::Rejection;
use crate::extract::{Authenticated, Body, Segments};
use crate::once::{self, Creation};
use crate::precondition::IfMatch;
use crate::query::Parameters;
use crate::state::ServerState;

const PATH: &str = "/api/v1/blueprints";

pub(super) async fn create(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    parameters: Parameters,
    Creation { body, claim }: Creation<CreateBlueprint>,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    let (context, caller) = (&state.context, &caller);
    let create = |request| async {
        let CreateBlueprint { slug, display_name, description, engine } = body;
        let input = blueprints::CreateBlueprint { slug, display_name, description, engine };
        Ok(blueprints::create(context, caller, input, request).await?.as_uuid())
    };
    let show = |id: uuid::Uuid| async move {
        let blueprint = blueprints::fetch(context, caller, &id.to_string()).await?;
        let document = documents::blueprint(&blueprint);
        let location = format!("{PATH}/{id}");
        Ok(once::answer(StatusCode::CREATED, &document, location, document.revision))
    };
    once::once(&state, caller, claim, create, show).await
}

pub(super) async fn list(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    mut parameters: Parameters,
) -> Result<Response, Rejection> {
    let wanted: Page<BlueprintId> = parameters.take_page()?;
    parameters.finish()?;
    let found = blueprints::list(&state.context, &caller, wanted).await?;
    let items = found.map(documents::blueprint);
    Ok(page(items, PATH, wanted.limit, &[]))
}

pub(super) async fn get(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Segments([reference]): Segments<1>,
    parameters: Parameters,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    let blueprint = blueprints::fetch(&state.context, &caller, &reference).await?;
    Ok(tagged(documents::blueprint(&blueprint), blueprint.revision.0))
}

pub(super) async fn update(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Segments([reference]): Segments<1>,
    IfMatch(expected): IfMatch,
    parameters: Parameters,
    Body(body): Body<UpdateBlueprint>,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    let (name, description) = (body.display_name.as_deref(), body.description.as_deref());
    let context = &state.context;
    blueprints::update(context, &caller, &reference, name, description, expected).await?;
    let blueprint = blueprints::fetch(context, &caller, &reference).await?;
    Ok(tagged(documents::blueprint(&blueprint), blueprint.revision.0))
}

/// The same version with the same content is answered as if it were new.
pub(super) async fn publish(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Segments([reference]): Segments<1>,
    parameters: Parameters,
    Creation { body, claim }: Creation<PublishVersion>,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    let (context, caller, reference) = (&state.context, &caller, &reference);
    let create = |request| async {
        let parameters = body.parameter_schema.parameters.into_iter();
        let given = GivenContent {
            version: body.version,
            xrd: body.xrd,
            composition: body.composition,
            parameters: parameters.map(documents::given_parameter).collect(),
            injection_strategy: body.injection_strategy,
            mesh_role: body.mesh_role,
            provider_kinds: body.provider_kinds,
            deliver: body.deliver,
        };
        Ok(blueprints::publish(context, caller, reference, given, request).await?.as_uuid())
    };
    let show = |id: uuid::Uuid| async move {
        let found = blueprints::version(context, caller, reference, &id.to_string()).await?;
        let document = documents::version(&found.0, &found.1);
        let location = format!("{PATH}/{}/versions/{}", document.blueprint, document.version);
        Ok(once::answer(StatusCode::CREATED, &document, location, document.revision))
    };
    once::once(&state, caller, claim, create, show).await
}

pub(super) async fn versions(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Segments([reference]): Segments<1>,
    mut parameters: Parameters,
) -> Result<Response, Rejection> {
    let wanted: Page<BlueprintVersionId> = parameters.take_page()?;
    parameters.finish()?;
    let context = &state.context;
    let (blueprint, found) = blueprints::versions(context, &caller, &reference, wanted).await?;
    let items = found.map(|version| documents::version(&blueprint, version));
    let path = format!("{PATH}/{}/versions", blueprint.slug);
    Ok(page(items, &path, wanted.limit, &[]))
}

pub(super) async fn version(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Segments([reference, wanted]): Segments<2>,
    parameters: Parameters,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    let found = blueprints::version(&state.context, &caller, &reference, &wanted).await?;
    Ok(tagged(documents::version(&found.0, &found.1), found.1.revision.0))
}

/// Where it is to be and where it is, skew shown.
pub(super) async fn deliveries(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Segments([reference]): Segments<1>,
    mut parameters: Parameters,
) -> Result<Response, Rejection> {
    let wanted: Page<ClusterId> = parameters.take_page()?;
    parameters.finish()?;
    let context = &state.context;
    let (blueprint, found) = blueprints::deliveries(context, &caller, &reference, wanted).await?;
    let items = found.map(documents::delivery);
    let path = format!("{PATH}/{}/deliveries", blueprint.slug);
    Ok(page(items, &path, wanted.limit, &[]))
}

/// Retiring twice is the same as once.
pub(super) async fn retire(
    State(state): State<ServerState>,
    Authenticated(caller): Authenticated,
    Segments([reference, wanted]): Segments<2>,
    IfMatch(expected): IfMatch,
    parameters: Parameters,
) -> Result<Response, Rejection> {
    parameters.finish()?;
    let context = &state.context;
    blueprints::retire(context, &caller, &reference, &wanted, expected).await?;
    let found = blueprints::version(context, &caller, &reference, &wanted).await?;
    Ok(tagged(documents::version(&found.0, &found.1), found.1.revision.0))
}
