//! Projects.

use std::collections::BTreeMap;

use slipway_core::catalog::Name;
use slipway_core::catalog::project::Project;
use slipway_core::catalog::snapshot::ProjectSnapshot;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::idempotency::Request;
use slipway_core::ids::{DeletionId, ProjectId};
use slipway_core::precondition::Expected;
use slipway_core::rules::catalog::project::{self, NewProject};
use slipway_core::text::Labels;

use super::common::{check, missing, removal};
use crate::authorise::{Caller, Verb, authorise};
use crate::ports::store::Page;
use crate::usecases::idempotency::{bind, record};
use crate::{Context, Error};

pub async fn create(
    context: &Context,
    caller: &Caller,
    name: &str,
    labels: BTreeMap<String, String>,
    request: Option<Request>,
) -> Result<ProjectId, Error> {
    let actor = authorise(caller, Verb::ProjectWrite)?;
    let new = NewProject {
        id: ProjectId::new(context.entropy.uuid()),
        name: Name::parse("name", name).map_err(Refusal::from)?,
        labels: Labels::parse(labels).map_err(Refusal::from)?,
    };
    let record = record(context, request, new.id.as_uuid());
    context
        .store
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
    authorise(caller, Verb::ProjectRead)?;
    check("project", reference)?;
    let found = context.store.project_fetch(reference, show_deleted).await?;
    let found = found.filter(|project| caller.reaches(project.id));
    missing(found, ErrorKind::ProjectNotFound, "project", reference)
}

pub async fn list(
    context: &Context,
    caller: &Caller,
    page: Page<ProjectId>,
    show_deleted: bool,
) -> Result<Vec<Project>, Error> {
    authorise(caller, Verb::ProjectRead)?;
    let Some(own) = caller.project else {
        return Ok(context.store.project_list(page, show_deleted).await?);
    };
    let own = context.store.project_fetch(&own.to_string(), show_deleted).await?;
    Ok(own.into_iter().filter(|own| page.after.is_none_or(|after| own.id > after)).collect())
}

/// Replaces all labels of the project.
pub async fn relabel(
    context: &Context,
    caller: &Caller,
    reference: &str,
    labels: BTreeMap<String, String>,
    expected: Expected,
) -> Result<(), Error> {
    let actor = authorise(caller, Verb::ProjectRelabel)?;
    check("project", reference)?;
    let labels = Labels::parse(labels).map_err(Refusal::from)?;
    let mut rule = |snapshot: &ProjectSnapshot| {
        let reached = snapshot.project.as_ref().is_none_or(|project| caller.reaches(project.id));
        let unseen = || ProjectSnapshot { project: None, ..snapshot.clone() };
        let snapshot = if reached { snapshot } else { &unseen() };
        project::relabel(snapshot, &labels, expected, &actor)
    };
    Ok(context.store.decide_project(reference, &mut rule).await?)
}

pub async fn delete(
    context: &Context,
    caller: &Caller,
    reference: &str,
    reason: Option<&str>,
    expected: Expected,
) -> Result<DeletionId, Error> {
    let actor = authorise(caller, Verb::ProjectWrite)?;
    check("project", reference)?;
    let removal = removal(context, reason, expected)?;
    let mut rule = |snapshot: &_| project::delete(snapshot, &removal, &actor);
    context.store.decide_project(reference, &mut rule).await?;
    Ok(removal.deletion_id)
}

/// The labels of the projects that a page of resources belongs to.
pub async fn labels(
    context: &Context,
    caller: &Caller,
    projects: &[ProjectId],
) -> Result<BTreeMap<ProjectId, Labels>, Error> {
    authorise(caller, Verb::ProjectRead)?;
    Ok(context.store.project_labels(projects).await?)
}
