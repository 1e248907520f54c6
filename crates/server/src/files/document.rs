//! Between the documents of the wire and those of the application.

use serde_json::{Map, Value, json};
use slipway_app::files::apply::Draft;
use slipway_app::files::kind::{self, Live, MAPS, Version};
use slipway_core::error::Refusal;
use slipway_core::files::document::{API_VERSION, Address, DocumentKind, check_version};
use slipway_core::files::fields::{nested, written};
use slipway_wire::catalog::BlueprintVersion;
use slipway_wire::files::{
    BlueprintVersionSpec, Document, DocumentMetadata, ObjectReference, SubmittedDocument,
};

use super::spec;
use crate::catalog::submitted_content;

/// The longest origin that is kept.
const MOST_ORIGIN: usize = 512;

/// Checks the shape of a document. `project` is the project of one that names none.
pub(super) fn draft(submitted: SubmittedDocument, project: &str) -> Draft {
    let SubmittedDocument { origin, mut document, plan } = submitted;
    let kind = kind_of(&document);
    // A kind without a required field needs no spec.
    if let Some(whole) = document.as_object_mut() {
        whole.entry("spec").or_insert_with(|| json!({}));
    }
    let named = kind.as_ref().ok().and_then(|kind| address(*kind, &document, project));
    let read = kind.and_then(|kind| {
        let (metadata, spec) = (spec::of(kind).read)(&document)?;
        let address = named.clone().ok_or_else(|| {
            Refusal::invalid("metadata.name", "must be given, as a text without U+0000")
        })?;
        if !kind.has_labels() && !metadata.labels.is_empty() {
            let problem = format!("must not be given: a {kind} has no labels");
            return Err(Refusal::invalid("metadata.labels", problem));
        }
        if !kind.in_project() && metadata.project.is_some() {
            let problem = format!("must not be given: a {kind} is in no project");
            return Err(Refusal::invalid("metadata.project", problem));
        }
        if origin.len() > MOST_ORIGIN || origin.contains('\0') {
            let problem = "must have at most 512 bytes without U+0000";
            return Err(Refusal::invalid("origin", problem));
        }
        if plan.is_some() && kind != DocumentKind::Workspace {
            return Err(Refusal::invalid("plan", "must not be given: only a Workspace is planned"));
        }
        let (mut spec, versions) = split(spec);
        let content = match kind {
            DocumentKind::Stack => objects(&mut spec)?,
            _ => None,
        };
        let labels = metadata.labels;
        Ok(kind::Document { address, labels, spec, versions, content, origin, plan })
    });
    Draft { address: named, document: read }
}

fn kind_of(document: &Value) -> Result<DocumentKind, Refusal> {
    let Some(whole) = document.as_object() else {
        return Err(Refusal::invalid(
            "",
            "the document must be a map with apiVersion, kind, metadata and spec",
        ));
    };
    let text = |name: &str| whole.get(name).and_then(Value::as_str).unwrap_or_default();
    check_version(text("apiVersion"))?;
    DocumentKind::parse_field("kind", text("kind"))
}

/// What a document is about, as far as it says so.
fn address(kind: DocumentKind, document: &Value, project: &str) -> Option<Address> {
    let text = |pointer: &str| {
        let text = document.pointer(pointer).and_then(Value::as_str);
        text.filter(|text| !text.is_empty() && !text.contains('\0')).map(str::to_owned)
    };
    let mut address = Address::new(kind, text("/metadata/name")?);
    if kind.in_project() {
        address.project = text("/metadata/project");
        if address.project.is_none() && kind != DocumentKind::Key {
            address.project = Some(project.to_owned());
        }
    }
    if kind.in_cloud() {
        address.cloud = Some(text("/spec/cloud")?);
    }
    Some(address)
}

/// The spec without the versions of a blueprint, and these.
fn split(spec: Value) -> (Map<String, Value>, Vec<Version>) {
    let Value::Object(mut spec) = spec else { return (Map::new(), Vec::new()) };
    let versions = spec.remove("versions");
    let versions: Vec<BlueprintVersionSpec> =
        versions.and_then(|versions| serde_json::from_value(versions).ok()).unwrap_or_default();
    let version = |spec: BlueprintVersionSpec| {
        // Always a hash: a short content would be remembered as it is.
        let padded = json!([spec, " ".repeat(512)]);
        let digest = written(&padded)["sha256"].as_str().unwrap_or_default().to_owned();
        Version { content: submitted_content(spec.into()), digest }
    };
    (spec, versions.into_iter().map(version).collect())
}

/// The content of a stack, taken out of its spec. Only the command can read a folder.
fn objects(spec: &mut Map<String, Value>) -> Result<Option<String>, Refusal> {
    if spec.contains_key("folder") {
        let problem = "is a folder of the command's machine, which `slipway apply` reads; send its manifests as `objects`";
        return Err(Refusal::invalid("spec.folder", problem));
    }
    Ok(spec.remove("objects").and_then(|text| text.as_str().map(str::to_owned)))
}

/// An object as a document. `version` shows a version of its blueprint.
pub(super) fn document(
    live: &Live,
    version: impl Fn(&slipway_core::catalog::blueprint::PublishedVersion) -> BlueprintVersion,
) -> Document {
    let mut fields = live.fields.clone();
    // A cluster that was chosen by its region: the cluster alone says where it is.
    if live.address.kind == DocumentKind::Placement {
        fields.remove("spec.region");
    }
    let (labels, mut spec) = nested(&fields, MAPS);
    let versions: Vec<Value> =
        live.versions.iter().map(|published| version_spec(version(published))).collect();
    if !versions.is_empty() {
        spec.insert("versions".to_owned(), Value::Array(versions));
    }
    // A hash is no content that could be applied.
    if live.address.kind == DocumentKind::Stack {
        spec.remove("objects");
        spec.extend(live.content.clone().map(|text| ("objects".to_owned(), Value::String(text))));
    }
    let Address { kind, project, name, .. } = &live.address;
    Document {
        api_version: API_VERSION.to_owned(),
        kind: kind.to_string(),
        metadata: DocumentMetadata { name: name.clone(), project: project.clone(), labels },
        spec,
    }
}

fn version_spec(version: BlueprintVersion) -> Value {
    json!(BlueprintVersionSpec {
        version: version.version,
        xrd: version.xrd,
        composition: version.composition,
        parameter_schema: Some(version.parameter_schema),
        injection_strategy: version.injection_strategy,
        mesh_role: Some(version.mesh_role),
        provider_kinds: version.provider_kinds,
        install_definitions: version.install_definitions,
        surge: version.surge,
    })
}

/// The address that a reference names.
pub(super) fn referred(reference: ObjectReference, project: &str) -> Result<Address, Refusal> {
    let kind = DocumentKind::parse_field("kind", &reference.kind)?;
    let mut address = Address::new(kind, reference.name);
    if kind.in_project() {
        let usual = (kind != DocumentKind::Key).then(|| project.to_owned());
        address.project = reference.project.or(usual);
    }
    if kind.in_cloud() {
        address.cloud = reference.cloud;
    }
    let parts = [Some(&address.name), address.project.as_ref(), address.cloud.as_ref()];
    if parts.into_iter().flatten().any(|part| part.contains('\0')) {
        return Err(Refusal::invalid("name", "must not contain U+0000"));
    }
    Ok(address)
}

pub(super) fn reference(address: &Address) -> ObjectReference {
    ObjectReference {
        kind: address.kind.to_string(),
        project: address.project.clone(),
        cloud: address.cloud.clone(),
        name: address.name.clone(),
    }
}
