//! Label definitions, clouds and projects.

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_core::catalog::cloud::Cloud;
use slipway_core::catalog::label::LabelDefinition;
use slipway_core::catalog::project::Project;
use slipway_core::files::document::{Address, DocumentKind};
use slipway_core::files::fields::{Terms, entries, label_path, labels};
use slipway_core::nodes::mesh::MeshCidr;

use super::rows::{named, names, spec};
use crate::access::authorise::Caller;
use crate::catalog::{clouds, labels as label_definitions, projects};
use crate::files::kind::{Created, Desired, Document, FileKind, Live};
use crate::{Context, Error};

pub(in crate::files) struct Labels;

#[async_trait]
impl FileKind for Labels {
    fn terms(&self) -> Terms {
        let defaults = spec([("description", Some(json!(""))), ("propagate", Some(json!(false)))]);
        Terms { defaults, ..Terms::default() }
    }

    fn needs(&self, _document: &Document) -> Vec<Address> {
        Vec::new()
    }

    async fn live(
        &self,
        context: &Context,
        caller: &Caller,
        wanted: &[Address],
    ) -> Result<Vec<Live>, Error> {
        let found = named::<LabelDefinition>(context, caller, names(wanted)).await?;
        let live = |label: LabelDefinition| Live {
            address: Address::new(DocumentKind::Label, label.key.as_str()),
            subject_id: label.id.as_uuid(),
            project_id: None,
            revision: Some(label.revision),
            fields: spec([
                ("description", Some(json!(label.description))),
                ("propagate", Some(json!(label.propagate))),
            ]),
            versions: Vec::new(),
            leaving: label.deletion_id.is_some(),
        };
        Ok(found.into_iter().map(live).collect())
    }

    async fn create(
        &self,
        context: &Context,
        caller: &Caller,
        document: &Document,
    ) -> Result<Created, Error> {
        let propagate = document.spec.get("propagate").and_then(Value::as_bool).unwrap_or(false);
        let (key, description) = (&document.address.name, document.required("description"));
        label_definitions::define(context, caller, key, &description, propagate, None).await?;
        Ok(Created::default())
    }

    async fn change(
        &self,
        context: &Context,
        caller: &Caller,
        wanted: Desired<'_>,
    ) -> Result<(), Error> {
        let reference = wanted.live.subject_id.to_string();
        let propagate = wanted
            .changes("spec.propagate")
            .then(|| wanted.target.get("spec.propagate").and_then(Value::as_bool).unwrap_or(false));
        let (description, expected) = (wanted.text("description"), wanted.live.expected());
        label_definitions::update(context, caller, &reference, description, propagate, expected)
            .await
    }
}

pub(in crate::files) struct Clouds;

#[async_trait]
impl FileKind for Clouds {
    fn terms(&self) -> Terms {
        Terms { fixed: &["spec.provider"], ..Terms::default() }
    }

    fn needs(&self, _document: &Document) -> Vec<Address> {
        Vec::new()
    }

    async fn live(
        &self,
        context: &Context,
        caller: &Caller,
        wanted: &[Address],
    ) -> Result<Vec<Live>, Error> {
        let found = named::<Cloud>(context, caller, names(wanted)).await?;
        let live = |cloud: Cloud| {
            let mut fields = spec([("provider", Some(json!(cloud.provider)))]);
            let endpoint = cloud.endpoint.as_map().iter();
            fields.extend(endpoint.map(|(key, v)| (format!("spec.endpoint.{key}"), v.clone())));
            Live {
                address: Address::new(DocumentKind::Cloud, cloud.name.as_str()),
                subject_id: cloud.id.as_uuid(),
                project_id: None,
                revision: Some(cloud.revision),
                fields,
                versions: Vec::new(),
                leaving: cloud.deletion_id.is_some(),
            }
        };
        Ok(found.into_iter().map(live).collect())
    }

    async fn create(
        &self,
        context: &Context,
        caller: &Caller,
        document: &Document,
    ) -> Result<Created, Error> {
        let endpoint = entries(&document.fields(), "endpoint");
        let (name, provider) = (&document.address.name, document.required("provider"));
        clouds::create(context, caller, name, &provider, endpoint, None).await?;
        Ok(Created::default())
    }

    async fn change(
        &self,
        context: &Context,
        caller: &Caller,
        wanted: Desired<'_>,
    ) -> Result<(), Error> {
        let reference = wanted.live.subject_id.to_string();
        let endpoint = entries(wanted.target, "endpoint");
        clouds::update(context, caller, &reference, endpoint, wanted.live.expected()).await
    }
}

pub(in crate::files) struct Projects;

#[async_trait]
impl FileKind for Projects {
    fn terms(&self) -> Terms {
        let mesh = MeshCidr::DEFAULT.to_string();
        Terms { defaults: spec([("meshCidr", Some(json!(mesh)))]), ..Terms::default() }
    }

    fn needs(&self, _document: &Document) -> Vec<Address> {
        Vec::new()
    }

    async fn live(
        &self,
        context: &Context,
        caller: &Caller,
        wanted: &[Address],
    ) -> Result<Vec<Live>, Error> {
        let found = named::<Project>(context, caller, names(wanted)).await?;
        let live = |project: Project| {
            let mut fields = spec([("meshCidr", Some(json!(project.mesh_cidr.to_string())))]);
            let labels = project.labels.as_map().iter();
            fields.extend(labels.map(|(key, value)| (label_path(key), json!(value))));
            Live {
                address: Address::new(DocumentKind::Project, project.name.as_str()),
                subject_id: project.id.as_uuid(),
                project_id: Some(project.id),
                revision: Some(project.revision),
                fields,
                versions: Vec::new(),
                leaving: project.deletion_id.is_some(),
            }
        };
        Ok(found.into_iter().map(live).collect())
    }

    async fn create(
        &self,
        context: &Context,
        caller: &Caller,
        document: &Document,
    ) -> Result<Created, Error> {
        let mesh = document.text("meshCidr");
        let draft = projects::Draft {
            name: &document.address.name,
            labels: document.labels.clone(),
            mesh_cidr: mesh.as_deref(),
            protected: false,
        };
        projects::create(context, caller, draft, None).await?;
        Ok(Created::default())
    }

    async fn change(
        &self,
        context: &Context,
        caller: &Caller,
        wanted: Desired<'_>,
    ) -> Result<(), Error> {
        let default = MeshCidr::DEFAULT.to_string();
        let mesh =
            wanted.text("meshCidr").map(|mesh| if mesh.is_empty() { &default } else { mesh });
        let change = projects::Change {
            labels: wanted.changes("metadata.labels.").then(|| labels(wanted.target)),
            mesh_cidr: mesh,
        };
        let reference = wanted.live.subject_id.to_string();
        projects::update(context, caller, &reference, change, wanted.live.expected()).await
    }
}
