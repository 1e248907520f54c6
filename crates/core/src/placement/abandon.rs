//! Abandoning a placement: takes a project from a cluster that is lost for good. The
//! placement loop would wait for ever for proof that the project namespace is gone, and the
//! project could be placed nowhere else. [`crate::broker::abandon`] does the same for a
//! resource, and comes first.

use std::time::Duration;

use serde_json::json;

use crate::access::audit::{About, Actor, AuditEntry};
use crate::catalog::project::Project;
use crate::commit::{Commit, Write};
use crate::deletion::DeletionWrite;
use crate::deletion::leak::{AbandonedKind, LastKnown, LeakRecord, ObjectRef};
use crate::error::{ErrorKind, Refusal};
use crate::event::derive_id;
use crate::ids::LeakRecordId;
use crate::placement::PlacementWrite;
use crate::placement::cluster::{Cluster, Verification};
use crate::placement::namespace::NamespacePhase;
use crate::placement::shared_objects::ProjectNamespace;
use crate::text::{Reason, check_confirmation};
use crate::time::Timestamp;

/// The audit verb.
pub const ABANDON: &str = "cluster.abandon";

/// What the person says.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    pub reason: &'a Reason,
    /// The name or id of the project, typed once more.
    pub confirm: &'a str,
}

/// What is known besides the placement.
#[derive(Debug, Clone, Copy)]
pub struct Circumstances<'a> {
    pub project: &'a Project,
    /// With the result of its last verification.
    pub cluster: &'a Cluster,
    /// How long the cluster must have been unusable, so that one failed request is no ground.
    pub unusable_for: Duration,
    /// How long clearing a namespace may take.
    pub deadline: Duration,
}

/// Ends the placement, with a leak record of the namespace and what was in it.
pub fn request(
    placed: &ProjectNamespace,
    request: Request<'_>,
    circumstances: Circumstances<'_>,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let Circumstances { project, cluster, .. } = circumstances;
    let (name, id) = (project.name.as_str(), project.id.to_string());
    let expected = format!("the name of the project, `{name}`, or its id");
    check_confirmation(request.confirm, &[name, &id], &expected)?;
    let ground = ground(placed, circumstances)?;
    let (assignment, now) = (&placed.assignment, placed.now);
    let kind = AbandonedKind::Namespace.as_str();
    let (on, of) = (cluster.id.as_uuid(), project.id.as_uuid());
    let leak = LeakRecord {
        id: LeakRecordId::new(derive_id(now, &[kind.as_bytes(), on.as_bytes(), of.as_bytes()])),
        kind,
        subject: project.id.into(),
        found_at: now,
        last_known: Some(LastKnown {
            cluster_id: cluster.id,
            cluster: Some(cluster.name.to_string()),
            object_ref: Some(ObjectRef {
                namespace: assignment.namespace.clone(),
                name: assignment.namespace.clone(),
            }),
            uid: assignment.status.namespace_uid.clone(),
        }),
        evidence: json!({ "ground": ground, "project": name, "status": assignment.status }),
    };
    let about = About::new(cluster.id).of(project.id);
    let audit =
        AuditEntry::new(ABANDON, actor, about, now).because(request.reason.as_str()).with(json!({
            "abandoned": true,
            "project_id": project.id,
            "namespace": assignment.namespace,
            "namespace_phase": assignment.namespace_phase,
            "ground": ground,
            "leak_record_ids": [leak.id],
        }));
    Ok(Commit {
        writes: vec![
            PlacementWrite::ClusterAssignmentDelete(assignment.clone()).into(),
            Write::Deletion(DeletionWrite::LeakInsert(leak)),
        ],
        audit: vec![audit],
        ..Commit::default()
    })
}

/// Why it may be abandoned, in words.
fn ground(placed: &ProjectNamespace, known: Circumstances<'_>) -> Result<String, Refusal> {
    let Circumstances { project, cluster, unusable_for, deadline } = known;
    let (project, cluster_name) = (&project.name, &cluster.name);
    let refuse = |problem: &str| {
        let message = format!(
            "the placement of project `{project}` on cluster `{cluster_name}` is not abandoned: {problem}"
        );
        Err(Refusal::new(ErrorKind::NotAbandonable, message))
    };
    let Some(since) = placed.leaving_since() else {
        return refuse("nobody took the project from there; first `slipway cluster unassign`");
    };
    if placed.resources > 0 {
        return refuse(&format!(
            "{} resource(s) still live there; first delete them, or `slipway resource abandon` each",
            placed.resources
        ));
    }
    if placed.assignment.namespace_phase == NamespacePhase::Deleted {
        return refuse("its namespace is gone");
    }
    let due = since.plus(deadline);
    match lasting_problem(cluster.verification.as_ref(), placed.now, unusable_for) {
        Some(problem) => Ok(problem.to_owned()),
        None if due <= placed.now => Ok(format!("the namespace was to be gone by {due}")),
        None => refuse(
            "the cluster can be used, and the placement loop clears the namespace; `slipway explain project` says what it waits for",
        ),
    }
}

/// A verification is written when its result changes, so a problem has lasted since then.
fn lasting_problem(
    verification: Option<&Verification>,
    now: Timestamp,
    least: Duration,
) -> Option<&str> {
    let verification = verification.filter(|found| now.since(found.at) >= least)?;
    verification.problem.as_deref()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::fixtures::catalog::{mk_cluster, mk_project};
    use crate::fixtures::{at, mk_actor};
    use crate::ids::Revision;
    use crate::placement::cluster::ClusterAssignment;
    use crate::placement::namespace::NamespaceStatus;

    const MINUTE: Duration = Duration::from_secs(60);

    fn mk_placed() -> ProjectNamespace {
        let (project, cluster) = (mk_project(), mk_cluster());
        ProjectNamespace {
            now: at(10_000),
            assignment: ClusterAssignment {
                project_id: project.id,
                cluster_id: cluster.id,
                namespace: cluster.namespace(project.id),
                namespace_phase: NamespacePhase::Terminating,
                withdrawn_at: Some(at(9_900)),
                status: NamespaceStatus {
                    namespace_uid: Some("ns-1".to_owned()),
                    ..NamespaceStatus::default()
                },
                revision: Revision(3),
                created_at: at(800),
                updated_at: at(9_900),
            },
            project_deleted_at: None,
            resources: 0,
            uses: Vec::new(),
        }
    }

    fn broken(since: i64) -> Cluster {
        let problem = Some("connection refused".to_owned());
        let verification = Some(Verification { at: at(since), problem, facts: Value::Null });
        Cluster { verification, ..mk_cluster() }
    }

    fn ask(placed: &ProjectNamespace, cluster: &Cluster, confirm: &str) -> Result<Commit, Refusal> {
        let reason = Reason::parse("the cluster burnt down").unwrap();
        let known = Circumstances {
            project: &mk_project(),
            cluster,
            unusable_for: MINUTE,
            deadline: 30 * MINUTE,
        };
        request(placed, Request { reason: &reason, confirm }, known, &mk_actor())
    }

    #[test]
    fn a_placement_that_can_be_cleared_is_not_abandoned() {
        let name = mk_project().name.to_string();
        let refused = |placed: &ProjectNamespace, cluster: &Cluster, word: &str| {
            let refusal = ask(placed, cluster, &name).unwrap_err();
            assert_eq!(refusal.kind, ErrorKind::NotAbandonable);
            assert!(refusal.message.contains(word), "{refusal}");
        };
        let placed = mk_placed();
        refused(&placed, &mk_cluster(), "can be used");
        refused(&placed, &broken(9_980), "can be used");
        assert!(ask(&placed, &broken(9_000), &name).is_ok());
        let mut stays = placed.clone();
        stays.assignment.withdrawn_at = None;
        refused(&stays, &broken(9_000), "cluster unassign");
        refused(
            &ProjectNamespace { resources: 1, ..placed.clone() },
            &broken(9_000),
            "resource abandon",
        );
        let mut gone = placed.clone();
        gone.assignment.namespace_phase = NamespacePhase::Deleted;
        refused(&gone, &broken(9_000), "gone");
        let overdue = ProjectNamespace { now: at(11_700), ..placed };
        assert!(ask(&overdue, &mk_cluster(), &name).is_ok());
        let wrong = ask(&overdue, &mk_cluster(), "another").unwrap_err();
        assert_eq!(wrong.field.as_deref(), Some("confirm"));
    }

    proptest! {
        /// The namespace of an abandoned placement always has a record, and the row goes.
        #[test]
        fn an_abandoned_placement_leaves_a_record(
            deleted: bool, withdrawn: bool, resources in 0_i64..2, since in 0_i64..12_000,
            now in 9_900_i64..20_000,
        ) {
            let mut placed = mk_placed();
            placed.now = at(now);
            placed.resources = resources;
            placed.project_deleted_at = deleted.then_some(at(9_900));
            if !withdrawn { placed.assignment.withdrawn_at = None; }
            let Ok(commit) = ask(&placed, &broken(since), &mk_project().id.to_string()) else {
                return Ok(());
            };
            prop_assert!(placed.is_leaving() && resources == 0);
            let [Write::Placement(PlacementWrite::ClusterAssignmentDelete(_)), leak] =
                &commit.writes[..] else { panic!("{commit:?}") };
            let Write::Deletion(DeletionWrite::LeakInsert(leak)) = leak else { panic!("{leak:?}") };
            prop_assert_eq!(leak.kind, "abandoned_namespace");
            prop_assert_eq!(leak.last_known.as_ref().unwrap().uid.as_deref(), Some("ns-1"));
            prop_assert_eq!(commit.audit[0].verb, ABANDON);
        }
    }
}
