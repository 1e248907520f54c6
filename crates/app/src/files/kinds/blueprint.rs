//! Blueprints with their versions. A published version never changes and stays when a
//! document no longer has it; retiring it is a command.

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_core::catalog::blueprint::Blueprint;
use slipway_core::error::ErrorKind;
use slipway_core::files::document::{Address, DocumentKind};
use slipway_core::files::fields::{Fields, Terms};
use slipway_core::ids::BlueprintId;
use slipway_core::secret::Secret;

use super::rows::spec;
use crate::Error;
use crate::catalog::blueprints;
use crate::files::kind::{Applier, Desired, Document, FileKind, Live, Version, version_path};
use crate::ports::store::{PAGE_MAX, Page};

pub(in crate::files) struct Blueprints;

#[async_trait]
impl FileKind for Blueprints {
    fn missing(&self) -> ErrorKind {
        ErrorKind::BlueprintNotFound
    }

    fn terms(&self) -> Terms {
        Terms {
            defaults: spec([("description", json!(""))]),
            computed: &["spec.displayName", "spec.versions."],
            fixed: &["spec.engine"],
        }
    }

    /// One read for all of them, and one for the versions of each.
    async fn live(&self, by: Applier<'_>, wanted: &[Address]) -> Result<Vec<Live>, Error> {
        let mut found = by
            .rows(wanted, |blueprint: Blueprint| {
                let fields = spec([
                    ("displayName", json!(blueprint.display_name)),
                    ("description", json!(blueprint.description)),
                    ("engine", json!(blueprint.engine)),
                ]);
                Live::row(DocumentKind::Blueprint, blueprint.slug.as_str(), &blueprint, fields)
                    .leaving(blueprint.deletion_id)
            })
            .await?;
        for live in &mut found {
            let (id, page) =
                (BlueprintId::new(live.subject_id), Page { after: None, limit: PAGE_MAX });
            live.versions = by.context.stores.catalog.version_list(id, page).await?.items;
        }
        Ok(found)
    }

    async fn create(&self, by: Applier<'_>, document: &Document) -> Result<Option<Secret>, Error> {
        let slug = document.address.name.clone();
        let input = blueprints::CreateBlueprint {
            display_name: document.text("displayName").unwrap_or(&slug).to_owned(),
            description: document.required("description"),
            engine: document.required("engine"),
            protected: false,
            slug,
        };
        blueprints::create(by.context, by.caller, input, None).await?;
        // The rest is a difference that the next apply finds, should this one end here.
        publish(by, document, document.versions.iter()).await?;
        Ok(None)
    }

    /// A version that somebody else published has to have the content of the document.
    /// Publishing the same content again writes nothing.
    async fn verify(
        &self,
        by: Applier<'_>,
        document: &Document,
        live: &mut Live,
        mine: Option<&Fields>,
    ) -> Result<(), Error> {
        for version in &document.versions {
            let name = &version.content.version;
            if !live.versions.iter().any(|published| &published.content.version == name) {
                continue;
            }
            let digest = Value::String(version.digest.clone());
            let path = version_path(name);
            if mine.and_then(|mine| mine.get(&path)) != Some(&digest) {
                publish(by, document, [version]).await?;
            }
            live.fields.insert(path, digest);
        }
        Ok(())
    }

    async fn change(&self, by: Applier<'_>, wanted: Desired<'_>) -> Result<(), Error> {
        let (name, description) = (wanted.text("displayName"), wanted.text("description"));
        if name.is_some() || description.is_some() {
            let Applier { context, caller } = by;
            let (id, expected) = (wanted.id(), wanted.live.expected());
            blueprints::update(context, caller, &id, name, description, expected).await?;
        }
        let new = |version: &&Version| wanted.changes(&version_path(&version.content.version));
        publish(by, wanted.document, wanted.document.versions.iter().filter(new)).await
    }
}

async fn publish(
    by: Applier<'_>,
    document: &Document,
    versions: impl IntoIterator<Item = &Version> + Send,
) -> Result<(), Error> {
    let versions: Vec<&Version> = versions.into_iter().collect();
    for version in versions {
        let (slug, content) = (&document.address.name, version.content.clone());
        blueprints::publish(by.context, by.caller, slug, content, None).await?;
    }
    Ok(())
}
