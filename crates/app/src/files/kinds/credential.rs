//! Credentials, and which projects may use them.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use serde_json::json;
use slipway_core::catalog::cloud::Cloud;
use slipway_core::catalog::credential::{Coordinates, Credential};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::files::document::{Address, DocumentKind};
use slipway_core::files::fields::Terms;
use slipway_core::ids::{CloudCredentialId, ProjectId};
use slipway_core::secret::Secret;

use super::rows::{names, spec};
use crate::Error;
use crate::access::authorise::{Operation, authorise};
use crate::catalog::credentials;
use crate::files::kind::{Applier, Desired, Document, FileKind, Live};

/// The credentials at these addresses, by cloud and name.
async fn found(
    by: Applier<'_>,
    wanted: &[Address],
) -> Result<BTreeMap<(String, String), Credential>, Error> {
    let clouds = wanted.iter().filter_map(|address| address.cloud.clone());
    let clouds = by.named::<Cloud>(clouds).await?.into_iter();
    let clouds: BTreeMap<_, _> = clouds.map(|cloud| (cloud.id, cloud.name.to_string())).collect();
    let credentials = by.named::<Credential>(names(wanted)).await?;
    let keyed = credentials.into_iter().filter_map(|credential| {
        let cloud = clouds.get(&credential.cloud_id)?.clone();
        Some(((cloud, credential.name.to_string()), credential))
    });
    Ok(keyed.collect())
}

fn key(address: &Address) -> (String, String) {
    (address.cloud.clone().unwrap_or_default(), address.name.clone())
}

pub(in crate::files) struct Credentials;

#[async_trait]
impl FileKind for Credentials {
    fn missing(&self) -> ErrorKind {
        ErrorKind::CredentialNotFound
    }

    fn terms(&self) -> Terms {
        Terms {
            defaults: spec([("kvMount", json!(Coordinates::DEFAULT_MOUNT))]),
            computed: &["spec.kvPath"],
            fixed: &["spec.cloud"],
        }
    }

    fn needs(&self, document: &Document) -> Vec<Address> {
        vec![Address::new(DocumentKind::Cloud, document.required("cloud"))]
    }

    async fn live(&self, by: Applier<'_>, wanted: &[Address]) -> Result<Vec<Live>, Error> {
        let live = |((cloud, name), credential): ((String, String), Credential)| {
            let fields = spec([
                ("cloud", json!(cloud)),
                ("kvMount", json!(credential.coordinates.kv_mount)),
                ("kvPath", json!(credential.coordinates.kv_path)),
            ]);
            let mut live = Live::row(DocumentKind::Credential, name, &credential, fields)
                .leaving(credential.deletion_id);
            live.address.cloud = Some(cloud);
            live
        };
        Ok(found(by, wanted).await?.into_iter().map(live).collect())
    }

    async fn create(
        &self,
        Applier { context, caller }: Applier<'_>,
        document: &Document,
    ) -> Result<Option<Secret>, Error> {
        let owned = |name: &str| document.text(name).map(str::to_owned);
        let input = credentials::CreateCredential {
            cloud: document.required("cloud"),
            name: document.address.name.clone(),
            kv_mount: owned("kvMount"),
            kv_path: owned("kvPath"),
        };
        credentials::create(context, caller, input, None).await?;
        Ok(None)
    }

    async fn change(
        &self,
        Applier { context, caller }: Applier<'_>,
        wanted: Desired<'_>,
    ) -> Result<(), Error> {
        let id = CloudCredentialId::new(wanted.live.subject_id);
        let (mount, path) = (wanted.text("kvMount"), wanted.text("kvPath"));
        credentials::update(context, caller, id, mount, path, wanted.live.expected()).await
    }
}

/// It has nothing that can change.
pub(in crate::files) struct Assignments;

#[async_trait]
impl FileKind for Assignments {
    fn missing(&self) -> ErrorKind {
        ErrorKind::AssignmentNotFound
    }

    fn terms(&self) -> Terms {
        Terms { fixed: &["spec.cloud"], ..Terms::default() }
    }

    fn needs(&self, document: &Document) -> Vec<Address> {
        let Address { project, name, .. } = &document.address;
        vec![
            Address::new(DocumentKind::Project, project.clone().unwrap_or_default()),
            Address::new(DocumentKind::Credential, name).of_cloud(document.required("cloud")),
        ]
    }

    async fn live(&self, by: Applier<'_>, wanted: &[Address]) -> Result<Vec<Live>, Error> {
        authorise(by.caller, Operation::CredentialReadAssigned)?;
        let projects = by.projects(wanted).await?;
        let credentials = found(by, wanted).await?;
        let ids: Vec<ProjectId> = projects.values().copied().collect();
        let assigned = by.context.stores.catalog.credential_assignments_of(&ids).await?;
        let assigned: BTreeSet<_> =
            assigned.iter().map(|one| (one.project_id, one.credential_id)).collect();
        let live = |address: &Address| {
            let project = *projects.get(address.project.as_ref()?)?;
            let credential = credentials.get(&key(address))?;
            let fields = spec([("cloud", json!(address.cloud))]);
            assigned
                .contains(&(project, credential.id))
                .then(|| Live::of_project(address, project, fields))
        };
        Ok(wanted.iter().filter_map(live).collect())
    }

    async fn create(&self, by: Applier<'_>, document: &Document) -> Result<Option<Secret>, Error> {
        let address = &document.address;
        let found = found(by, std::slice::from_ref(address)).await?;
        let credential = found.get(&key(address)).ok_or_else(|| {
            let (cloud, name) = key(address);
            let message = format!("cloud `{cloud}` has no credential `{name}`; declare it first");
            Refusal::new(ErrorKind::CredentialNotFound, message).at("metadata.name")
        })?;
        let project = address.project.as_deref().unwrap_or_default();
        credentials::assign(by.context, by.caller, project, credential.id).await?;
        Ok(None)
    }
}
