//! Clusters, and the placement of projects on them.

use slipway_core::access::idempotency::Request;
use slipway_core::catalog::Name;
use slipway_core::catalog::blueprint_version::Engine;
use slipway_core::catalog::project::Project;
use slipway_core::deletion::protection;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{ClusterId, ProjectId};
use slipway_core::placement::abandon::{self, Circumstances};
use slipway_core::placement::cluster::{
    self, Cluster, ClusterAccess, ClusterAssignment, ClusterChange, ClusterSnapshot,
    NamespacePrefix, NewCluster,
};
use slipway_core::placement::namespace::NamespacePhase;
use slipway_core::placement::shared_objects::ProjectNamespace;
use slipway_core::precondition::Expected;
use slipway_core::text::Reason;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::deletion::request::DeletableKind;
use crate::kind::{self, ShowDeleted, StoredKind, check, missing};
use crate::ports::store::{self, Page, Stores};
use crate::ports::{KindStore, Listed};
use crate::{Context, Error};

impl StoredKind for Cluster {
    type Key = str;
    type Snapshot = ClusterSnapshot;
    type Filter = ShowDeleted;
    const READ: Operation = Operation::ClusterRead;

    fn store(stores: &Stores) -> &dyn KindStore<Self> {
        &*stores.placement
    }
}

/// A cluster as received, unchecked.
#[derive(Debug, Clone, Copy)]
pub struct ClusterRequest<'a> {
    pub name: &'a str,
    pub engine: &'a str,
    pub namespace_prefix: Option<&'a str>,
    pub region: Option<&'a str>,
    pub access: Option<&'a str>,
    /// Whether it is protected from deletion.
    pub protected: bool,
}

pub async fn create(
    context: &Context,
    caller: &Caller,
    wanted: ClusterRequest<'_>,
    request: Option<Request>,
) -> Result<ClusterId, Error> {
    let actor = authorise(caller, Operation::ClusterCreate)?;
    let ClusterRequest { name, engine, namespace_prefix, region, access, protected } = wanted;
    let new = NewCluster {
        id: ClusterId::new(context.entropy.uuid()),
        name: Name::parse("name", name)?,
        engine: Engine::parse_offered("engine", engine)?,
        namespace_prefix: match namespace_prefix {
            Some(prefix) => NamespacePrefix::parse(prefix)?,
            None => context.settings.namespace_prefix.clone(),
        },
        region: region.map(|region| Name::parse("region", region)).transpose()?,
        access: access.map(ClusterAccess::parse).transpose()?,
    };
    let rule = |snapshot: &ClusterSnapshot| {
        let commit = cluster::create(snapshot, &new, &actor)?;
        let (subject, name, now) = (new.id.into(), new.name.as_str(), snapshot.now);
        Ok(match protected {
            true => protection::declared(commit, subject, None, name, &actor, now),
            false => commit,
        })
    };
    let id = kind::create::<Cluster>(context, request, new.id, new.name.as_str(), rule).await?;
    context.wakes.clusters.notify_one();
    Ok(id)
}

impl DeletableKind for Cluster {
    const OPERATION: Operation = Operation::ClusterDelete;
}

/// A change as received, unchecked; what is `None` stays. An empty region takes it away.
#[derive(Debug, Clone, Copy)]
pub struct ClusterChangeRequest<'a> {
    pub region: Option<&'a str>,
    pub access: Option<&'a str>,
    pub namespace_prefix: Option<&'a str>,
}

pub async fn update(
    context: &Context,
    caller: &Caller,
    reference: &str,
    wanted: ClusterChangeRequest<'_>,
    expected: Expected,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::ClusterUpdate)?;
    let region = |region: &str| match region {
        "" => Ok(None),
        region => Name::parse("region", region).map(Some),
    };
    let change = ClusterChange {
        region: wanted.region.map(region).transpose()?,
        access: wanted.access.map(ClusterAccess::parse).transpose()?,
        namespace_prefix: wanted.namespace_prefix.map(NamespacePrefix::parse).transpose()?,
    };
    let mut rule = |snapshot: &_| cluster::update(snapshot, &change, expected, &actor);
    kind::change::<Cluster>(context, reference, &mut rule).await?;
    context.wakes.clusters.notify_one();
    Ok(())
}

/// Places a project on the named cluster, or on one of the region.
pub async fn assign(
    context: &Context,
    caller: &Caller,
    project: &str,
    cluster: Option<&str>,
    region: Option<&str>,
    expected: Expected,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::ClusterAssign)?;
    check("project", project)?;
    let cluster = match (cluster, region) {
        (Some(cluster), None) => cluster.to_owned(),
        (None, Some(region)) => of_region(context, project, region).await?,
        _ => {
            let problem = "must be given, or region, and not both";
            return Err(Refusal::invalid("cluster", problem).into());
        }
    };
    check("cluster", &cluster)?;
    let mut rule = |snapshot: &_| cluster::assign(snapshot, expected, &actor);
    context.stores.placement.decide_cluster_assignment(project, Some(&cluster), &mut rule).await?;
    context.wakes.wake_placement();
    Ok(())
}

/// The usable cluster of a region with the fewest projects, or the project's
/// current one if it is in the region, so that a repeated request changes
/// nothing.
async fn of_region(context: &Context, project: &str, region: &str) -> Result<String, Error> {
    let region = Name::parse("region", region)?;
    let candidates = context.stores.placement.cluster_candidates(region.as_str(), project).await?;
    cluster::choose(&candidates).map(|id| id.to_string()).ok_or_else(|| {
        let known = candidates.len();
        Refusal::new(
            ErrorKind::ClusterNotFound,
            format!(
                "no cluster of region `{region}` can be used ({known} registered there); register one, or see `slipway cluster list`"
            ),
        )
        .at("region")
        .into()
    })
}

/// Withdraws a project from its cluster. The placement loop removes what was
/// made there for it; until then, returns the assignment as it is.
pub async fn withdraw(
    context: &Context,
    caller: &Caller,
    project: &str,
    expected: Expected,
) -> Result<Option<ClusterAssignment>, Error> {
    let actor = authorise(caller, Operation::ClusterWithdraw)?;
    check("project", project)?;
    let mut rule = |snapshot: &_| cluster::withdraw(snapshot, expected, &actor);
    context.stores.placement.decide_cluster_assignment(project, None, &mut rule).await?;
    context.wakes.wake_placement();
    // Somebody may have deleted the project, or placed it again, meanwhile.
    let found = kind::fetch::<Project>(context, caller, project, true).await?;
    let assignment = context.stores.placement.cluster_assignment_fetch(found.id).await?;
    Ok(assignment.filter(|assignment| {
        assignment.withdrawn_at.is_some() && assignment.namespace_phase != NamespacePhase::Deleted
    }))
}

/// Takes a project from a cluster that is lost for good, and returns the placement that
/// was given up. `confirm` repeats the name of the project; one that is deleted goes by id.
pub async fn abandon(
    context: &Context,
    caller: &Caller,
    project: &str,
    reason: &str,
    confirm: &str,
) -> Result<ClusterAssignment, Error> {
    let actor = authorise(caller, Operation::ClusterAbandon)?;
    let reason = Reason::parse(reason).map_err(Refusal::from)?;
    let unplaced =
        || missing(ErrorKind::AssignmentNotFound, "cluster assignment of project", project);
    let found = kind::fetch::<Project>(context, caller, project, true).await?;
    let placement = &context.stores.placement;
    let placed = placement.cluster_assignment_fetch(found.id).await?.ok_or_else(unplaced)?;
    let cluster = placed.cluster_id.to_string();
    let cluster = kind::fetch::<Cluster>(context, caller, &cluster, false).await?;
    let settings = &context.settings;
    let circumstances = Circumstances {
        project: &found,
        cluster: &cluster,
        unusable_for: settings.claimed_within,
        deadline: settings.deadlines.deprovisioning,
    };
    let request = abandon::Request { reason: &reason, confirm };
    let mut rule = |current: &ProjectNamespace| {
        // Somebody may have placed it elsewhere meanwhile.
        if current.assignment.cluster_id != cluster.id {
            return Err(unplaced());
        }
        abandon::request(current, request, circumstances, &actor)
    };
    match placement.decide_project_namespace(found.id, &mut rule).await {
        Err(store::Error::NotFound { .. }) => return Err(unplaced().into()),
        decided => decided?,
    }
    let cluster = cluster.name.as_str();
    tracing::warn!(project_id = %found.id, cluster, "a placement was abandoned; see its leak record");
    Ok(placed)
}

/// The placement of a project.
pub async fn assignment(
    context: &Context,
    caller: &Caller,
    project: &str,
) -> Result<ClusterAssignment, Error> {
    authorise(caller, Operation::ClusterReadAssigned)?;
    let found = kind::fetch::<Project>(context, caller, project, false).await?;
    let assignment = context.stores.placement.cluster_assignment_fetch(found.id).await?;
    Ok(assignment.ok_or_else(|| {
        missing(ErrorKind::AssignmentNotFound, "cluster assignment of project", project)
    })?)
}

pub async fn assignments(
    context: &Context,
    caller: &Caller,
    page: Page<ProjectId>,
) -> Result<Listed<ClusterAssignment>, Error> {
    authorise(caller, Operation::ClusterListAssignments)?;
    Ok(context.stores.placement.cluster_assignment_list(page).await?)
}
