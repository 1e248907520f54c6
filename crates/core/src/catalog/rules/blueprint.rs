//! Creating a blueprint, publishing and retiring its versions.

use serde_json::json;

use crate::access::audit::Actor;
use crate::catalog::blueprint::{Blueprint, PublishedVersion, VersionContent};
use crate::catalog::blueprint_version::{CompositeDefinition, Engine};
use crate::catalog::rules::common::{About, audited, name_taken, unknown};
use crate::catalog::snapshot::BlueprintSnapshot;
use crate::catalog::{CatalogWrite, Name};
use crate::commit::Commit;
use crate::error::{ErrorKind, Refusal};
use crate::ids::{BlueprintId, BlueprintVersionId, Revision};
use crate::precondition::Expected;

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
    if let Some(holder) = &snapshot.blueprint {
        return Err(name_taken("slug", "blueprint", new.slug.as_str(), holder.id.as_uuid()));
    }
    let blueprint = Blueprint {
        id: new.id,
        slug: new.slug.clone(),
        display_name: new.display_name.clone(),
        description: new.description.clone(),
        engine: new.engine,
        revision: Revision::FIRST,
        created_at: snapshot.now,
        updated_at: snapshot.now,
    };
    let details = json!({ "slug": blueprint.slug, "engine": blueprint.engine });
    let write = CatalogWrite::BlueprintInsert(blueprint);
    let about = About::new(new.id);
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
    let blueprint = existing(snapshot)?;
    expected.check("blueprint", blueprint.revision)?;
    let updated = Blueprint {
        display_name: display_name.unwrap_or(&blueprint.display_name).to_owned(),
        description: description.unwrap_or(&blueprint.description).to_owned(),
        ..blueprint.clone()
    };
    let details = json!({
        "before": { "display_name": blueprint.display_name, "description": blueprint.description },
        "after": { "display_name": updated.display_name, "description": updated.description },
    });
    let about = About::new(blueprint.id);
    let write = CatalogWrite::BlueprintUpdate(updated);
    Ok(audited(write, "blueprint.update", about, actor, snapshot.now, details))
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
/// `documents` is what was read from XRD and Composition, or why they cannot be
/// used. Only Crossplane uses the two documents; the other engines bring their
/// own definitions and ignore what is published for them.
pub fn publish(
    snapshot: &BlueprintSnapshot,
    id: BlueprintVersionId,
    content: &VersionContent,
    documents: &Result<CompositeDefinition, Refusal>,
    actor: &Actor,
) -> Result<Published, Refusal> {
    let blueprint = existing(snapshot)?;
    if let Some(published) = &snapshot.version {
        if published.content == *content {
            return Ok(Published { id: published.id, commit: Commit::default() });
        }
        return Err(Refusal::new(
            ErrorKind::BlueprintVersionExists,
            format!(
                "version `{}` of blueprint `{}` is published with another content and never changes; publish a new version",
                content.version, blueprint.slug
            ),
        )
        .at("version")
        .with(json!({ "id": published.id })));
    }
    let composite = match blueprint.engine {
        Engine::Crossplane => Some(documents.clone()?),
        Engine::Local | Engine::Hetzner if content.install_definitions => {
            let problem = format!(
                "is for engine crossplane, and `{}` is of engine {}; publish it without",
                blueprint.slug, blueprint.engine
            );
            return Err(Refusal::invalid("install_definitions", problem));
        }
        Engine::Local | Engine::Hetzner => None,
    };
    let version = PublishedVersion {
        id,
        blueprint_id: blueprint.id,
        content: content.clone(),
        composite,
        revision: Revision::FIRST,
        published_at: snapshot.now,
        retired_at: None,
    };
    let details = json!({
        "slug": blueprint.slug,
        "version": content.version,
        "install_definitions": content.install_definitions,
    });
    let write = CatalogWrite::VersionInsert(version);
    let commit = audited(write, "blueprint.publish", about(id), actor, snapshot.now, details);
    Ok(Published { id, commit })
}

/// Idempotent. Resources that were made from the version continue.
pub fn retire(
    snapshot: &BlueprintSnapshot,
    expected: Expected,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let blueprint = existing(snapshot)?;
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
    Ok(audited(write, "blueprint.retire", about(version.id), actor, snapshot.now, details))
}

fn existing(snapshot: &BlueprintSnapshot) -> Result<&Blueprint, Refusal> {
    snapshot.blueprint.as_ref().ok_or_else(|| unknown(ErrorKind::BlueprintNotFound, "blueprint"))
}

fn about(id: BlueprintVersionId) -> About {
    About::new(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::blueprint_version::{CompositeScope, CompositeType};
    use crate::commit::Write;
    use crate::fixtures::catalog::{mk_blueprint, mk_content, mk_version};
    use crate::fixtures::{at, mk_actor};

    fn unreadable() -> Result<CompositeDefinition, Refusal> {
        Err(Refusal::new(ErrorKind::XrdInvalid, "no XRD"))
    }

    fn snapshot(version: Option<PublishedVersion>) -> BlueprintSnapshot {
        BlueprintSnapshot { now: at(1_000), blueprint: Some(mk_blueprint()), version }
    }

    #[test]
    fn a_version_is_published_once_and_never_changed() {
        let id = mk_version().id;
        let content = mk_content();
        let fresh = publish(&snapshot(None), id, &content, &unreadable(), &mk_actor()).unwrap();
        assert_eq!(fresh.commit.writes.len(), 1);
        let again =
            publish(&snapshot(Some(mk_version())), id, &content, &unreadable(), &mk_actor())
                .unwrap();
        assert!(again.commit.is_empty());
        let other = VersionContent { xrd: "other".to_owned(), ..content };
        let refusal =
            publish(&snapshot(Some(mk_version())), id, &other, &unreadable(), &mk_actor())
                .unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::BlueprintVersionExists);
    }

    #[test]
    fn only_crossplane_is_held_to_its_documents() {
        let crossplane = Blueprint { engine: Engine::Crossplane, ..mk_blueprint() };
        let crossplane = BlueprintSnapshot { blueprint: Some(crossplane), ..snapshot(None) };
        let id = mk_version().id;
        let (content, actor) = (mk_content(), mk_actor());
        let refusal = publish(&crossplane, id, &content, &unreadable(), &actor).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::XrdInvalid);
        let definition = CompositeDefinition {
            composite_type: CompositeType {
                group: "nodes.example.org".to_owned(),
                version: "v1".to_owned(),
                kind: "XServer".to_owned(),
                plural: "xservers".to_owned(),
                scope: CompositeScope::Namespaced,
            },
            cloud_tags: true,
        };
        let kept = |published: Published| match &published.commit.writes[..] {
            [Write::Catalog(write)] => match &**write {
                CatalogWrite::VersionInsert(version) => version.composite.clone(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        };
        let documents = Ok(definition.clone());
        let published = publish(&crossplane, id, &content, &documents, &actor).unwrap();
        assert_eq!(kept(published), Some(definition));
        let definitions = VersionContent { install_definitions: true, ..content.clone() };
        assert!(publish(&crossplane, id, &definitions, &documents, &actor).is_ok());
        let refusal = publish(&snapshot(None), id, &definitions, &documents, &actor).unwrap_err();
        assert_eq!(
            (refusal.kind, refusal.field.as_deref()),
            (ErrorKind::InvalidInput, Some("install_definitions"))
        );
        for documents in [unreadable(), documents] {
            let local = publish(&snapshot(None), id, &content, &documents, &actor).unwrap();
            assert_eq!(kept(local), None);
        }
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
}
