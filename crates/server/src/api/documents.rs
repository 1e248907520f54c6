//! The catalog as documents, and what its handlers answer with.

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::{ETAG, LOCATION};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use slipway_app::authorise::Caller;
use slipway_app::usecases::read;
use slipway_core::catalog::blueprint as blueprints;
use slipway_core::catalog::{cloud as clouds, cluster as clusters, credential as credentials};
use slipway_core::catalog::{label as labels, project as projects};
use slipway_core::delivery as deliveries;
use slipway_core::ids::DeletionId;
use slipway_core::parameters as core_parameters;
use slipway_wire::catalog::{
    Blueprint, BlueprintDelivery, BlueprintVersion, Cloud, Cluster, ClusterAssignment,
    ClusterVerification, CompositeType, Credential, CredentialAssignment, LabelDefinition,
    Parameter, ParameterSchema, ParameterType, Project, ProviderStanding,
};

use super::convert::{self, text};
use crate::error::Rejection;
use crate::precondition::etag;
use crate::state::ServerState;

/// A document with its ETag.
pub(super) fn tagged<T: Serialize>(document: T, revision: i64) -> Response {
    ([(ETAG, etag(revision))], Json(document)).into_response()
}

/// What a deletion led to: its record, and where it is.
pub(super) async fn deleted(
    state: &ServerState,
    caller: &Caller,
    id: DeletionId,
) -> Result<Response, Rejection> {
    let deletion = read::deletion(&state.context, caller, id).await?;
    let location = [(LOCATION, format!("/api/v1/deletions/{id}"))];
    Ok((StatusCode::OK, location, Json(convert::deletion(&deletion))).into_response())
}

pub(super) fn project(project: &projects::Project) -> Project {
    Project {
        id: project.id.to_string(),
        name: project.name.to_string(),
        labels: project.labels.as_map().clone(),
        mesh_cidr: project.mesh_cidr.to_string(),
        revision: project.revision.0,
        created_at: project.created_at.to_string(),
        updated_at: project.updated_at.to_string(),
        deleted_at: text(project.deleted_at),
        deletion_id: project.deletion_id.map(|id| id.to_string()),
    }
}

pub(super) fn cloud(cloud: &clouds::Cloud) -> Cloud {
    Cloud {
        id: cloud.id.to_string(),
        name: cloud.name.to_string(),
        provider: cloud.provider.clone(),
        endpoint: cloud.endpoint.as_map().clone(),
        revision: cloud.revision.0,
        created_at: cloud.created_at.to_string(),
        updated_at: cloud.updated_at.to_string(),
        deleted_at: text(cloud.deleted_at),
        deletion_id: cloud.deletion_id.map(|id| id.to_string()),
    }
}

pub(super) fn credential(credential: &credentials::Credential) -> Credential {
    Credential {
        id: credential.id.to_string(),
        cloud_id: credential.cloud_id.to_string(),
        name: credential.name.to_string(),
        kv_mount: credential.coordinates.kv_mount.clone(),
        kv_path: credential.coordinates.kv_path.clone(),
        revision: credential.revision.0,
        created_at: credential.created_at.to_string(),
        updated_at: credential.updated_at.to_string(),
        deleted_at: text(credential.deleted_at),
        deletion_id: credential.deletion_id.map(|id| id.to_string()),
    }
}

pub(super) fn credential_assignment(
    (assignment, found): &(credentials::CredentialAssignment, credentials::Credential),
) -> CredentialAssignment {
    CredentialAssignment {
        project_id: assignment.project_id.to_string(),
        assigned_at: assignment.created_at.to_string(),
        credential: credential(found),
    }
}

pub(super) fn blueprint(blueprint: &blueprints::Blueprint) -> Blueprint {
    Blueprint {
        id: blueprint.id.to_string(),
        slug: blueprint.slug.to_string(),
        display_name: blueprint.display_name.clone(),
        description: blueprint.description.clone(),
        engine: blueprint.engine.to_string(),
        revision: blueprint.revision.0,
        created_at: blueprint.created_at.to_string(),
        updated_at: blueprint.updated_at.to_string(),
    }
}

pub(super) fn version(
    blueprint: &blueprints::Blueprint,
    version: &blueprints::PublishedVersion,
) -> BlueprintVersion {
    let content = &version.content;
    let parameters = content.parameter_schema.parameters().iter();
    BlueprintVersion {
        id: version.id.to_string(),
        blueprint_id: version.blueprint_id.to_string(),
        blueprint: blueprint.slug.to_string(),
        version: content.version.clone(),
        xrd: content.xrd.clone(),
        composition: content.composition.clone(),
        parameter_schema: ParameterSchema {
            parameters: parameters
                .map(|parameter| Parameter {
                    name: parameter.name.clone(),
                    kind: parameter_type(parameter.kind),
                    required: parameter.required,
                    default: parameter.default.clone(),
                })
                .collect(),
        },
        injection_strategy: content.injection_strategy.to_string(),
        mesh_role: content.mesh_role.to_string(),
        provider_kinds: content.provider_kinds.clone(),
        deliver: content.deliver,
        composite: version
            .composite
            .as_ref()
            .map(|composite| composite_type(&composite.composite_type)),
        revision: version.revision.0,
        published_at: version.published_at.to_string(),
        retired_at: text(version.retired_at),
    }
}

fn composite_type(kind: &slipway_core::blueprint::CompositeType) -> CompositeType {
    CompositeType {
        api_version: kind.api_version(),
        kind: kind.kind.clone(),
        plural: kind.plural.clone(),
        scope: kind.scope.to_string(),
    }
}

/// What nobody has looked at yet is Pending; so is what is wanted in another
/// version than it was looked at for.
pub(super) fn delivery(shown: &deliveries::DeliveryShown) -> BlueprintDelivery {
    let known = shown.delivery.as_ref();
    let phase = match known {
        Some(known) if shown.wanted.as_ref().is_none_or(|wanted| *wanted == known.wanted) => {
            known.phase
        }
        _ => deliveries::DeliveryPhase::Pending,
    };
    BlueprintDelivery {
        cluster: shown.cluster.clone(),
        cluster_id: shown.cluster_id.to_string(),
        wanted_version: shown.wanted.clone(),
        found_version: known.and_then(|known| known.found.clone()),
        phase: phase.to_string(),
        problem: known.and_then(|known| known.problem.clone()),
        since: text(known.map(|known| known.since)),
        updated_at: text(known.map(|known| known.updated_at)),
    }
}

fn parameter_type(kind: core_parameters::ParameterType) -> ParameterType {
    match kind {
        core_parameters::ParameterType::Boolean => ParameterType::Boolean,
        core_parameters::ParameterType::Integer => ParameterType::Integer,
        core_parameters::ParameterType::String => ParameterType::String,
    }
}

/// The other way, for what is published.
pub(super) fn given_parameter(given: Parameter) -> core_parameters::Parameter {
    core_parameters::Parameter {
        name: given.name,
        kind: match given.kind {
            ParameterType::Boolean => core_parameters::ParameterType::Boolean,
            ParameterType::Integer => core_parameters::ParameterType::Integer,
            ParameterType::String => core_parameters::ParameterType::String,
        },
        required: given.required,
        default: given.default,
    }
}

pub(super) fn label(label: &labels::LabelDefinition) -> LabelDefinition {
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

pub(super) fn cluster(cluster: &clusters::Cluster) -> Cluster {
    Cluster {
        id: cluster.id.to_string(),
        name: cluster.name.to_string(),
        engine: cluster.engine.to_string(),
        substrate_uid: cluster.substrate_uid.clone(),
        namespace_prefix: cluster.namespace_prefix.as_str().to_owned(),
        region: cluster.region.as_ref().map(ToString::to_string),
        access: cluster.access.as_ref().map(ToString::to_string),
        verification: cluster.verification.as_ref().map(|found| ClusterVerification {
            verified_at: found.at.to_string(),
            problem: found.problem.clone(),
            facts: found.facts.clone(),
        }),
        revision: cluster.revision.0,
        created_at: cluster.created_at.to_string(),
        updated_at: cluster.updated_at.to_string(),
    }
}

fn provider(standing: &slipway_core::placement::ProviderStanding) -> ProviderStanding {
    ProviderStanding {
        provider: standing.provider.clone(),
        credential_id: standing.credential_id.to_string(),
        phase: standing.phase.to_string(),
        problem: standing.problem.clone(),
    }
}

pub(super) fn cluster_assignment(place: &clusters::ClusterAssignment) -> ClusterAssignment {
    ClusterAssignment {
        project_id: place.project_id.to_string(),
        cluster_id: place.cluster_id.to_string(),
        namespace: place.namespace.clone(),
        namespace_phase: place.namespace_phase.to_string(),
        withdrawn_at: place.withdrawn_at.map(|at| at.to_string()),
        providers: place.standing.providers.iter().map(provider).collect(),
        problems: place.standing.problems.clone(),
        revision: place.revision.0,
        created_at: place.created_at.to_string(),
        updated_at: place.updated_at.to_string(),
    }
}
