//! A blueprint and its published versions. A version is immutable but for its
//! retirement, after which nothing new is declared from it.

use serde_json::{Value, json};

use crate::access::audit::Actor;
use crate::catalog::blueprint_version::{
    CompositeDefinition, Documents, Engine, InjectionStrategy, MeshRole,
};
use crate::catalog::composition_name;
use crate::catalog::name::document;
use crate::catalog::parameters::ParameterSchema;
use crate::catalog::{CatalogWrite, Name};
use crate::commit::Commit;
use crate::deletion::request::Deletable;
use crate::error::{ErrorKind, Refusal, or_fault};
use crate::ids::{BlueprintId, BlueprintVersionId, DeletionId, Revision};
use crate::kind::{about, audited, existing, free, kind, unknown};
use crate::precondition::Expected;
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blueprint {
    pub id: BlueprintId,
    /// Unique among the not deleted.
    pub slug: Name,
    pub display_name: String,
    pub description: String,
    pub engine: Engine,
    pub revision: Revision,
    /// Its versions are deleted with it.
    pub deletion_id: Option<DeletionId>,
    pub deleted_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

kind!(Blueprint, BlueprintId, BlueprintNotFound);

/// The longest `xrd` or `composition`: two of them and the rest of the body
/// stay below the body limit of one mebibyte.
const MAX_DOCUMENT: usize = 400 * 1_024;

/// The content of a version, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct VersionContent {
    pub version: String,
    pub xrd: String,
    pub composition: String,
    pub parameter_schema: ParameterSchema,
    pub injection_strategy: InjectionStrategy,
    pub mesh_role: MeshRole,
    pub provider_kinds: Vec<String>,
    /// XRD and Composition are installed on the clusters of projects.
    pub install_definitions: bool,
    /// Whether two attempts of one resource may stand at once, see [`crate::broker::surge`].
    pub surge: bool,
}

/// The content of a version as submitted.
#[derive(Debug, Clone)]
pub struct SubmittedContent {
    pub version: String,
    pub xrd: String,
    pub composition: String,
    /// Either form of a schema; taken from the XRD if not given.
    pub parameters: Option<Value>,
    pub injection_strategy: String,
    pub mesh_role: Option<String>,
    pub provider_kinds: Vec<String>,
    pub install_definitions: bool,
    pub surge: bool,
}

impl VersionContent {
    /// The content, or every fault of it.
    pub fn check(given: SubmittedContent) -> Result<Self, Refusal> {
        let (content, faults) = Self::draft(given);
        Refusal::all(faults).map(|()| content)
    }

    /// The content with its faults, so that the documents can be checked as well.
    /// What is at fault is replaced by something that causes no further fault.
    pub fn draft(given: SubmittedContent) -> (Self, Vec<Refusal>) {
        let mut faults = Vec::new();
        let mut document = |field: &str, text: &str| {
            or_fault(document(field, text, MAX_DOCUMENT), &mut faults).unwrap_or_default()
        };
        let (xrd, composition) =
            (document("xrd", &given.xrd), document("composition", &given.composition));
        let version = or_fault(version(&given.version), &mut faults).unwrap_or_default();
        let parameter_schema = schema(given.parameters, &mut faults);
        let strategy =
            InjectionStrategy::parse_field("injection_strategy", &given.injection_strategy);
        let strategy = or_fault(strategy, &mut faults);
        let role = match &given.mesh_role {
            None => Ok(MeshRole::Node),
            Some(text) => MeshRole::parse_field("mesh_role", text),
        };
        // No strategy writes into a standalone resource.
        let role = or_fault(role, &mut faults).filter(|_| strategy.is_some());
        let provider_kinds = or_fault(provider_kinds(given.provider_kinds), &mut faults);
        let content = Self {
            version,
            xrd,
            composition,
            parameter_schema,
            injection_strategy: strategy.unwrap_or(InjectionStrategy::CloudInitUserData),
            mesh_role: role.unwrap_or(MeshRole::Standalone),
            provider_kinds: provider_kinds.unwrap_or_default(),
            install_definitions: given.install_definitions,
            surge: given.surge,
        };
        (content, faults)
    }
}

fn version(text: &str) -> Result<String, Refusal> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let valid = (1..=63).contains(&text.len())
        && text.chars().all(|c| plain(c) || matches!(c, '.' | '-'))
        && text.starts_with(plain)
        && text.ends_with(plain);
    let problem = "must be 1 to 63 lowercase letters, digits, dots or hyphens, starting and ending with a letter or digit, such as v1";
    if valid { Ok(text.to_owned()) } else { Err(Refusal::invalid("version", problem)) }
}

/// An empty schema if it is at fault.
fn schema(given: Option<Value>, faults: &mut Vec<Refusal>) -> ParameterSchema {
    let read = given.map_or_else(|| Ok(ParameterSchema::default()), ParameterSchema::read);
    read.unwrap_or_else(|wrong| {
        faults.extend(wrong);
        ParameterSchema::default()
    })
}

fn provider_kinds(kinds: Vec<String>) -> Result<Vec<String>, Refusal> {
    if kinds.is_empty() || kinds.len() > 32 {
        return Err(Refusal::invalid("provider_kinds", "must name 1 to 32 providers"));
    }
    let fault = |(index, kind): (usize, &String)| {
        let at = format!("provider_kinds[{index}]");
        match Name::parse(&at, kind) {
            Err(invalid) => Some(Refusal::from(invalid)),
            Ok(_) if kinds[..index].contains(kind) => {
                Some(Refusal::invalid(at, format!("names `{kind}` a second time")))
            }
            Ok(_) => None,
        }
    };
    Refusal::all(kinds.iter().enumerate().filter_map(fault))?;
    Ok(kinds)
}

/// A published version.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedVersion {
    pub id: BlueprintVersionId,
    pub blueprint_id: BlueprintId,
    pub content: VersionContent,
    /// What was read from the documents at publication. Only engine crossplane has it.
    pub composite: Option<CompositeDefinition>,
    /// Whether resources use the ProviderConfig of their own credential. Decided at
    /// publication: an earlier version of Slipway may have published the same schema.
    pub own_provider_config: bool,
    /// The name of its own under which its Composition is installed, if Slipway installs it. A
    /// version that an earlier Slipway published has none: its Composition is installed as the
    /// author calls it, and its composites name none.
    pub composition_name: Option<String>,
    pub revision: Revision,
    pub published_at: Timestamp,
    pub retired_at: Option<Timestamp>,
}

kind!(PublishedVersion, BlueprintVersionId, BlueprintVersionNotFound);

/// A blueprint, its row locked, and the version in question.
#[derive(Debug, Clone)]
pub struct BlueprintSnapshot {
    pub now: Timestamp,
    pub blueprint: Option<Blueprint>,
    pub version: Option<PublishedVersion>,
    /// Loaded if no version is in question.
    pub users: BlueprintUsers,
}

/// Resources that are not deleted, or whose absence is not proven, with an attempt of one
/// of its versions.
#[derive(Debug, Clone, Default)]
pub struct BlueprintUsers {
    pub count: i64,
    /// The first few, as project and handle.
    pub names: Vec<String>,
}

impl BlueprintUsers {
    /// How many are named.
    pub const NAMED: i64 = 3;
}

#[derive(Debug, Clone)]
pub struct NewBlueprint {
    pub id: BlueprintId,
    pub slug: Name,
    pub display_name: String,
    pub description: String,
    pub engine: Engine,
}

pub fn create(
    snapshot: &BlueprintSnapshot,
    new: &NewBlueprint,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    free(&snapshot.blueprint, "slug", new.slug.as_str())?;
    let blueprint = Blueprint {
        id: new.id,
        slug: new.slug.clone(),
        display_name: new.display_name.clone(),
        description: new.description.clone(),
        engine: new.engine,
        revision: Revision::FIRST,
        deletion_id: None,
        deleted_at: None,
        created_at: snapshot.now,
        updated_at: snapshot.now,
    };
    let details = json!({ "slug": blueprint.slug, "engine": blueprint.engine });
    let about = about(&blueprint);
    let write = CatalogWrite::BlueprintInsert(blueprint);
    Ok(audited(write, "blueprint.create", about, actor, snapshot.now, details))
}

/// Changes display name and description. Slug and engine stay: versions and
/// attempts were made for them.
pub fn update(
    snapshot: &BlueprintSnapshot,
    display_name: Option<&str>,
    description: Option<&str>,
    expected: Expected,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let blueprint = existing(&snapshot.blueprint, expected)?;
    let updated = Blueprint {
        display_name: display_name.unwrap_or(&blueprint.display_name).to_owned(),
        description: description.unwrap_or(&blueprint.description).to_owned(),
        ..blueprint.clone()
    };
    let details = json!({
        "before": { "display_name": blueprint.display_name, "description": blueprint.description },
        "after": { "display_name": updated.display_name, "description": updated.description },
    });
    let write = CatalogWrite::BlueprintUpdate(updated);
    Ok(audited(write, "blueprint.update", about(blueprint), actor, snapshot.now, details))
}

/// What is installed on clusters stays there.
impl Deletable for Blueprint {
    type Snapshot = BlueprintSnapshot;
    const DELETE: &'static str = "blueprint.delete";

    fn found(snapshot: &BlueprintSnapshot) -> (&Option<Self>, Timestamp) {
        (&snapshot.blueprint, snapshot.now)
    }

    fn name(&self) -> &str {
        self.slug.as_str()
    }

    fn free(&self, snapshot: &BlueprintSnapshot, _cascade: bool) -> Result<(), Refusal> {
        let BlueprintUsers { count, names } = &snapshot.users;
        if *count == 0 {
            return Ok(());
        }
        let message = format!(
            "{count} resource(s) are made from blueprint `{}`, such as {}; delete them and wait until their absence is proven a second time, one lease after Deleted",
            self.slug,
            names.join(", ")
        );
        let details = json!({ "resources": count, "names": names });
        Err(Refusal::new(ErrorKind::BlueprintInUse, message).with(details))
    }
}

/// The version that a publication led to.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    pub id: BlueprintVersionId,
    pub commit: Commit,
}

/// Publishing the same content again returns the existing version, even if it
/// was retired meanwhile: a publication never undoes a retirement.
///
/// `faults` are those of the content, which is refused if there is one.
/// `documents` is what was read from XRD and Composition, or why they cannot be
/// used. Only Crossplane uses the two documents; the other engines bring their
/// own definitions and ignore what is published for them.
pub fn publish(
    snapshot: &BlueprintSnapshot,
    id: BlueprintVersionId,
    content: &VersionContent,
    faults: &[Refusal],
    documents: &Result<Documents, Refusal>,
    actor: &Actor,
) -> Result<Published, Refusal> {
    let blueprint = existing(&snapshot.blueprint, Expected::Any)?;
    if !faults.is_empty() {
        let used = documents.as_ref().err().filter(|_| blueprint.engine == Engine::Crossplane);
        Refusal::all(faults.iter().chain(used).cloned())?;
    }
    if let Some(published) = &snapshot.version {
        if published.content == *content {
            return Ok(Published { id: published.id, commit: Commit::default() });
        }
        return Err(Refusal::new(
            ErrorKind::BlueprintVersionExists,
            format!(
                "version `{}` of blueprint `{}` is already published with other content, and a published version never changes; publish a new version",
                content.version, blueprint.slug
            ),
        )
        .at("version")
        .with(json!({ "id": published.id })));
    }
    let documents = match blueprint.engine {
        Engine::Crossplane => Some(documents.clone()?),
        Engine::Local | Engine::Manual | Engine::Hetzner if content.install_definitions => {
            let problem = format!(
                "is for engine crossplane, and `{}` is of engine {}; publish it without",
                blueprint.slug, blueprint.engine
            );
            return Err(Refusal::invalid("install_definitions", problem));
        }
        Engine::Local | Engine::Manual | Engine::Hetzner => None,
    };
    if content.surge && blueprint.engine == Engine::Manual {
        let problem = format!(
            "is not for engine manual, whose machines people boot and end, and `{}` is of it; publish it without",
            blueprint.slug
        );
        return Err(Refusal::invalid("surge", problem));
    }
    let version = PublishedVersion {
        id,
        blueprint_id: blueprint.id,
        content: content.clone(),
        own_provider_config: documents.is_some()
            && content.parameter_schema.takes_provider_config_name(),
        composition_name: documents
            .as_ref()
            .filter(|_| content.install_definitions)
            .map(|found| composition_name::own(&found.composition, &content.version, id)),
        composite: documents.map(|found| found.composite),
        revision: Revision::FIRST,
        published_at: snapshot.now,
        retired_at: None,
    };
    let details = json!({
        "slug": blueprint.slug,
        "version": content.version,
        "install_definitions": content.install_definitions,
        "surge": content.surge,
    });
    let about = about(&version);
    let write = CatalogWrite::VersionInsert(version);
    let commit = audited(write, "blueprint.publish", about, actor, snapshot.now, details);
    Ok(Published { id, commit })
}

/// The content with the parameters of its XRD, for an author who declared none. Only
/// Crossplane has an XRD. A version that an earlier Slipway published stays as it is.
pub fn taking_parameters(
    snapshot: &BlueprintSnapshot,
    content: &VersionContent,
    of_xrd: &ParameterSchema,
) -> VersionContent {
    let crossplane = |blueprint: &Blueprint| blueprint.engine == Engine::Crossplane;
    let earlier =
        |version: &PublishedVersion| version.content.parameter_schema == ParameterSchema::default();
    let takes = snapshot.blueprint.as_ref().is_some_and(crossplane)
        && !snapshot.version.as_ref().is_some_and(earlier);
    let parameter_schema = if takes { of_xrd } else { &content.parameter_schema };
    VersionContent { parameter_schema: parameter_schema.clone(), ..content.clone() }
}

/// Idempotent. Resources that were made from the version continue.
pub fn retire(
    snapshot: &BlueprintSnapshot,
    expected: Expected,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let blueprint = existing(&snapshot.blueprint, Expected::Any)?;
    let Some(version) = &snapshot.version else {
        return Err(unknown(ErrorKind::BlueprintVersionNotFound, "version of this blueprint"));
    };
    expected.check("version", version.revision)?;
    if version.retired_at.is_some() {
        return Ok(Commit::default());
    }
    let details = json!({ "slug": blueprint.slug, "version": version.content.version });
    let retired = PublishedVersion { retired_at: Some(snapshot.now), ..version.clone() };
    let write = CatalogWrite::VersionUpdate(retired);
    Ok(audited(write, "blueprint.retire", about(version), actor, snapshot.now, details))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::blueprint_version::{CompositeScope, CompositeType};
    use crate::catalog::parameters::{Parameter, ParameterType};
    use crate::commit::Write;
    use crate::deletion::door::Door;
    use crate::deletion::request::request;
    use crate::fixtures::catalog::{mk_ask, mk_blueprint, mk_content, mk_version};
    use crate::fixtures::{at, mk_actor};

    fn submitted() -> SubmittedContent {
        SubmittedContent {
            version: "v1".to_owned(),
            xrd: "kind: X".to_owned(),
            composition: "kind: C".to_owned(),
            parameters: None,
            injection_strategy: "helm-values".to_owned(),
            mesh_role: None,
            provider_kinds: vec!["hetzner".to_owned()],
            install_definitions: false,
            surge: false,
        }
    }

    #[test]
    fn each_fault_of_a_version_names_its_field() {
        assert_eq!(VersionContent::check(submitted()).unwrap().mesh_role, MeshRole::Node);
        let listed = |parameter: Value| SubmittedContent {
            parameters: Some(json!({ "parameters": [parameter] })),
            ..submitted()
        };
        let required_with_default =
            json!({ "name": "size", "type": "integer", "required": true, "default": 1 });
        let long_default = json!({ "name": "size", "type": "string", "default": "a\u{0}" });
        let table = [
            (SubmittedContent { version: "V 1".to_owned(), ..submitted() }, "version"),
            (SubmittedContent { version: ".1".to_owned(), ..submitted() }, "version"),
            (SubmittedContent { xrd: "a\0".to_owned(), ..submitted() }, "xrd"),
            (
                SubmittedContent { composition: "x".repeat(MAX_DOCUMENT + 1), ..submitted() },
                "composition",
            ),
            (listed(required_with_default), "parameter_schema.size"),
            (listed(long_default), "parameter_schema.size.default"),
            (
                SubmittedContent { injection_strategy: "magic".to_owned(), ..submitted() },
                "injection_strategy",
            ),
            (SubmittedContent { mesh_role: Some("hub".to_owned()), ..submitted() }, "mesh_role"),
            (SubmittedContent { provider_kinds: vec![], ..submitted() }, "provider_kinds"),
            (
                SubmittedContent { provider_kinds: vec!["a".to_owned(); 2], ..submitted() },
                "provider_kinds[1]",
            ),
        ];
        for (given, field) in table {
            let refusal = VersionContent::check(given).unwrap_err();
            assert_eq!(refusal.field.as_deref(), Some(field), "{refusal}");
        }
    }

    #[test]
    fn parameters_are_taken_from_the_xrd_of_a_new_version_alone() {
        let schema = json!({ "type": "object", "properties": { "a": {} } });
        let of_xrd = ParameterSchema::read(schema).unwrap();
        let content = VersionContent::check(submitted()).unwrap();
        let taken = |engine, version: Option<PublishedVersion>| {
            let mut snapshot = snapshot(version);
            snapshot.blueprint = Some(Blueprint { engine, ..mk_blueprint() });
            taking_parameters(&snapshot, &content, &of_xrd).parameter_schema == of_xrd
        };
        let published = |parameter_schema| PublishedVersion {
            content: VersionContent { parameter_schema, ..content.clone() },
            ..mk_version()
        };
        assert!(taken(Engine::Crossplane, None));
        assert!(!taken(Engine::Local, None));
        assert!(taken(Engine::Crossplane, Some(published(of_xrd.clone()))));
        assert!(!taken(Engine::Crossplane, Some(published(ParameterSchema::default()))));
    }

    #[test]
    fn every_fault_of_a_version_is_named_at_once() {
        let parameter =
            |name: &str| json!({ "name": name, "type": "integer", "required": true, "default": 1 });
        let given = SubmittedContent {
            version: "V 1".to_owned(),
            parameters: Some(json!({ "parameters": [parameter("size"), parameter("helmValues")] })),
            injection_strategy: "helm-value".to_owned(),
            provider_kinds: vec!["A".to_owned(), "b".to_owned(), "b".to_owned()],
            ..submitted()
        };
        let (_, faults) = VersionContent::draft(given);
        let refusal = Refusal::all(faults).unwrap_err();
        let fields: Vec<_> = refusal.faults().filter_map(|fault| fault.field.as_deref()).collect();
        let expected = [
            "version",
            "parameter_schema.size",
            "parameter_schema.helmValues",
            "injection_strategy",
            "provider_kinds[0]",
            "provider_kinds[2]",
        ];
        assert_eq!(fields, expected);
        assert!(refusal.others()[2].message.contains("did you mean `helm-values`?"), "{refusal:?}");
    }

    fn unreadable() -> Result<Documents, Refusal> {
        Err(Refusal::new(ErrorKind::XrdInvalid, "no XRD"))
    }

    fn snapshot(version: Option<PublishedVersion>) -> BlueprintSnapshot {
        BlueprintSnapshot {
            now: at(1_000),
            blueprint: Some(mk_blueprint()),
            version,
            users: BlueprintUsers::default(),
        }
    }

    #[test]
    fn a_version_is_published_once_and_never_changed() {
        let id = mk_version().id;
        let content = mk_content();
        let fresh =
            publish(&snapshot(None), id, &content, &[], &unreadable(), &mk_actor()).unwrap();
        assert_eq!(fresh.commit.writes.len(), 1);
        let again =
            publish(&snapshot(Some(mk_version())), id, &content, &[], &unreadable(), &mk_actor())
                .unwrap();
        assert!(again.commit.is_empty());
        let other = VersionContent { xrd: "other".to_owned(), ..content };
        let refusal =
            publish(&snapshot(Some(mk_version())), id, &other, &[], &unreadable(), &mk_actor())
                .unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::BlueprintVersionExists);
    }

    fn definition() -> CompositeDefinition {
        CompositeDefinition {
            composite_type: CompositeType {
                group: "nodes.example.org".to_owned(),
                version: "v1".to_owned(),
                kind: "XServer".to_owned(),
                plural: "xservers".to_owned(),
                scope: CompositeScope::Namespaced,
            },
            cloud_tags: true,
        }
    }

    fn readable() -> Result<Documents, Refusal> {
        Ok(Documents { composite: definition(), composition: "xservers".to_owned() })
    }

    /// What a publication writes.
    fn version(published: &Published) -> PublishedVersion {
        match &published.commit.writes[..] {
            [Write::Catalog(write)] => match &**write {
                CatalogWrite::VersionInsert(version) => version.clone(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_crossplane_is_held_to_its_documents() {
        let crossplane = Blueprint { engine: Engine::Crossplane, ..mk_blueprint() };
        let crossplane = BlueprintSnapshot { blueprint: Some(crossplane), ..snapshot(None) };
        let id = mk_version().id;
        let (content, actor) = (mk_content(), mk_actor());
        let refusal = publish(&crossplane, id, &content, &[], &unreadable(), &actor).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::XrdInvalid);
        let kept = |published: Published| version(&published).composite;
        let documents = readable();
        let published = publish(&crossplane, id, &content, &[], &documents, &actor).unwrap();
        assert_eq!(version(&published).composition_name, None, "somebody else installs it");
        assert_eq!(kept(published), Some(definition()));
        let definitions = VersionContent { install_definitions: true, ..content.clone() };
        let installed = publish(&crossplane, id, &definitions, &[], &documents, &actor).unwrap();
        let name = composition_name::own("xservers", "v1", id);
        assert_eq!(version(&installed).composition_name, Some(name));
        let refusal =
            publish(&snapshot(None), id, &definitions, &[], &documents, &actor).unwrap_err();
        assert_eq!(
            (refusal.kind, refusal.field.as_deref()),
            (ErrorKind::InvalidInput, Some("install_definitions"))
        );
        for documents in [unreadable(), documents] {
            let local = publish(&snapshot(None), id, &content, &[], &documents, &actor).unwrap();
            assert_eq!(kept(local), None);
        }
    }

    #[test]
    fn a_version_that_takes_its_name_has_a_provider_config_of_its_own() {
        let published = |engine, name: &str, kind| {
            let blueprint = Blueprint { engine, ..mk_blueprint() };
            let snapshot = BlueprintSnapshot { blueprint: Some(blueprint), ..snapshot(None) };
            let parameter = Parameter {
                name: name.to_owned(),
                kind,
                required: false,
                immutable: false,
                default: None,
            };
            let parameter_schema = ParameterSchema::new(vec![parameter]).unwrap();
            let content = VersionContent { parameter_schema, ..mk_content() };
            let documents = readable();
            let id = mk_version().id;
            let published = publish(&snapshot, id, &content, &[], &documents, &mk_actor());
            version(&published.unwrap()).own_provider_config
        };
        let name = "providerConfigName";
        assert!(published(Engine::Crossplane, name, ParameterType::String));
        assert!(!published(Engine::Crossplane, name, ParameterType::Boolean));
        assert!(!published(Engine::Crossplane, "other", ParameterType::String));
        assert!(!published(Engine::Local, name, ParameterType::String));
    }

    #[test]
    fn a_version_is_retired_once() {
        let commit = retire(&snapshot(Some(mk_version())), Expected::Any, &mk_actor()).unwrap();
        assert_eq!(commit.audit[0].verb, "blueprint.retire");
        let retired = PublishedVersion { retired_at: Some(at(950)), ..mk_version() };
        assert!(retire(&snapshot(Some(retired)), Expected::Any, &mk_actor()).unwrap().is_empty());
        let refusal = retire(&snapshot(None), Expected::Any, &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::BlueprintVersionNotFound);
    }

    #[test]
    fn a_blueprint_stays_while_a_resource_is_made_from_it() {
        let free = snapshot(None);
        let delete = |snapshot: &BlueprintSnapshot| {
            let asked = request::<Blueprint>(snapshot, &Door::default(), &mk_ask(), &mk_actor());
            asked.map(|asked| asked.commit)
        };
        let commit = delete(&free).unwrap();
        assert_eq!((commit.writes.len(), commit.audit.len()), (2, 1), "the row and the record");
        let names = vec!["shop/web-1".to_owned(), "shop/web-2".to_owned()];
        let used = BlueprintSnapshot { users: BlueprintUsers { count: 7, names }, ..free.clone() };
        let refusal = delete(&used).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::BlueprintInUse);
        assert!(refusal.message.starts_with("7 resource(s)"), "{refusal}");
        assert!(refusal.message.contains("such as shop/web-1, shop/web-2;"), "{refusal}");
        let gone = BlueprintSnapshot { blueprint: None, ..used };
        let refusal = delete(&gone).unwrap_err();
        assert_eq!((refusal.kind, refusal.field), (ErrorKind::BlueprintNotFound, None));
    }
}
