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

use super::rows::{named, names, projects, spec};
use crate::access::authorise::{Caller, Operation, authorise};
use crate::catalog::credentials;
use crate::files::kind::{Created, Desired, Document, FileKind, Live};
use crate::{Context, Error};

/// The credentials at these addresses, by cloud and name.
async fn found(
    context: &Context,
    caller: &Caller,
    wanted: &[Address],
) -> Result<BTreeMap<(String, String), Credential>, Error> {
    let clouds = wanted.iter().filter_map(|address| address.cloud.clone());
    let clouds = named::<Cloud>(context, caller, clouds).await?;
    let clouds: BTreeMap<_, _> =
        clouds.into_iter().map(|cloud| (cloud.id, cloud.name.to_string())).collect();
    let credentials = named::<Credential>(context, caller, names(wanted)).await?;
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
    fn terms(&self) -> Terms {
        Terms {
            defaults: spec([("kvMount", Some(json!(Coordinates::DEFAULT_MOUNT)))]),
            computed: &["spec.kvPath"],
            fixed: &["spec.cloud"],
        }
    }

    fn needs(&self, document: &Document) -> Vec<Address> {
        vec![Address::new(DocumentKind::Cloud, document.required("cloud"))]
    }

    async fn live(
        &self,
        context: &Context,
        caller: &Caller,
        wanted: &[Address],
    ) -> Result<Vec<Live>, Error> {
        let found = found(context, caller, wanted).await?;
        let live = |((cloud, name), credential): ((String, String), Credential)| Live {
            address: Address::new(DocumentKind::Credential, name).of_cloud(&cloud),
            subject_id: credential.id.as_uuid(),
            project_id: None,
            revision: Some(credential.revision),
            fields: spec([
                ("cloud", Some(json!(cloud))),
                ("kvMount", Some(json!(credential.coordinates.kv_mount))),
                ("kvPath", Some(json!(credential.coordinates.kv_path))),
            ]),
            versions: Vec::new(),
            leaving: credential.deletion_id.is_some(),
        };
        Ok(found.into_iter().map(live).collect())
    }

    async fn create(
        &self,
        context: &Context,
        caller: &Caller,
        document: &Document,
    ) -> Result<Created, Error> {
        let input = credentials::CreateCredential {
            cloud: document.required("cloud"),
            name: document.address.name.clone(),
            kv_mount: document.text("kvMount"),
            kv_path: document.text("kvPath"),
        };
        credentials::create(context, caller, input, None).await?;
        Ok(Created::default())
    }

    async fn change(
        &self,
        context: &Context,
        caller: &Caller,
        wanted: Desired<'_>,
    ) -> Result<(), Error> {
        let id = CloudCredentialId::new(wanted.live.subject_id);
        let mount = wanted.text("kvMount").map(|mount| match mount {
            "" => Coordinates::DEFAULT_MOUNT,
            mount => mount,
        });
        let (path, expected) = (wanted.text("kvPath"), wanted.live.expected());
        credentials::update(context, caller, id, mount, path, expected).await
    }
}

pub(in crate::files) struct Assignments;

#[async_trait]
impl FileKind for Assignments {
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

    async fn live(
        &self,
        context: &Context,
        caller: &Caller,
        wanted: &[Address],
    ) -> Result<Vec<Live>, Error> {
        authorise(caller, Operation::CredentialReadAssigned)?;
        let projects = projects(context, caller, wanted).await?;
        let credentials = found(context, caller, wanted).await?;
        let ids: Vec<ProjectId> = projects.values().copied().collect();
        let assigned = context.stores.catalog.credential_assignments_of(&ids).await?;
        let assigned: BTreeSet<_> =
            assigned.iter().map(|one| (one.project_id, one.credential_id)).collect();
        let live = |address: &Address| {
            let project = *projects.get(address.project.as_ref()?)?;
            let credential = credentials.get(&key(address))?;
            assigned.contains(&(project, credential.id)).then(|| Live {
                address: address.clone(),
                subject_id: project.as_uuid(),
                project_id: Some(project),
                revision: None,
                fields: spec([("cloud", Some(json!(address.cloud)))]),
                versions: Vec::new(),
                leaving: false,
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
        let address = &document.address;
        let found = found(context, caller, std::slice::from_ref(address)).await?;
        let credential = found.get(&key(address)).ok_or_else(|| {
            let (cloud, name) = key(address);
            let message = format!("cloud `{cloud}` has no credential `{name}`; declare it first");
            Refusal::new(ErrorKind::CredentialNotFound, message).at("metadata.name")
        })?;
        let project = address.project.as_deref().unwrap_or_default();
        credentials::assign(context, caller, project, credential.id).await?;
        Ok(Created::default())
    }

    /// It has nothing that can change.
    async fn change(
        &self,
        _context: &Context,
        _caller: &Caller,
        _wanted: Desired<'_>,
    ) -> Result<(), Error> {
        Ok(())
    }
}
