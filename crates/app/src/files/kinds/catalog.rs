//! Label definitions, clouds and projects.

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_core::catalog::cloud::Cloud;
use slipway_core::catalog::label::LabelDefinition;
use slipway_core::catalog::project::Project;
use slipway_core::error::ErrorKind;
use slipway_core::files::document::{Address, DocumentKind};
use slipway_core::files::fields::{Terms, entries, labels};
use slipway_core::nodes::mesh::MeshCidr;
use slipway_core::secret::Secret;

use super::rows::{labelled, map, spec};
use crate::Error;
use crate::catalog::{clouds, labels as definitions, projects};
use crate::files::kind::{Applier, Desired, Document, FileKind, Live};

pub(in crate::files) struct Labels;

#[async_trait]
impl FileKind for Labels {
    fn missing(&self) -> ErrorKind {
        ErrorKind::LabelNotFound
    }

    fn terms(&self) -> Terms {
        let defaults = spec([("description", json!("")), ("propagate", json!(false))]);
        Terms { defaults, ..Terms::default() }
    }

    async fn live(&self, by: Applier<'_>, wanted: &[Address]) -> Result<Vec<Live>, Error> {
        by.rows(wanted, |label: LabelDefinition| {
            let fields = spec([
                ("description", json!(label.description)),
                ("propagate", json!(label.propagate)),
            ]);
            Live::row(DocumentKind::Label, label.key.as_str(), &label, fields)
                .leaving(label.deletion_id)
        })
        .await
    }

    async fn create(
        &self,
        Applier { context, caller }: Applier<'_>,
        document: &Document,
    ) -> Result<Option<Secret>, Error> {
        let propagate = document.spec.get("propagate").and_then(Value::as_bool).unwrap_or(false);
        let (key, description) = (&document.address.name, document.required("description"));
        definitions::define(context, caller, key, &description, propagate, None).await?;
        Ok(None)
    }

    async fn change(
        &self,
        Applier { context, caller }: Applier<'_>,
        wanted: Desired<'_>,
    ) -> Result<(), Error> {
        let propagate = wanted.value("propagate").and_then(Value::as_bool);
        let (description, expected) = (wanted.text("description"), wanted.live.expected());
        definitions::update(context, caller, &wanted.id(), description, propagate, expected).await
    }
}

pub(in crate::files) struct Clouds;

#[async_trait]
impl FileKind for Clouds {
    fn missing(&self) -> ErrorKind {
        ErrorKind::CloudNotFound
    }

    fn terms(&self) -> Terms {
        Terms { fixed: &["spec.provider"], ..Terms::default() }
    }

    async fn live(&self, by: Applier<'_>, wanted: &[Address]) -> Result<Vec<Live>, Error> {
        by.rows(wanted, |cloud: Cloud| {
            let mut fields = spec([("provider", json!(cloud.provider))]);
            fields.extend(map("endpoint", cloud.endpoint.as_map()));
            Live::row(DocumentKind::Cloud, cloud.name.as_str(), &cloud, fields)
                .leaving(cloud.deletion_id)
        })
        .await
    }

    async fn create(
        &self,
        Applier { context, caller }: Applier<'_>,
        document: &Document,
    ) -> Result<Option<Secret>, Error> {
        let endpoint = entries(&document.fields(), "endpoint");
        let (name, provider) = (&document.address.name, document.required("provider"));
        clouds::create(context, caller, name, &provider, endpoint, None).await?;
        Ok(None)
    }

    async fn change(
        &self,
        Applier { context, caller }: Applier<'_>,
        wanted: Desired<'_>,
    ) -> Result<(), Error> {
        let endpoint = entries(wanted.target, "endpoint");
        clouds::update(context, caller, &wanted.id(), endpoint, wanted.live.expected()).await
    }
}

pub(in crate::files) struct Projects;

#[async_trait]
impl FileKind for Projects {
    fn missing(&self) -> ErrorKind {
        ErrorKind::ProjectNotFound
    }

    fn terms(&self) -> Terms {
        let mesh = MeshCidr::DEFAULT.to_string();
        Terms { defaults: spec([("meshCidr", json!(mesh))]), ..Terms::default() }
    }

    async fn live(&self, by: Applier<'_>, wanted: &[Address]) -> Result<Vec<Live>, Error> {
        by.rows(wanted, |project: Project| {
            let mut fields = spec([("meshCidr", json!(project.mesh_cidr.to_string()))]);
            fields.extend(labelled(&project.labels));
            Live::row(DocumentKind::Project, project.name.as_str(), &project, fields)
                .within(Some(project.id))
                .leaving(project.deletion_id)
        })
        .await
    }

    async fn create(
        &self,
        Applier { context, caller }: Applier<'_>,
        document: &Document,
    ) -> Result<Option<Secret>, Error> {
        let draft = projects::Draft {
            name: &document.address.name,
            labels: document.labels.clone(),
            mesh_cidr: document.text("meshCidr"),
            protected: false,
        };
        projects::create(context, caller, draft, None).await?;
        Ok(None)
    }

    async fn change(
        &self,
        Applier { context, caller }: Applier<'_>,
        wanted: Desired<'_>,
    ) -> Result<(), Error> {
        let change = projects::Change {
            labels: wanted.changes("metadata.labels.").then(|| labels(wanted.target)),
            mesh_cidr: wanted.text("meshCidr"),
        };
        projects::update(context, caller, &wanted.id(), change, wanted.live.expected()).await
    }
}
