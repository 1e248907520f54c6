//! A project: the owner of resources, permissions and a placement.

use serde_json::json;

use crate::access::audit::{About, Actor};
use crate::broker::Labelled;
use crate::catalog::label::wake_labelled;
use crate::catalog::{CatalogWrite, Name};
use crate::commit::Commit;
use crate::deletion::request::{Contents, Deletable};
use crate::error::{ErrorKind, Refusal};
use crate::ids::{DeletionId, ProjectId, Revision};
use crate::kind::{audited, existing, free, kind};
use crate::nodes::mesh::MeshCidr;
use crate::precondition::Expected;
use crate::text::Labels;
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    pub id: ProjectId,
    /// Unique among the not deleted.
    pub name: Name,
    pub labels: Labels,
    /// The network from which its nodes get addresses.
    pub mesh_cidr: MeshCidr,
    pub revision: Revision,
    pub deletion_id: Option<DeletionId>,
    pub deleted_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

kind!(Project, ProjectId, ProjectNotFound);

/// A project, its row locked.
#[derive(Debug, Clone)]
pub struct ProjectSnapshot {
    pub now: Timestamp,
    /// The addressed project, or the one that has the requested name.
    pub project: Option<Project>,
    /// Resources in it that are not deleted.
    pub resources: i64,
    /// Registered nodes that have an address of its mesh.
    pub mesh_nodes: i64,
    /// Its namespace on a cluster is not proven gone.
    pub has_namespace: bool,
    /// Generators, agents and templates in it that are not deleted.
    pub fleet: i64,
    /// Tenants in it that are not deleted.
    pub tenants: i64,
    /// Workspaces in it that are not deleted.
    pub workspaces: i64,
}

#[derive(Debug, Clone)]
pub struct NewProject {
    pub id: ProjectId,
    pub name: Name,
    pub labels: Labels,
    pub mesh_cidr: MeshCidr,
}

/// The fields to change; `None` leaves one unchanged.
#[derive(Debug, Clone, Default)]
pub struct ProjectChange {
    /// Replaces all of them.
    pub labels: Option<Labels>,
    pub mesh_cidr: Option<MeshCidr>,
}

pub fn create(
    snapshot: &ProjectSnapshot,
    new: &NewProject,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    free(&snapshot.project, "name", new.name.as_str())?;
    let project = Project {
        id: new.id,
        name: new.name.clone(),
        labels: new.labels.clone(),
        mesh_cidr: new.mesh_cidr,
        revision: Revision::FIRST,
        deletion_id: None,
        deleted_at: None,
        created_at: snapshot.now,
        updated_at: snapshot.now,
    };
    let details = json!({
        "name": project.name, "labels": project.labels,
        "mesh_cidr": project.mesh_cidr.to_string(),
    });
    let write = CatalogWrite::ProjectInsert(project);
    Ok(audited(write, "project.create", about(new.id), actor, snapshot.now, details))
}

/// Changes labels, the mesh, or both. Labels may become cloud tags of every composite of the
/// project, so another set of them wakes its resources. The mesh stays while nodes have addresses
/// of it: a node gets its address once, and nothing sends it another.
pub fn update(
    snapshot: &ProjectSnapshot,
    change: &ProjectChange,
    expected: Expected,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let before = existing(&snapshot.project, expected)?;
    let after = Project {
        labels: change.labels.clone().unwrap_or_else(|| before.labels.clone()),
        mesh_cidr: change.mesh_cidr.unwrap_or(before.mesh_cidr),
        ..before.clone()
    };
    let moved = after.mesh_cidr != before.mesh_cidr;
    if moved && snapshot.mesh_nodes > 0 {
        return Err(mesh_in_use(before.name.as_str(), before.mesh_cidr, snapshot.mesh_nodes));
    }
    let mut details = json!({ "before": before.labels, "after": after.labels });
    if moved {
        details["mesh_cidr"] = json!({
            "before": before.mesh_cidr.to_string(), "after": after.mesh_cidr.to_string(),
        });
    }
    let relabelled = after.labels != before.labels;
    let write = CatalogWrite::ProjectUpdate(after);
    let mut commit =
        audited(write, "project.update", about(before.id), actor, snapshot.now, details);
    if relabelled {
        commit.writes.push(wake_labelled(Labelled::Project(before.id)));
    }
    Ok(commit)
}

/// The refusal of another mesh while `nodes` have addresses of this one.
pub fn mesh_in_use(project: &str, cidr: MeshCidr, nodes: i64) -> Refusal {
    Refusal::new(
        ErrorKind::MeshInUse,
        format!(
            "project `{project}` has {nodes} node(s) with addresses of {cidr}; delete their \
             resources first, or create another project with the new `mesh_cidr`"
        ),
    )
    .at("mesh_cidr")
    .with(json!({ "nodes": nodes }))
}

/// Resources keep a project from being deleted, unless they are to go with it.
/// Assignments do not: they are permissions of the project and disappear with it.
impl Deletable for Project {
    type Snapshot = ProjectSnapshot;
    const DELETE: &'static str = "project.delete";

    fn found(snapshot: &ProjectSnapshot) -> (&Option<Self>, Timestamp) {
        (&snapshot.project, snapshot.now)
    }

    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn project(&self) -> Option<ProjectId> {
        Some(self.id)
    }

    fn contents(snapshot: &ProjectSnapshot) -> Contents {
        Contents { resources: snapshot.resources, outside: snapshot.has_namespace }
    }

    fn free(&self, snapshot: &ProjectSnapshot, cascade: bool) -> Result<(), Refusal> {
        // Its servers go in the order of their workspace.
        if snapshot.workspaces > 0 {
            let message = format!(
                "project `{}` still has {} workspace(s), which own its servers; take them down first (`slipway workspace list --project {}`)",
                self.name, snapshot.workspaces, self.name
            );
            let details = json!({ "workspaces": snapshot.workspaces });
            return Err(Refusal::new(ErrorKind::OwnedByWorkspace, message).with(details));
        }
        // Each has data of its own, which somebody decides about.
        if snapshot.tenants > 0 {
            let message = format!(
                "project `{}` still has {} tenant(s); decommission them first (`slipway tenant list --project {}`)",
                self.name, snapshot.tenants, self.name
            );
            let details = json!({ "tenants": snapshot.tenants });
            return Err(Refusal::new(ErrorKind::ProjectNotEmpty, message).with(details));
        }
        if cascade {
            return Ok(());
        }
        if snapshot.fleet > 0 {
            let message = format!(
                "project `{}` still has {} generator(s), agent(s) or template(s); delete them first, or delete them with the project (`--cascade`)",
                self.name, snapshot.fleet
            );
            let details = json!({ "fleet": snapshot.fleet });
            return Err(Refusal::new(ErrorKind::ProjectNotEmpty, message).with(details));
        }
        if snapshot.resources == 0 {
            return Ok(());
        }
        let message = format!(
            "project `{}` still has {} resource(s); delete them and wait until they are gone, or delete them with the project (`--cascade`)",
            self.name, snapshot.resources
        );
        let details = json!({ "resources": snapshot.resources });
        Err(Refusal::new(ErrorKind::ProjectNotEmpty, message).with(details))
    }
}

/// The audit of a project is part of what its bound keys read.
fn about(id: ProjectId) -> About {
    About::new(id).of(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commit::Write;
    use crate::deletion::door::{Ask, Door};
    use crate::deletion::request::request;
    use crate::fixtures::catalog::{mk_ask, mk_project};
    use crate::fixtures::{at, mk_actor};

    fn snapshot(resources: i64) -> ProjectSnapshot {
        let project = Some(mk_project());
        ProjectSnapshot {
            now: at(1_000),
            project,
            resources,
            mesh_nodes: 0,
            has_namespace: false,
            fleet: 0,
            tenants: 0,
            workspaces: 0,
        }
    }

    #[test]
    fn a_taken_name_is_refused_with_its_holder() {
        let new = NewProject {
            id: mk_project().id,
            name: mk_project().name,
            labels: Labels::default(),
            mesh_cidr: MeshCidr::DEFAULT,
        };
        let refusal = create(&snapshot(0), &new, &mk_actor()).unwrap_err();
        assert_eq!((refusal.kind, refusal.field.as_deref()), (ErrorKind::NameTaken, Some("name")));
        let free = ProjectSnapshot { project: None, ..snapshot(0) };
        let commit = create(&free, &new, &mk_actor()).unwrap();
        assert_eq!((commit.writes.len(), commit.audit[0].verb), (1, "project.create"));
    }

    #[test]
    fn a_project_with_resources_stays_and_says_how_many() {
        let ask = mk_ask();
        let refusal = request::<Project>(&snapshot(3), &Door::default(), &ask, &mk_actor());
        let refusal = refusal.unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::ProjectNotEmpty);
        assert_eq!(refusal.details, Some(json!({ "resources": 3 })));
        let cascade = Ask { cascade: true, ..ask };
        assert!(request::<Project>(&snapshot(3), &Door::default(), &cascade, &mk_actor()).is_ok());
        let owned = ProjectSnapshot { workspaces: 1, ..snapshot(3) };
        let refusal = request::<Project>(&owned, &Door::default(), &cascade, &mk_actor());
        assert_eq!(refusal.unwrap_err().kind, ErrorKind::OwnedByWorkspace);
    }

    #[test]
    fn a_mesh_that_nodes_live_in_stays() {
        let wanted = MeshCidr::parse("mesh_cidr", "10.42.0.0/16").unwrap();
        let change = ProjectChange { labels: None, mesh_cidr: Some(wanted) };
        let lived_in = ProjectSnapshot { mesh_nodes: 2, ..snapshot(2) };
        let refusal = update(&lived_in, &change, Expected::Any, &mk_actor()).unwrap_err();
        assert_eq!(
            (refusal.kind, refusal.field.as_deref()),
            (ErrorKind::MeshInUse, Some("mesh_cidr"))
        );
        assert_eq!(refusal.details, Some(json!({ "nodes": 2 })));
        let same = ProjectChange { mesh_cidr: Some(mk_project().mesh_cidr), ..change.clone() };
        assert!(update(&lived_in, &same, Expected::Any, &mk_actor()).is_ok(), "nothing moves");

        let commit = update(&snapshot(2), &change, Expected::Any, &mk_actor()).unwrap();
        let Write::Catalog(write) = &commit.writes[0] else { panic!("{commit:?}") };
        assert!(
            matches!(&**write, CatalogWrite::ProjectUpdate(after) if after.mesh_cidr == wanted)
        );
        assert_eq!(commit.audit[0].details["mesh_cidr"]["after"], "10.42.0.0/16");
    }

    #[test]
    fn what_was_written_since_is_stale() {
        let stale = Expected::Exactly(Revision(1));
        let change = ProjectChange::default();
        let refusal = update(&snapshot(0), &change, stale, &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::RevisionStale);
        let ask = Ask { expected: stale, ..mk_ask() };
        let refusal = request::<Project>(&snapshot(0), &Door::default(), &ask, &mk_actor());
        let refusal = refusal.unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::RevisionStale);
    }

    #[test]
    fn other_labels_wake_the_resources_of_the_project() {
        let labels = Labels::parse([("team".to_owned(), "a".to_owned())].into()).unwrap();
        let wake = wake_labelled(Labelled::Project(mk_project().id));
        for (labels, wakes) in
            [(None, false), (Some(mk_project().labels), false), (Some(labels), true)]
        {
            let change = ProjectChange { labels, mesh_cidr: None };
            let commit = update(&snapshot(2), &change, Expected::Any, &mk_actor()).unwrap();
            assert_eq!(commit.writes.contains(&wake), wakes, "{change:?}");
        }
    }
}
