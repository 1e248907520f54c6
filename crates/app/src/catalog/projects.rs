//! Projects.

use std::collections::BTreeMap;

use slipway_core::access::idempotency::Request;
use slipway_core::catalog::Name;
use slipway_core::catalog::project::{self, NewProject, Project, ProjectChange, ProjectSnapshot};
use slipway_core::deletion::protection;
use slipway_core::error::Refusal;
use slipway_core::ids::ProjectId;
use slipway_core::nodes::mesh::MeshCidr;
use slipway_core::precondition::Expected;
use slipway_core::text::{InvalidText, Labels};

use crate::access::authorise::{Caller, Operation, authorise};
use crate::deletion::request::DeletableKind;
use crate::kind::{self, Named, ShowDeleted, StoredKind};
use crate::ports::store::{Page, Stores};
use crate::ports::{KindStore, Listed};
use crate::{Context, Error};

impl StoredKind for Project {
    type Key = str;
    type Snapshot = ProjectSnapshot;
    type Filter = ShowDeleted;
    const READ: Operation = Operation::ProjectRead;

    fn store(stores: &Stores) -> &dyn KindStore<Self> {
        &*stores.catalog
    }

    fn seen_by(self, caller: &Caller) -> Option<Self> {
        caller.reaches(self.id).then_some(self)
    }
}

impl Named for Project {
    fn name(&self) -> &str {
        self.name.as_str()
    }
}

impl DeletableKind for Project {
    const OPERATION: Operation = Operation::ProjectDelete;
}

/// A project to be created, unchecked.
#[derive(Debug)]
pub struct Draft<'a> {
    pub name: &'a str,
    pub labels: BTreeMap<String, String>,
    /// [`MeshCidr::DEFAULT`] if not given.
    pub mesh_cidr: Option<&'a str>,
    /// Whether it is protected from deletion.
    pub protected: bool,
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
        name: Name::parse("name", draft.name)?,
        labels: Labels::parse(draft.labels)?,
        mesh_cidr: mesh(draft.mesh_cidr)?.unwrap_or(MeshCidr::DEFAULT),
    };
    let rule = |snapshot: &ProjectSnapshot| {
        let commit = project::create(snapshot, &new, &actor)?;
        let (subject, name, now) = (new.id.into(), new.name.as_str(), snapshot.now);
        Ok(match draft.protected {
            true => protection::declared(commit, subject, Some(new.id), name, &actor, now),
            false => commit,
        })
    };
    kind::create::<Project>(context, request, new.id, new.name.as_str(), rule).await
}

/// The list of a bound caller has its own project only, without walking the others.
pub async fn list(
    context: &Context,
    caller: &Caller,
    filter: &ShowDeleted,
    page: Page<ProjectId>,
) -> Result<Listed<Project>, Error> {
    let Some(own) = caller.project else {
        return kind::list::<Project>(context, caller, filter, page).await;
    };
    authorise(caller, Operation::ProjectRead)?;
    let own = context.stores.kind::<Project>().fetch(&own.to_string(), filter.0).await?;
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
    if change.labels.is_none() && change.mesh_cidr.is_none() {
        let problem = "or `mesh_cidr` must be given; there is nothing to change";
        return Err(Refusal::invalid("labels", problem).into());
    }
    let change = ProjectChange {
        labels: change.labels.map(Labels::parse).transpose()?,
        mesh_cidr: mesh(change.mesh_cidr)?,
    };
    let mut rule = |snapshot: &ProjectSnapshot| {
        let reached = snapshot.project.as_ref().is_none_or(|project| caller.reaches(project.id));
        let unseen = || ProjectSnapshot { project: None, ..snapshot.clone() };
        let snapshot = if reached { snapshot } else { &unseen() };
        project::update(snapshot, &change, expected, &actor)
    };
    kind::change::<Project>(context, reference, &mut rule).await?;
    context.wakes.wake();
    Ok(())
}

fn mesh(text: Option<&str>) -> Result<Option<MeshCidr>, InvalidText> {
    text.map(|text| MeshCidr::parse("mesh_cidr", text)).transpose()
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
