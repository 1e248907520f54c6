//! Placing a project on a cluster. The placement is fixed while the project
//! owns resources: their substrate exists there and nowhere else.

use serde_json::json;

use crate::access::audit::Actor;
use crate::catalog::project::Project;
use crate::catalog::rules::common::{About, about, audited, existing, unknown};
use crate::commit::Commit;
use crate::error::{ErrorKind, Refusal};
use crate::ids::Revision;
use crate::placement::PlacementWrite;
use crate::placement::cluster::{Cluster, ClusterAssignment};
use crate::placement::namespace::{NamespacePhase, NamespaceStatus};
use crate::precondition::Expected;
use crate::time::Timestamp;

/// A project, its row locked (so that nobody declares into it meanwhile), its
/// placement, and the requested cluster, which is locked against deletion.
#[derive(Debug, Clone)]
pub struct ClusterAssignmentSnapshot {
    pub now: Timestamp,
    pub project: Option<Project>,
    pub cluster: Option<Cluster>,
    pub assignment: Option<ClusterAssignment>,
    /// Resources of the project that are not deleted.
    pub resources: i64,
}

/// Assigning to the same cluster again changes nothing.
pub fn assign(
    snapshot: &ClusterAssignmentSnapshot,
    expected: Expected,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let project = existing(&snapshot.project, Expected::Any)?;
    let Some(cluster) = &snapshot.cluster else {
        return Err(unknown(ErrorKind::ClusterNotFound, "cluster").at("cluster"));
    };
    let placed = |revision, created_at| ClusterAssignment {
        project_id: project.id,
        cluster_id: cluster.id,
        namespace: cluster.namespace(project.id),
        namespace_phase: cluster.first_phase(),
        withdrawn_at: None,
        status: NamespaceStatus::default(),
        revision,
        created_at,
        updated_at: snapshot.now,
    };
    let (write, from) = match &snapshot.assignment {
        None => {
            (PlacementWrite::ClusterAssignmentInsert(placed(Revision::FIRST, snapshot.now)), None)
        }
        Some(assignment) => {
            expected.check("cluster assignment", assignment.revision)?;
            if assignment.cluster_id == cluster.id && assignment.withdrawn_at.is_none() {
                return Ok(Commit::default());
            }
            refuse_owner(snapshot, project)?;
            refuse_occupied(assignment, project)?;
            let write = PlacementWrite::ClusterAssignmentUpdate(placed(
                assignment.revision,
                assignment.created_at,
            ));
            (write, Some(assignment.cluster_id))
        }
    };
    let details = json!({ "project_id": project.id, "from_cluster_id": from });
    let about = about(cluster).of(project.id);
    Ok(audited(write, "cluster.assign", about, actor, snapshot.now, details))
}

pub fn withdraw(
    snapshot: &ClusterAssignmentSnapshot,
    expected: Expected,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let project = existing(&snapshot.project, Expected::Any)?;
    let Some(assignment) = &snapshot.assignment else {
        return Err(unknown(ErrorKind::AssignmentNotFound, "assignment"));
    };
    expected.check("cluster assignment", assignment.revision)?;
    if assignment.withdrawn_at.is_some() {
        return Ok(Commit::default());
    }
    refuse_owner(snapshot, project)?;
    // The placement loop takes down what it made there first.
    let write = if assignment.is_made_by_placement() {
        PlacementWrite::ClusterAssignmentUpdate(ClusterAssignment {
            withdrawn_at: Some(snapshot.now),
            ..assignment.clone()
        })
    } else {
        PlacementWrite::ClusterAssignmentDelete(assignment.clone())
    };
    let about = About::new(assignment.cluster_id).of(project.id);
    let details = json!({ "project_id": project.id });
    Ok(audited(write, "cluster.withdraw", about, actor, snapshot.now, details))
}

fn refuse_owner(snapshot: &ClusterAssignmentSnapshot, project: &Project) -> Result<(), Refusal> {
    if snapshot.resources == 0 {
        return Ok(());
    }
    Err(Refusal::new(
        ErrorKind::ClusterAssignmentImmutable,
        format!(
            "project `{}` owns {} resource(s) on its cluster and stays there; delete them and wait until their absence is proven a second time, one lease after Deleted",
            project.name, snapshot.resources
        ),
    )
    .with(json!({ "resources": snapshot.resources })))
}

/// Refuses a move that would leave the old namespace behind.
fn refuse_occupied(assignment: &ClusterAssignment, project: &Project) -> Result<(), Refusal> {
    if !assignment.is_made_by_placement() || assignment.namespace_phase == NamespacePhase::Deleted {
        return Ok(());
    }
    Err(Refusal::new(
        ErrorKind::ClusterAssignmentImmutable,
        format!(
            "namespace {} of project `{}` is {} on its cluster; take the project from there first (`slipway cluster unassign`) and wait until it is Deleted",
            assignment.namespace, project.name, assignment.namespace_phase
        ),
    )
    .with(json!({ "namespace": assignment.namespace, "namespace_phase": assignment.namespace_phase })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commit::Write;
    use crate::fixtures::catalog::{mk_cluster, mk_project};
    use crate::fixtures::{at, mk_actor};
    use crate::ids::ClusterId;

    fn snapshot(cluster: Cluster) -> ClusterAssignmentSnapshot {
        ClusterAssignmentSnapshot {
            now: at(1_000),
            project: Some(mk_project()),
            cluster: Some(cluster),
            assignment: None,
            resources: 0,
        }
    }

    fn placed(commit: &Commit) -> ClusterAssignment {
        let Write::Placement(write) = &commit.writes[0] else { panic!("{commit:?}") };
        match write {
            PlacementWrite::ClusterAssignmentInsert(assignment)
            | PlacementWrite::ClusterAssignmentUpdate(assignment) => assignment.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_a_served_cluster_is_ready_at_once() {
        let served = assign(&snapshot(mk_cluster()), Expected::Any, &mk_actor()).unwrap();
        let assignment = placed(&served);
        assert_eq!(assignment.namespace_phase, NamespacePhase::Ready);
        assert_eq!(assignment.namespace, format!("slipway-project-{}", mk_project().id));
        let waiting = Cluster { substrate_uid: None, ..mk_cluster() };
        let waits = assign(&snapshot(waiting), Expected::Any, &mk_actor()).unwrap();
        assert_eq!(placed(&waits).namespace_phase, NamespacePhase::Pending);
    }

    #[test]
    fn a_project_that_owns_resources_stays_where_it_is() {
        let first = assign(&snapshot(mk_cluster()), Expected::Any, &mk_actor()).unwrap();
        let elsewhere = Cluster { id: ClusterId::new(uuid::Uuid::from_u128(99)), ..mk_cluster() };
        let owner = ClusterAssignmentSnapshot {
            assignment: Some(placed(&first)),
            resources: 1,
            ..snapshot(elsewhere)
        };
        for refused in [
            assign(&owner, Expected::Any, &mk_actor()),
            withdraw(&owner, Expected::Any, &mk_actor()),
        ] {
            assert_eq!(refused.unwrap_err().kind, ErrorKind::ClusterAssignmentImmutable);
        }
        let same = ClusterAssignmentSnapshot { cluster: Some(mk_cluster()), ..owner.clone() };
        assert!(assign(&same, Expected::Any, &mk_actor()).unwrap().is_empty());
        let free = ClusterAssignmentSnapshot { resources: 0, ..owner };
        assert!(assign(&free, Expected::Any, &mk_actor()).is_ok());
        assert!(withdraw(&free, Expected::Any, &mk_actor()).is_ok());
    }
}
