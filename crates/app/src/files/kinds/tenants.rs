//! Tenant profiles and tenants. A new tenant is provisioned: its job begins at once.

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_core::error::ErrorKind;
use slipway_core::files::document::{Address, DocumentKind};
use slipway_core::files::fields::{Fields, Terms};
use slipway_core::secret::Secret;
use slipway_core::tenants::profile::TenantProfile;
use slipway_core::tenants::tenant::Tenant;

use super::rows::{names, spec};
use crate::Error;
use crate::access::authorise::{Operation, authorise};
use crate::files::kind::{Applier, Desired, Document, FileKind, Live};
use crate::tenants::{profiles, provision};

/// Who may not see the settings of a profile finds only its engine in them.
pub(in crate::files) struct TenantProfiles;

#[async_trait]
impl FileKind for TenantProfiles {
    fn missing(&self) -> ErrorKind {
        ErrorKind::TenantProfileNotFound
    }

    fn terms(&self) -> Terms {
        Terms { defaults: spec([("description", json!(""))]), ..Terms::default() }
    }

    async fn live(&self, by: Applier<'_>, wanted: &[Address]) -> Result<Vec<Live>, Error> {
        by.rows(wanted, |profile: TenantProfile| {
            let fields = spec([
                ("description", json!(profile.description)),
                ("settings", profile.settings.clone()),
            ]);
            Live::row(DocumentKind::TenantProfile, profile.name.as_str(), &profile, fields)
                .leaving(profile.deletion_id)
        })
        .await
    }

    async fn create(
        &self,
        Applier { context, caller }: Applier<'_>,
        document: &Document,
    ) -> Result<Option<Secret>, Error> {
        let (name, description) = (&document.address.name, document.required("description"));
        let settings = document.spec.get("settings").cloned().unwrap_or(Value::Null);
        profiles::create(context, caller, name, &description, settings, None).await?;
        Ok(None)
    }

    /// Before anything is compared: a conflict would tell what the settings are.
    async fn verify(
        &self,
        by: Applier<'_>,
        _: &Document,
        _: &mut Live,
        _: Option<&Fields>,
    ) -> Result<(), Error> {
        authorise(by.caller, Operation::TenantProfileUpdate)?;
        Ok(())
    }

    async fn change(
        &self,
        Applier { context, caller }: Applier<'_>,
        wanted: Desired<'_>,
    ) -> Result<(), Error> {
        let (description, settings) = (wanted.text("description"), wanted.value("settings"));
        let expected = wanted.live.expected();
        profiles::update(context, caller, &wanted.id(), description, settings, expected).await
    }
}

/// Its profile stays: there is nothing to change.
pub(in crate::files) struct Tenants;

#[async_trait]
impl FileKind for Tenants {
    fn missing(&self) -> ErrorKind {
        ErrorKind::TenantNotFound
    }

    fn terms(&self) -> Terms {
        Terms { fixed: &["spec.profile"], ..Terms::default() }
    }

    fn needs(&self, document: &Document) -> Vec<Address> {
        let project = document.address.project.iter();
        let project = project.map(|project| Address::new(DocumentKind::Project, project));
        let profile = Address::new(DocumentKind::TenantProfile, document.required("profile"));
        project.chain([profile]).collect()
    }

    async fn live(&self, by: Applier<'_>, wanted: &[Address]) -> Result<Vec<Live>, Error> {
        let projects = by.projects(wanted).await?;
        let found = by.named::<Tenant>(names(wanted)).await?;
        let mut profiles: Vec<_> = found.iter().map(|one| one.profile_id.as_uuid()).collect();
        profiles.sort_unstable();
        profiles.dedup();
        let profiles = by.context.stores.access.names(&profiles).await?;
        let live = |address: &Address| {
            let project = *projects.get(address.project.as_ref()?)?;
            let is_it =
                |one: &&Tenant| one.name.as_str() == address.name && one.project_id == project;
            let tenant = found.iter().find(is_it)?;
            let fields = spec([("profile", json!(profiles.get(&tenant.profile_id.as_uuid())))]);
            let live = Live::at(address, tenant, fields).within(Some(project));
            Some(live.leaving(tenant.deletion_id))
        };
        Ok(wanted.iter().filter_map(live).collect())
    }

    async fn create(
        &self,
        Applier { context, caller }: Applier<'_>,
        document: &Document,
    ) -> Result<Option<Secret>, Error> {
        let project = document.address.project.clone().unwrap_or_default();
        let (profile, name) = (document.required("profile"), &document.address.name);
        provision::provision(context, caller, (&project, &profile, name), None).await?;
        Ok(None)
    }
}
