//! Projects.

use std::collections::BTreeMap;

use slipway_core::access::idempotency::Request;
use slipway_core::catalog::Name;
use slipway_core::catalog::project::Project;
use slipway_core::catalog::rules::project::{self, NewProject, ProjectChange};
use slipway_core::catalog::snapshot::ProjectSnapshot;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{DeletionId, ProjectId};
use slipway_core::nodes::mesh::MeshCidr;
use slipway_core::precondition::Expected;
use slipway_core::text::Labels;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::idempotency::{bind, record};
use crate::catalog::common::{check, missing, removal};
use crate::ports::Listed;
use crate::ports::store::Page;
use crate::{Context, Error};

/// A project to be created, unchecked.
#[derive(Debug)]
pub struct Draft<'a> {
    pub name: &'a str,
    pub labels: BTreeMap<String, String>,
    /// [`MeshCidr::DEFAULT`] if not given.
    pub mesh_cidr: Option<&'a str>,
}

/// The fields to change, unchecked.
#[derive(Debug, Default)]
pub struct Change<'a> {
    pub labels: Option<BTreeMap<String, String>>,
    pub mesh_cidr: Option<&'a str>,
}

pub async fn create(
    context: &Context,
    caller: &Caller,
    draft: Draft<'_>,
    request: Option<Request>,
) -> Result<ProjectId, Error> {
    let actor = authorise(caller, Operation::ProjectCreate)?;
    let new = NewProject {
        id: ProjectId::new(context.entropy.uuid()),
        name: Name::parse("name", draft.name).map_err(Refusal::from)?,
        labels: Labels::parse(draft.labels).map_err(Refusal::from)?,
        mesh_cidr: mesh(draft.mesh_cidr)?.unwrap_or(MeshCidr::DEFAULT),
    };
    let record = record(context, request, new.id.as_uuid());
    context
        .stores
        .catalog
        .decide_project(new.name.as_str(), &mut |snapshot| {
            Ok(bind(project::create(snapshot, &new, &actor)?, record.as_ref()))
        })
        .await?;
    Ok(new.id)
}

pub async fn fetch(
    context: &Context,
    caller: &Caller,
    reference: &str,
    show_deleted: bool,
) -> Result<Project, Error> {
    authorise(caller, Operation::ProjectRead)?;
    check("project", reference)?;
    let found = context.stores.catalog.project_fetch(reference, show_deleted).await?;
    let found = found.filter(|project| caller.reaches(project.id));
    missing(found, ErrorKind::ProjectNotFound, "project", reference)
}

pub async fn list(
    context: &Context,
    caller: &Caller,
    page: Page<ProjectId>,
    show_deleted: bool,
) -> Result<Listed<Project>, Error> {
    authorise(caller, Operation::ProjectRead)?;
    let Some(own) = caller.project else {
        return Ok(context.stores.catalog.project_list(page, show_deleted).await?);
    };
    let own = context.stores.catalog.project_fetch(&own.to_string(), show_deleted).await?;
    let own = own.into_iter().filter(|own| page.after.is_none_or(|after| own.id > after));
    Ok(Listed::only(own.collect()))
}

/// Replaces labels (all of them), the mesh, or both.
pub async fn update(
    context: &Context,
    caller: &Caller,
    reference: &str,
    change: Change<'_>,
    expected: Expected,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::ProjectUpdate)?;
    check("project", reference)?;
    if change.labels.is_none() && change.mesh_cidr.is_none() {
        let problem = "or `mesh_cidr` must be given; there is nothing to change";
        return Err(Refusal::invalid("labels", problem).into());
    }
    let change = ProjectChange {
        labels: change.labels.map(Labels::parse).transpose().map_err(Refusal::from)?,
        mesh_cidr: mesh(change.mesh_cidr)?,
    };
    let mut rule = |snapshot: &ProjectSnapshot| {
        let reached = snapshot.project.as_ref().is_none_or(|project| caller.reaches(project.id));
        let unseen = || ProjectSnapshot { project: None, ..snapshot.clone() };
        let snapshot = if reached { snapshot } else { &unseen() };
        project::update(snapshot, &change, expected, &actor)
    };
    Ok(context.stores.catalog.decide_project(reference, &mut rule).await?)
}

fn mesh(text: Option<&str>) -> Result<Option<MeshCidr>, Refusal> {
    let parsed = text.map(|text| MeshCidr::parse("mesh_cidr", text)).transpose();
    parsed.map_err(Refusal::from)
}

pub async fn delete(
    context: &Context,
    caller: &Caller,
    reference: &str,
    reason: Option<&str>,
    expected: Expected,
) -> Result<DeletionId, Error> {
    let actor = authorise(caller, Operation::ProjectDelete)?;
    check("project", reference)?;
    let removal = removal(context, reason, expected)?;
    let mut rule = |snapshot: &_| project::delete(snapshot, &removal, &actor);
    context.stores.catalog.decide_project(reference, &mut rule).await?;
    Ok(removal.deletion_id)
}

/// The labels of the projects that a page of resources belongs to.
pub async fn labels(
    context: &Context,
    caller: &Caller,
    projects: &[ProjectId],
) -> Result<BTreeMap<ProjectId, Labels>, Error> {
    authorise(caller, Operation::ProjectRead)?;
    Ok(context.stores.catalog.project_labels(projects).await?)
}
