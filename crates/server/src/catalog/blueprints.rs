//! Blueprints and their versions.

use axum::http::StatusCode;
use serde_json::Value;
use slipway_app::catalog::blueprints;
use slipway_app::catalog::port::BlueprintKey;
use slipway_app::deletion::request;
use slipway_core::catalog::blueprint::{self, SubmittedContent};
use slipway_core::catalog::blueprint_version as composites;
use slipway_core::error::Refusal;
use slipway_core::text::check_reference;
use slipway_wire::catalog::{
    Blueprint, BlueprintVersion, CompositeType, CreateBlueprint, ParameterSchema, PublishVersion,
    UpdateBlueprint,
};

use crate::deletion;
use crate::request::{
    Answered, Body, Call, Creation, Documented, IfMatch, Made, Referring, Segments, Shown, Tagged,
    create_once, delete_options, kind, text,
};

pub(super) async fn create(call: Call, new: Creation<CreateBlueprint>) -> Made {
    let make = async |body: CreateBlueprint, request| {
        let CreateBlueprint { slug, display_name, description, engine, protected } = body;
        let input =
            blueprints::CreateBlueprint { slug, display_name, description, engine, protected };
        blueprints::create(&call.context, &call.caller, input, request).await
    };
    kind::create::<blueprint::Blueprint, _>(&call, new, make).await
}

pub(super) async fn update(
    call: Call,
    Segments([blueprint]): Segments<1>,
    IfMatch(expected): IfMatch,
    Body(body): Body<UpdateBlueprint>,
) -> Shown<Blueprint> {
    let (name, description) = (body.display_name.as_deref(), body.description.as_deref());
    let (context, caller) = (&call.context, &call.caller);
    blueprints::update(context, caller, &blueprint, name, description, expected).await?;
    kind::show::<blueprint::Blueprint>(&call, blueprint, false).await
}

pub(super) async fn delete(
    call: Call,
    Segments([blueprint]): Segments<1>,
    IfMatch(expected): IfMatch,
) -> Answered {
    check_reference("blueprint", &blueprint).map_err(Refusal::from)?;
    let options = delete_options(&call.query, expected)?;
    let key = BlueprintKey { blueprint, version: None };
    let id =
        request::delete::<blueprint::Blueprint>(&call.context, &call.caller, &key, options).await?;
    deletion::answer(&call, StatusCode::OK, id).await
}

/// Publishing the same version and content again is answered as a create.
pub(super) async fn publish(
    call: Call,
    Segments([blueprint]): Segments<1>,
    new: Creation<PublishVersion>,
) -> Made {
    let make = async |body: PublishVersion, request| {
        let content = submitted_content(body);
        blueprints::publish(&call.context, &call.caller, &blueprint, content, request).await
    };
    let show = async |id: uuid::Uuid| {
        let made = fetch_version(&call, &blueprint, &id.to_string()).await?;
        let BlueprintVersion { blueprint, version, .. } = &made.document;
        let location = format!("/api/v1/blueprints/{blueprint}/versions/{version}");
        Ok(made.created(location))
    };
    create_once(&call, new, make, show).await
}

pub(super) async fn versions(call: Call, Segments([blueprint]): Segments<1>) -> Answered {
    let (page, deleted) = (call.query.page()?, call.query.flag("show_deleted")?);
    let (blueprint, found) =
        blueprints::versions(&call.context, &call.caller, &blueprint, page, deleted).await?;
    let items = found.map(|version| version_document(blueprint.slug.as_str(), version));
    Ok(call.page(items, page.limit))
}

pub(super) async fn version(
    call: Call,
    Segments([blueprint, version]): Segments<2>,
) -> Shown<BlueprintVersion> {
    fetch_version(&call, &blueprint, &version).await
}

/// Retiring is idempotent.
pub(super) async fn retire(
    call: Call,
    Segments([blueprint, version]): Segments<2>,
    IfMatch(expected): IfMatch,
) -> Shown<BlueprintVersion> {
    blueprints::retire(&call.context, &call.caller, &blueprint, &version, expected).await?;
    fetch_version(&call, &blueprint, &version).await
}

async fn fetch_version(call: &Call, blueprint: &str, version: &str) -> Shown<BlueprintVersion> {
    let deleted = call.query.flag("show_deleted")?;
    let (blueprint, version) =
        blueprints::version(&call.context, &call.caller, blueprint, version, deleted).await?;
    let document = version_document(blueprint.slug.as_str(), &version);
    Ok(Tagged { revision: version.revision.0, document })
}

impl Referring for Blueprint {}

impl Documented for blueprint::Blueprint {
    type Document = Blueprint;

    fn document(&self) -> Blueprint {
        Blueprint {
            id: self.id.to_string(),
            slug: self.slug.to_string(),
            display_name: self.display_name.clone(),
            description: self.description.clone(),
            engine: self.engine.to_string(),
            revision: self.revision.0,
            created_at: self.created_at.to_string(),
            updated_at: self.updated_at.to_string(),
            deleted_at: text(self.deleted_at),
            deletion_id: text(self.deletion_id),
        }
    }
}

pub(crate) fn version_document(
    slug: &str,
    version: &blueprint::PublishedVersion,
) -> BlueprintVersion {
    let content = &version.content;
    let schema = content.parameter_schema.document().as_object();
    let composite = version.composite.as_ref();
    BlueprintVersion {
        id: version.id.to_string(),
        blueprint_id: version.blueprint_id.to_string(),
        blueprint: slug.to_owned(),
        version: content.version.clone(),
        xrd: content.xrd.clone(),
        composition: content.composition.clone(),
        parameter_schema: ParameterSchema(schema.cloned().unwrap_or_default()),
        injection_strategy: content.injection_strategy.to_string(),
        mesh_role: content.mesh_role.to_string(),
        provider_kinds: content.provider_kinds.clone(),
        install_definitions: content.install_definitions,
        composition_name: version.composition_name.clone(),
        surge: content.surge,
        composite: composite.map(|composite| composite_type(&composite.composite_type)),
        revision: version.revision.0,
        published_at: version.published_at.to_string(),
        retired_at: text(version.retired_at),
    }
}

fn composite_type(kind: &composites::CompositeType) -> CompositeType {
    CompositeType {
        api_version: kind.api_version(),
        kind: kind.kind.clone(),
        plural: kind.plural.clone(),
        scope: kind.scope.to_string(),
    }
}

/// The reverse, for publishing; clients check it as the server does.
pub fn submitted_content(body: PublishVersion) -> SubmittedContent {
    SubmittedContent {
        version: body.version,
        xrd: body.xrd,
        composition: body.composition,
        parameters: body.parameter_schema.map(|schema| Value::Object(schema.0)),
        injection_strategy: body.injection_strategy,
        mesh_role: body.mesh_role,
        provider_kinds: body.provider_kinds,
        install_definitions: body.install_definitions,
        surge: body.surge,
    }
}
