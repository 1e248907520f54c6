//! The catalog: lists a line each, and one thing with all that is known of it.

use serde_json::Value;
use slipway_wire::catalog::{
    Blueprint, BlueprintDelivery, BlueprintVersion, Cloud, Cluster, ClusterAssignment, Credential,
    CredentialAssignment, LabelDefinition, Parameter, ParameterType, Project, ProviderStanding,
};

use super::details::pairs;
use super::table::{facts, optional_time, or_dash, rows, time};
use crate::commands::catalog::import::Entry;

pub(crate) fn projects(projects: &[Project], width: Option<u16>) -> String {
    let line = |project: &Project| {
        let labels = pairs(&project.labels);
        vec![
            project.name.clone(),
            or_dash(Some(labels.as_str()).filter(|labels| !labels.is_empty())),
            time(&project.created_at),
            or_dash(optional_time(project.deleted_at.as_ref()).as_deref()),
            project.id.clone(),
        ]
    };
    let headings = ["NAME", "LABELS", "CREATED", "DELETED", "ID"];
    rows(&headings, projects.iter().map(line).collect(), width)
}

pub(crate) fn project(project: &Project, width: Option<u16>) -> String {
    facts(
        vec![
            ("name", Some(project.name.clone())),
            ("id", Some(project.id.clone())),
            ("labels", Some(pairs(&project.labels))),
            ("mesh", Some(project.mesh_cidr.clone())),
            ("created", Some(time(&project.created_at))),
            ("deleted", optional_time(project.deleted_at.as_ref())),
            ("deletion", project.deletion_id.clone()),
            ("revision", Some(project.revision.to_string())),
        ],
        width,
    )
}

pub(crate) fn clouds(clouds: &[Cloud], width: Option<u16>) -> String {
    let line = |cloud: &Cloud| {
        let endpoint = endpoint(cloud);
        vec![
            cloud.name.clone(),
            cloud.provider.clone(),
            or_dash(Some(endpoint.as_str()).filter(|endpoint| !endpoint.is_empty())),
            or_dash(optional_time(cloud.deleted_at.as_ref()).as_deref()),
            cloud.id.clone(),
        ]
    };
    let headings = ["NAME", "PROVIDER", "ENDPOINT", "DELETED", "ID"];
    rows(&headings, clouds.iter().map(line).collect(), width)
}

pub(crate) fn cloud(cloud: &Cloud, width: Option<u16>) -> String {
    facts(
        vec![
            ("name", Some(cloud.name.clone())),
            ("id", Some(cloud.id.clone())),
            ("provider", Some(cloud.provider.clone())),
            ("endpoint", Some(endpoint(cloud))),
            ("created", Some(time(&cloud.created_at))),
            ("deleted", optional_time(cloud.deleted_at.as_ref())),
            ("deletion", cloud.deletion_id.clone()),
            ("revision", Some(cloud.revision.to_string())),
        ],
        width,
    )
}

fn endpoint(cloud: &Cloud) -> String {
    let shown = cloud.endpoint.iter().map(|(name, value)| match value {
        Value::String(text) => format!("{name}={text}"),
        other => format!("{name}={other}"),
    });
    shown.collect::<Vec<_>>().join(" ")
}

fn credential_line(credential: &Credential) -> Vec<String> {
    vec![
        credential.name.clone(),
        credential.kv_mount.clone(),
        credential.kv_path.clone(),
        credential.cloud_id.clone(),
        credential.id.clone(),
    ]
}

const CREDENTIAL_HEADINGS: [&str; 5] = ["NAME", "MOUNT", "PATH", "CLOUD", "ID"];

pub(crate) fn credentials(credentials: &[Credential], width: Option<u16>) -> String {
    rows(&CREDENTIAL_HEADINGS, credentials.iter().map(credential_line).collect(), width)
}

pub(crate) fn assigned_credentials(
    assigned: &[CredentialAssignment],
    width: Option<u16>,
) -> String {
    let lines = assigned.iter().map(|assigned| credential_line(&assigned.credential));
    rows(&CREDENTIAL_HEADINGS, lines.collect(), width)
}

pub(crate) fn credential(credential: &Credential, width: Option<u16>) -> String {
    facts(
        vec![
            ("name", Some(credential.name.clone())),
            ("id", Some(credential.id.clone())),
            ("cloud", Some(credential.cloud_id.clone())),
            ("mount", Some(credential.kv_mount.clone())),
            ("path", Some(credential.kv_path.clone())),
            ("created", Some(time(&credential.created_at))),
            ("deleted", optional_time(credential.deleted_at.as_ref())),
            ("deletion", credential.deletion_id.clone()),
            ("revision", Some(credential.revision.to_string())),
        ],
        width,
    )
}

pub(crate) fn blueprints(blueprints: &[Blueprint], width: Option<u16>) -> String {
    let line = |blueprint: &Blueprint| {
        vec![
            blueprint.slug.clone(),
            blueprint.engine.clone(),
            blueprint.display_name.clone(),
            blueprint.id.clone(),
        ]
    };
    let headings = ["SLUG", "ENGINE", "CALLED", "ID"];
    rows(&headings, blueprints.iter().map(line).collect(), width)
}

pub(crate) fn blueprint(blueprint: &Blueprint, width: Option<u16>) -> String {
    facts(
        vec![
            ("slug", Some(blueprint.slug.clone())),
            ("id", Some(blueprint.id.clone())),
            ("called", Some(blueprint.display_name.clone())),
            ("description", Some(blueprint.description.clone())),
            ("engine", Some(blueprint.engine.clone())),
            ("created", Some(time(&blueprint.created_at))),
            ("revision", Some(blueprint.revision.to_string())),
        ],
        width,
    )
}

pub(crate) fn imported(entries: &[Entry], width: Option<u16>) -> String {
    let line = |entry: &Entry| {
        vec![
            entry.slug.clone(),
            or_dash(entry.version.as_deref()),
            entry.outcome.as_str().to_owned(),
            entry.messages.join("\n"),
        ]
    };
    let headings = ["SLUG", "VERSION", "OUTCOME", "WHY"];
    rows(&headings, entries.iter().map(line).collect(), width)
}

pub(crate) fn versions(versions: &[BlueprintVersion], width: Option<u16>) -> String {
    let line = |version: &BlueprintVersion| {
        vec![
            version.version.clone(),
            version.provider_kinds.join(", "),
            version.mesh_role.clone(),
            time(&version.published_at),
            or_dash(optional_time(version.retired_at.as_ref()).as_deref()),
            version.id.clone(),
        ]
    };
    let headings = ["VERSION", "PROVIDERS", "ROLE", "PUBLISHED", "RETIRED", "ID"];
    rows(&headings, versions.iter().map(line).collect(), width)
}

pub(crate) fn version(version: &BlueprintVersion, width: Option<u16>) -> String {
    let parameters = version.parameter_schema.parameters.iter().map(parameter);
    facts(
        vec![
            ("version", Some(format!("{}@{}", version.blueprint, version.version))),
            ("id", Some(version.id.clone())),
            ("providers", Some(version.provider_kinds.join(", "))),
            ("role", Some(version.mesh_role.clone())),
            ("injection", Some(version.injection_strategy.clone())),
            ("parameters", Some(parameters.collect::<Vec<_>>().join(", "))),
            (
                "composite",
                version
                    .composite
                    .as_ref()
                    .map(|kind| format!("{} {}", kind.api_version, kind.kind)),
            ),
            ("delivered", version.deliver.then(|| "to every cluster of a project".to_owned())),
            ("published", Some(time(&version.published_at))),
            ("retired", optional_time(version.retired_at.as_ref())),
            ("revision", Some(version.revision.to_string())),
        ],
        width,
    )
}

pub(crate) fn deliveries(deliveries: &[BlueprintDelivery], width: Option<u16>) -> String {
    let line = |delivery: &BlueprintDelivery| {
        vec![
            delivery.cluster.clone(),
            or_dash(delivery.wanted_version.as_deref()),
            or_dash(delivery.found_version.as_deref()),
            delivery.phase.clone(),
            or_dash(optional_time(delivery.since.as_ref()).as_deref()),
            or_dash(delivery.problem.as_deref()),
        ]
    };
    let headings = ["CLUSTER", "WANTED", "FOUND", "PHASE", "SINCE", "PROBLEM"];
    rows(&headings, deliveries.iter().map(line).collect(), width)
}

/// `size: integer, required` or `zone: string = "a"`.
fn parameter(parameter: &Parameter) -> String {
    let kind = match parameter.kind {
        ParameterType::Boolean => "boolean",
        ParameterType::Integer => "integer",
        ParameterType::String => "string",
    };
    let end = match (&parameter.default, parameter.required) {
        (Some(default), _) => format!(" = {default}"),
        (None, true) => " (required)".to_owned(),
        (None, false) => String::new(),
    };
    format!("{}: {kind}{end}", parameter.name)
}

pub(crate) fn labels(labels: &[LabelDefinition], width: Option<u16>) -> String {
    let line = |label: &LabelDefinition| {
        vec![
            label.key.clone(),
            if label.propagate { "yes" } else { "no" }.to_owned(),
            or_dash(Some(label.description.as_str()).filter(|text| !text.is_empty())),
        ]
    };
    rows(&["KEY", "PROPAGATES", "MEANS"], labels.iter().map(line).collect(), width)
}

pub(crate) fn label(label: &LabelDefinition, width: Option<u16>) -> String {
    facts(
        vec![
            ("key", Some(label.key.clone())),
            ("id", Some(label.id.clone())),
            ("means", Some(label.description.clone())),
            ("propagates", Some(if label.propagate { "yes" } else { "no" }.to_owned())),
            ("created", Some(time(&label.created_at))),
            ("revision", Some(label.revision.to_string())),
        ],
        width,
    )
}

pub(crate) fn clusters(clusters: &[Cluster], width: Option<u16>) -> String {
    let line = |cluster: &Cluster| {
        vec![
            cluster.name.clone(),
            cluster.engine.clone(),
            cluster.region.clone().unwrap_or_default(),
            usable(cluster).to_owned(),
            cluster.id.clone(),
        ]
    };
    rows(&["NAME", "ENGINE", "REGION", "USABLE", "ID"], clusters.iter().map(line).collect(), width)
}

/// Whether projects can live there now.
fn usable(cluster: &Cluster) -> &'static str {
    match &cluster.verification {
        _ if cluster.substrate_uid.is_none() => "not yet",
        Some(found) if found.problem.is_some() => "no",
        _ => "yes",
    }
}

pub(crate) fn cluster(cluster: &Cluster, width: Option<u16>) -> String {
    facts(
        vec![
            ("name", Some(cluster.name.clone())),
            ("id", Some(cluster.id.clone())),
            ("engine", Some(cluster.engine.clone())),
            ("identity", cluster.substrate_uid.clone()),
            ("namespaces", Some(format!("{}<project id>", cluster.namespace_prefix))),
            ("region", cluster.region.clone()),
            ("access", cluster.access.clone()),
            ("usable", Some(usable(cluster).to_owned())),
            ("problem", cluster.verification.as_ref().and_then(|found| found.problem.clone())),
            ("found", cluster.verification.as_ref().map(|found| found.facts.to_string())),
            ("looked", cluster.verification.as_ref().map(|found| time(&found.verified_at))),
            ("created", Some(time(&cluster.created_at))),
            ("revision", Some(cluster.revision.to_string())),
        ],
        width,
    )
}

pub(crate) fn cluster_assignments(places: &[ClusterAssignment], width: Option<u16>) -> String {
    let line = |place: &ClusterAssignment| {
        vec![
            place.project_id.clone(),
            place.cluster_id.clone(),
            place.namespace_phase.clone(),
            place.namespace.clone(),
        ]
    };
    rows(&["PROJECT", "CLUSTER", "PHASE", "NAMESPACE"], places.iter().map(line).collect(), width)
}

fn providers(place: &ClusterAssignment) -> String {
    let one = |standing: &ProviderStanding| {
        let problem = standing.problem.as_ref().map(|problem| format!(" ({problem})"));
        format!("{} {}{}", standing.provider, standing.phase, problem.unwrap_or_default())
    };
    place.providers.iter().map(one).collect::<Vec<_>>().join(", ")
}

pub(crate) fn cluster_assignment(place: &ClusterAssignment, width: Option<u16>) -> String {
    facts(
        vec![
            ("project", Some(place.project_id.clone())),
            ("cluster", Some(place.cluster_id.clone())),
            ("namespace", Some(place.namespace.clone())),
            ("phase", Some(place.namespace_phase.clone())),
            ("leaving since", place.withdrawn_at.as_deref().map(time)),
            ("providers", Some(providers(place)).filter(|text| !text.is_empty())),
            ("problems", Some(place.problems.join("; ")).filter(|text| !text.is_empty())),
            ("since", Some(time(&place.updated_at))),
            ("revision", Some(place.revision.to_string())),
        ],
        width,
    )
}
