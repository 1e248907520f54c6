//! Workspaces. Each field of a group or a server is a field of its own, so that differences
//! and owners are as fine as people think of them.

use async_trait::async_trait;
use serde_json::Value;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::files::document::{Address, DocumentKind};
use slipway_core::files::fields::Fields;
use slipway_core::ids::WorkspaceId;
use slipway_core::secret::Secret;
use slipway_core::topology::declared::{Declared, of_fields, of_specs, to_fields};
use slipway_core::topology::workspace::Workspace;

use super::rows::names;
use crate::Error;
use crate::files::kind::{Applier, Desired, Document, FileKind, Live};
use crate::topology::apply::apply;
use crate::topology::plan::{Plan, plan};

pub(in crate::files) struct Workspaces;

#[async_trait]
impl FileKind for Workspaces {
    fn missing(&self) -> ErrorKind {
        ErrorKind::WorkspaceNotFound
    }

    fn needs(&self, document: &Document) -> Vec<Address> {
        let project = document.address.project.clone().unwrap_or_default();
        let mut needs = vec![
            Address::new(DocumentKind::Project, &project),
            Address::new(DocumentKind::Placement, project),
        ];
        if let Ok(declared) = declared(document) {
            let groups = declared.groups.iter().map(|group| &group.made_of.blueprint);
            let servers = declared.servers.iter().map(|server| &server.made_of.blueprint);
            let blueprints = groups.chain(servers);
            needs.extend(blueprints.map(|slug| Address::new(DocumentKind::Blueprint, slug)));
        }
        needs
    }

    async fn live(&self, by: Applier<'_>, wanted: &[Address]) -> Result<Vec<Live>, Error> {
        let projects = by.projects(wanted).await?;
        let found = by.named::<Workspace>(names(wanted)).await?;
        let ids: Vec<WorkspaceId> = found.iter().map(|one| one.id).collect();
        let groups = by.context.stores.topology.workspace_groups(&ids).await?;
        let live = |address: &Address| {
            let project = *projects.get(address.project.as_ref()?)?;
            let is_it =
                |one: &&Workspace| one.name.as_str() == address.name && one.project_id == project;
            let workspace = found.iter().find(is_it)?;
            let own =
                groups.iter().filter(|group| group.workspace_id == workspace.id && !group.dropped);
            let fields = to_fields(&of_specs(own.map(|group| &group.spec)));
            let live = Live::at(address, workspace, fields).within(Some(project));
            Some(live.leaving(workspace.deletion_id))
        };
        Ok(wanted.iter().filter_map(live).collect())
    }

    async fn create(
        &self,
        Applier { context, caller }: Applier<'_>,
        document: &Document,
    ) -> Result<Option<Secret>, Error> {
        let (project, name) = address(document);
        let planned = (None, document.plan.as_deref());
        apply(context, caller, project, name, &declared(document)?, planned).await?;
        Ok(None)
    }

    async fn plan(
        &self,
        Applier { context, caller }: Applier<'_>,
        document: &Document,
        target: &Fields,
    ) -> Result<Option<Plan>, Error> {
        let (project, name) = address(document);
        plan(context, caller, project, name, &of_fields(target)?).await
    }

    /// Before anything is compared: the names of groups are parts of the fields.
    async fn verify(
        &self,
        _: Applier<'_>,
        document: &Document,
        _: &mut Live,
        _: Option<&Fields>,
    ) -> Result<(), Error> {
        declared(document)?.check()?;
        Ok(())
    }

    async fn change(
        &self,
        Applier { context, caller }: Applier<'_>,
        wanted: Desired<'_>,
    ) -> Result<(), Error> {
        let (project, name) = address(wanted.document);
        let declared = of_fields(wanted.target)?;
        let planned = (wanted.live.revision, wanted.document.plan.as_deref());
        apply(context, caller, project, name, &declared, planned).await
    }
}

fn address(document: &Document) -> (&str, &str) {
    (document.address.project.as_deref().unwrap_or_default(), &document.address.name)
}

/// The spec as its type, which the schema has checked.
pub(in crate::files) fn declared(document: &Document) -> Result<Declared, Refusal> {
    serde_json::from_value(Value::Object(document.spec.clone()))
        .map_err(|error| Refusal::invalid("spec", error))
}
