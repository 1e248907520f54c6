//! Resources.

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::files::document::{Address, DocumentKind};
use slipway_core::files::fields::{Change, Terms, entries, label_path, labels};
use slipway_core::ids::{ProjectId, ResourceId};
use uuid::Uuid;

use super::rows::{projects, spec};
use crate::access::authorise::{Caller, Operation, authorise};
use crate::broker::declare;
use crate::broker::update::{Changes, update};
use crate::files::kind::{Created, Desired, Document, FileKind, Live};
use crate::{Context, Error};

pub(in crate::files) struct Resources;

#[async_trait]
impl FileKind for Resources {
    fn terms(&self) -> Terms {
        Terms {
            computed: &["spec.version", "spec.credential"],
            fixed: &["spec.blueprint", "spec.credential"],
            ..Terms::default()
        }
    }

    fn needs(&self, document: &Document) -> Vec<Address> {
        let project = document.address.project.clone().unwrap_or_default();
        vec![
            Address::new(DocumentKind::Project, &project),
            Address::new(DocumentKind::Placement, project),
            Address::new(DocumentKind::Blueprint, document.required("blueprint")),
        ]
    }

    async fn live(
        &self,
        context: &Context,
        caller: &Caller,
        wanted: &[Address],
    ) -> Result<Vec<Live>, Error> {
        authorise(caller, Operation::ResourceRead)?;
        let projects = projects(context, caller, wanted).await?;
        let handles: Vec<(ProjectId, String)> = wanted
            .iter()
            .filter_map(|address| {
                Some((*projects.get(address.project.as_ref()?)?, address.name.clone()))
            })
            .collect();
        let found = context.stores.broker.resource_named(&handles).await?;
        let found: Vec<ResourceSnapshot> = found.into_iter().filter_map(Result::ok).collect();
        let credentials: Vec<Uuid> =
            found.iter().map(|one| one.attempt.cloud_credential_id().as_uuid()).collect();
        let names = context.stores.access.names(&credentials).await?;
        let live = |address: &Address| {
            let project = *projects.get(address.project.as_ref()?)?;
            let resource = found.iter().find(|one| {
                one.resource.project_id == project && one.resource.handle.as_str() == address.name
            })?;
            let credential = resource.attempt.cloud_credential_id().as_uuid();
            let mut fields = spec([
                ("blueprint", Some(json!(resource.blueprint.slug))),
                ("version", Some(json!(resource.blueprint.version))),
                ("credential", names.get(&credential).map(|name| json!(name))),
            ]);
            let given = resource.attempt.parameter_values().as_map().iter();
            fields.extend(given.map(|(key, v)| (format!("spec.parameters.{key}"), v.clone())));
            let labels = resource.resource.labels.as_map().iter();
            fields.extend(labels.map(|(key, value)| (label_path(key), json!(value))));
            Some(Live {
                address: address.clone(),
                subject_id: resource.resource.id.as_uuid(),
                project_id: Some(project),
                revision: Some(resource.resource.revision),
                fields,
                versions: Vec::new(),
                leaving: resource.resource.deletion_id.is_some(),
            })
        };
        Ok(wanted.iter().filter_map(live).collect())
    }

    async fn create(
        &self,
        context: &Context,
        caller: &Caller,
        document: &Document,
    ) -> Result<Created, Error> {
        declare::declare(context, caller, declaration(document)).await?;
        Ok(Created::default())
    }

    async fn change(
        &self,
        context: &Context,
        caller: &Caller,
        wanted: Desired<'_>,
    ) -> Result<(), Error> {
        let id = ResourceId::new(wanted.live.subject_id);
        let version = wanted.text("version").map(str::to_owned);
        let parameter = |change: &Change| {
            let name = change.path.strip_prefix("spec.parameters.")?;
            Some((name.to_owned(), change.after.clone().unwrap_or(Value::Null)))
        };
        let changes = Changes {
            version: version.filter(|version| !version.is_empty()),
            parameters: wanted.changes.iter().filter_map(parameter).collect(),
            labels: wanted.changes("metadata.labels.").then(|| labels(wanted.target)),
        };
        update(context, caller, id, changes, wanted.live.expected()).await?;
        Ok(())
    }
}

/// The declaration of a new resource.
pub(in crate::files) fn declaration(document: &Document) -> declare::Declare {
    let parameters = entries(&document.fields(), "parameters");
    declare::Declare {
        project: document.address.project.clone(),
        handle: document.address.name.clone(),
        blueprint: document.required("blueprint"),
        version: document.text("version"),
        credential: document.text("credential"),
        parameters: parameters.into_iter().collect(),
        labels: document.labels.clone(),
        protected: false,
        request: None,
    }
}
