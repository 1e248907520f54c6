//! Resources.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::catalog::parameters::ParameterValues;
use slipway_core::error::ErrorKind;
use slipway_core::files::document::{Address, DocumentKind};
use slipway_core::files::fields::{Change, Terms, entries, labels};
use slipway_core::ids::{ProjectId, ResourceId};
use slipway_core::secret::Secret;
use uuid::Uuid;

use super::rows::{labelled, map, spec};
use crate::Error;
use crate::access::authorise::{Operation, authorise};
use crate::broker::declare;
use crate::broker::update::{Changes, update};
use crate::files::kind::{Applier, Desired, Document, FileKind, Live};

pub(in crate::files) struct Resources;

#[async_trait]
impl FileKind for Resources {
    fn missing(&self) -> ErrorKind {
        ErrorKind::ResourceNotFound
    }

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

    async fn live(&self, by: Applier<'_>, wanted: &[Address]) -> Result<Vec<Live>, Error> {
        authorise(by.caller, Operation::ResourceRead)?;
        let projects = by.projects(wanted).await?;
        let handles: Vec<(ProjectId, String)> = wanted
            .iter()
            .filter_map(|address| {
                Some((*projects.get(address.project.as_ref()?)?, address.name.clone()))
            })
            .collect();
        let stores = &by.context.stores;
        let found = stores.broker.resource_named(&handles).await?;
        let found: Vec<ResourceSnapshot> = found.into_iter().filter_map(Result::ok).collect();
        let credentials: Vec<Uuid> =
            found.iter().map(|one| one.attempt.cloud_credential_id().as_uuid()).collect();
        let names = stores.access.names(&credentials).await?;
        let found: BTreeMap<_, _> = found
            .iter()
            .map(|one| ((one.resource.project_id, one.resource.handle.as_str()), one))
            .collect();
        let live = |address: &Address| {
            let project = *projects.get(address.project.as_ref()?)?;
            let ResourceSnapshot { resource, attempt, blueprint, .. } =
                found.get(&(project, address.name.as_str()))?;
            let mut fields = spec([
                ("blueprint", json!(blueprint.slug)),
                ("version", json!(blueprint.version)),
                ("credential", json!(names.get(&attempt.cloud_credential_id().as_uuid()))),
            ]);
            fields.extend(map("parameters", attempt.parameter_values().as_map()));
            fields.extend(labelled(&resource.labels));
            Some(Live {
                subject_id: resource.id.as_uuid(),
                revision: Some(resource.revision),
                leaving: resource.deletion_id.is_some(),
                ..Live::of_project(address, project, fields)
            })
        };
        Ok(wanted.iter().filter_map(live).collect())
    }

    async fn create(
        &self,
        Applier { context, caller }: Applier<'_>,
        document: &Document,
    ) -> Result<Option<Secret>, Error> {
        declare::declare(context, caller, declaration(document)).await?;
        Ok(None)
    }

    async fn change(
        &self,
        Applier { context, caller }: Applier<'_>,
        wanted: Desired<'_>,
    ) -> Result<(), Error> {
        let version = wanted.text("version").map(str::to_owned);
        let parameters = |value: fn(&Change) -> &Option<Value>| -> BTreeMap<String, Value> {
            let of = |change: &Change| {
                let name = change.path.strip_prefix("spec.parameters.")?;
                Some((name.to_owned(), value(change).clone()?))
            };
            wanted.changes.iter().filter_map(of).collect()
        };
        let before = ParameterValues::from_stored(parameters(|change| &change.before));
        let changes = Changes {
            version: version.filter(|version| !version.is_empty()),
            parameters: before.patch_to(&parameters(|change| &change.after)),
            labels: wanted.changes("metadata.labels.").then(|| labels(wanted.target)),
        };
        let id = ResourceId::new(wanted.live.subject_id);
        update(context, caller, id, changes, wanted.live.expected()).await?;
        Ok(())
    }
}

/// The declaration of a new resource.
pub(in crate::files) fn declaration(document: &Document) -> declare::Declare {
    let parameters = entries(&document.fields(), "parameters");
    let owned = |name: &str| document.text(name).map(str::to_owned);
    declare::Declare {
        project: document.address.project.clone(),
        handle: document.address.name.clone(),
        blueprint: document.required("blueprint"),
        version: owned("version"),
        credential: owned("credential"),
        parameters: parameters.into_iter().collect(),
        labels: document.labels.clone(),
        protected: false,
        request: None,
    }
}
