//! Blueprints with their versions. A published version never changes and stays when a
//! document no longer has it; retiring it is a command.

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_core::catalog::blueprint::Blueprint;
use slipway_core::files::document::{Address, DocumentKind};
use slipway_core::files::fields::{Fields, Terms};

use super::rows::{named, names, spec};
use crate::access::authorise::Caller;
use crate::catalog::blueprints;
use crate::files::kind::{Created, Desired, Document, FileKind, Live, Version, version_path};
use crate::ports::store::{PAGE_MAX, Page};
use crate::{Context, Error};

pub(in crate::files) struct Blueprints;

#[async_trait]
impl FileKind for Blueprints {
    fn terms(&self) -> Terms {
        Terms {
            defaults: spec([("description", Some(json!("")))]),
            computed: &["spec.displayName", "spec.versions."],
            fixed: &["spec.engine"],
        }
    }

    fn needs(&self, _document: &Document) -> Vec<Address> {
        Vec::new()
    }

    /// One read for all of them, and one for the versions of each.
    async fn live(
        &self,
        context: &Context,
        caller: &Caller,
        wanted: &[Address],
    ) -> Result<Vec<Live>, Error> {
        let found = named::<Blueprint>(context, caller, names(wanted)).await?;
        let mut live = Vec::with_capacity(found.len());
        for blueprint in found {
            let page = Page { after: None, limit: PAGE_MAX };
            let versions = context.stores.catalog.version_list(blueprint.id, page).await?;
            live.push(Live {
                address: Address::new(DocumentKind::Blueprint, blueprint.slug.as_str()),
                subject_id: blueprint.id.as_uuid(),
                project_id: None,
                revision: Some(blueprint.revision),
                fields: spec([
                    ("displayName", Some(json!(blueprint.display_name))),
                    ("description", Some(json!(blueprint.description))),
                    ("engine", Some(json!(blueprint.engine))),
                ]),
                versions: versions.items,
                leaving: blueprint.deletion_id.is_some(),
            });
        }
        Ok(live)
    }

    async fn create(
        &self,
        context: &Context,
        caller: &Caller,
        document: &Document,
    ) -> Result<Created, Error> {
        let slug = document.address.name.clone();
        let input = blueprints::CreateBlueprint {
            display_name: document.text("displayName").unwrap_or_else(|| slug.clone()),
            description: document.required("description"),
            engine: document.required("engine"),
            protected: false,
            slug,
        };
        blueprints::create(context, caller, input, None).await?;
        // The rest is a difference that the next apply finds, should this one end here.
        publish(context, caller, document, document.versions.iter()).await?;
        Ok(Created::default())
    }

    /// A version that somebody else published has to have the content of the document.
    /// Publishing the same content again writes nothing.
    async fn verify(
        &self,
        context: &Context,
        caller: &Caller,
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
                publish(context, caller, document, [version]).await?;
            }
            live.fields.insert(path, digest);
        }
        Ok(())
    }

    async fn change(
        &self,
        context: &Context,
        caller: &Caller,
        wanted: Desired<'_>,
    ) -> Result<(), Error> {
        let (name, description) = (wanted.text("displayName"), wanted.text("description"));
        if name.is_some() || description.is_some() {
            let reference = wanted.live.subject_id.to_string();
            let expected = wanted.live.expected();
            blueprints::update(context, caller, &reference, name, description, expected).await?;
        }
        let new = |version: &&Version| wanted.changes(&version_path(&version.content.version));
        publish(context, caller, wanted.document, wanted.document.versions.iter().filter(new)).await
    }
}

async fn publish(
    context: &Context,
    caller: &Caller,
    document: &Document,
    versions: impl IntoIterator<Item = &Version> + Send,
) -> Result<(), Error> {
    let versions: Vec<&Version> = versions.into_iter().collect();
    for version in versions {
        let (slug, content) = (&document.address.name, version.content.clone());
        blueprints::publish(context, caller, slug, content, None).await?;
    }
    Ok(())
}
