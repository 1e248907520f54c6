//! Clusters, and which project lives on which.

use slipway_core::blueprint::Engine;
use slipway_core::catalog::Name;
use slipway_core::catalog::blueprint::member;
use slipway_core::catalog::cluster::{Cluster, ClusterAssignment, NamespacePrefix};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::idempotency::Request;
use slipway_core::ids::{ClusterId, ProjectId};
use slipway_core::precondition::Expected;
use slipway_core::rules::catalog::cluster::{self, NewCluster};
use slipway_core::rules::catalog::cluster_assignment;

use super::common::{check, missing};
use super::projects;
use crate::authorise::{Caller, Verb, authorise};
use crate::ports::store::Page;
use crate::usecases::idempotency::{bind, record};
use crate::{Context, Error};

pub async fn create(
    context: &Context,
    caller: &Caller,
    name: &str,
    engine: &str,
    namespace_prefix: Option<&str>,
    request: Option<Request>,
) -> Result<ClusterId, Error> {
    let actor = authorise(caller, Verb::ClusterWrite)?;
    let prefix = namespace_prefix.unwrap_or(NamespacePrefix::DEFAULT);
    let new = NewCluster {
        id: ClusterId::new(context.entropy.uuid()),
        name: Name::parse("name", name).map_err(Refusal::from)?,
        engine: member("engine", engine, Engine::ALL, Engine::as_str)?,
        namespace_prefix: NamespacePrefix::parse(prefix).map_err(Refusal::from)?,
    };
    let record = record(context, request, new.id.as_uuid());
    context
        .store
        .decide_cluster(new.name.as_str(), &mut |snapshot| {
            Ok(bind(cluster::create(snapshot, &new, &actor)?, record.as_ref()))
        })
        .await?;
    Ok(new.id)
}

pub async fn fetch(context: &Context, caller: &Caller, reference: &str) -> Result<Cluster, Error> {
    authorise(caller, Verb::ClusterRead)?;
    check("cluster", reference)?;
    let found = context.store.cluster_fetch(reference).await?;
    missing(found, ErrorKind::ClusterNotFound, "cluster", reference)
}

pub async fn list(
    context: &Context,
    caller: &Caller,
    page: Page<ClusterId>,
) -> Result<Vec<Cluster>, Error> {
    authorise(caller, Verb::ClusterRead)?;
    Ok(context.store.cluster_page(page).await?)
}

/// Places a project.
pub async fn assign(
    context: &Context,
    caller: &Caller,
    project: &str,
    cluster: &str,
    expected: Expected,
) -> Result<(), Error> {
    let actor = authorise(caller, Verb::ClusterAssign)?;
    check("project", project)?;
    check("cluster", cluster)?;
    let mut rule = |snapshot: &_| cluster_assignment::assign(snapshot, expected, &actor);
    Ok(context.store.decide_cluster_assignment(project, Some(cluster), &mut rule).await?)
}

pub async fn withdraw(
    context: &Context,
    caller: &Caller,
    project: &str,
    expected: Expected,
) -> Result<(), Error> {
    let actor = authorise(caller, Verb::ClusterAssign)?;
    check("project", project)?;
    let mut rule = |snapshot: &_| cluster_assignment::withdraw(snapshot, expected, &actor);
    Ok(context.store.decide_cluster_assignment(project, None, &mut rule).await?)
}

/// Where a project lives.
pub async fn assignment(
    context: &Context,
    caller: &Caller,
    project: &str,
) -> Result<ClusterAssignment, Error> {
    authorise(caller, Verb::ClusterRead)?;
    let found = projects::fetch(context, caller, project, false).await?;
    let place = context.store.cluster_assignment_fetch(found.id).await?;
    missing(place, ErrorKind::AssignmentNotFound, "cluster assignment of project", project)
}

pub async fn assignments(
    context: &Context,
    caller: &Caller,
    page: Page<ProjectId>,
) -> Result<Vec<ClusterAssignment>, Error> {
    authorise(caller, Verb::ClusterListPlaces)?;
    Ok(context.store.cluster_assignment_list(page).await?)
}
