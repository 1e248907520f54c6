//! Creating, labelling and deleting a project.

use serde_json::json;

use super::common::{About, Removal, audited, name_taken, removed, unknown};
use crate::audit::Actor;
use crate::catalog::project::Project;
use crate::catalog::snapshot::ProjectSnapshot;
use crate::catalog::{CatalogWrite, Name};
use crate::commit::Commit;
use crate::error::{ErrorKind, Refusal};
use crate::ids::{ProjectId, Revision};
use crate::precondition::Expected;
use crate::text::Labels;

#[derive(Debug, Clone)]
pub struct NewProject {
    pub id: ProjectId,
    pub name: Name,
    pub labels: Labels,
}

pub fn create(
    snapshot: &ProjectSnapshot,
    new: &NewProject,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    if let Some(holder) = &snapshot.project {
        return Err(name_taken("name", "project", new.name.as_str(), holder.id.as_uuid()));
    }
    let project = Project {
        id: new.id,
        name: new.name.clone(),
        labels: new.labels.clone(),
        revision: Revision::FIRST,
        deletion_id: None,
        deleted_at: None,
        created_at: snapshot.now,
        updated_at: snapshot.now,
    };
    let details = json!({ "name": project.name, "labels": project.labels });
    let write = CatalogWrite::ProjectInsert(project);
    Ok(audited(write, "project.create", about(new.id), actor, snapshot.now, details))
}

/// Replaces all labels.
pub fn relabel(
    snapshot: &ProjectSnapshot,
    labels: &Labels,
    expected: Expected,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let project = existing(snapshot)?;
    expected.check("project", project.revision)?;
    let details = json!({ "before": project.labels, "after": labels });
    let write = CatalogWrite::ProjectUpdate(Project { labels: labels.clone(), ..project.clone() });
    Ok(audited(write, "project.relabel", about(project.id), actor, snapshot.now, details))
}

/// Assignments are permissions of the project and go out of sight with it; they
/// do not keep it. Whatever was declared does.
pub fn delete(
    snapshot: &ProjectSnapshot,
    removal: &Removal,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let project = existing(snapshot)?;
    removal.expected.check("project", project.revision)?;
    if snapshot.resources > 0 {
        return Err(Refusal::new(
            ErrorKind::ProjectNotEmpty,
            format!(
                "project `{}` still has {} resource(s); delete them and wait until they are gone",
                project.name, snapshot.resources
            ),
        )
        .with(json!({ "resources": snapshot.resources })));
    }
    let write = CatalogWrite::ProjectUpdate(Project {
        deletion_id: Some(removal.deletion_id),
        deleted_at: Some(snapshot.now),
        ..project.clone()
    });
    Ok(removed(write, "project.delete", about(project.id), actor, snapshot.now, removal))
}

fn existing(snapshot: &ProjectSnapshot) -> Result<&Project, Refusal> {
    snapshot.project.as_ref().ok_or_else(|| unknown(ErrorKind::ProjectNotFound, "project"))
}

fn about(id: ProjectId) -> About {
    About::new(ProjectId::KIND, id.as_uuid()).of(id)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::commit::Write;
    use crate::fixtures::catalog::{mk_project, mk_removal};
    use crate::fixtures::{at, mk_actor};

    fn snapshot(resources: i64) -> ProjectSnapshot {
        ProjectSnapshot { now: at(1_000), project: Some(mk_project()), resources }
    }

    #[test]
    fn a_taken_name_is_refused_with_its_holder() {
        let new =
            NewProject { id: mk_project().id, name: mk_project().name, labels: Labels::default() };
        let refusal = create(&snapshot(0), &new, &mk_actor()).unwrap_err();
        assert_eq!((refusal.kind, refusal.field.as_deref()), (ErrorKind::NameTaken, Some("name")));
        let free = ProjectSnapshot { project: None, ..snapshot(0) };
        let commit = create(&free, &new, &mk_actor()).unwrap();
        assert_eq!((commit.writes.len(), commit.audit[0].verb), (1, "project.create"));
    }

    #[test]
    fn a_project_with_resources_stays_and_says_how_many() {
        let refusal = delete(&snapshot(3), &mk_removal(), &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::ProjectNotEmpty);
        assert_eq!(refusal.details, Some(json!({ "resources": 3 })));
    }

    #[test]
    fn a_deletion_has_its_record_and_its_reason() {
        let commit = delete(&snapshot(0), &mk_removal(), &mk_actor()).unwrap();
        assert!(matches!(commit.writes[1], Write::DeletionInsert(_)), "{commit:?}");
        assert_eq!(commit.audit[0].reason.as_deref(), Some("not needed"));
    }

    #[test]
    fn what_was_written_since_is_stale() {
        let labels = Labels::parse(BTreeMap::new()).unwrap();
        let stale = Expected::Exactly(Revision(1));
        let refusal = relabel(&snapshot(0), &labels, stale, &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::RevisionStale);
        let removal = Removal { expected: stale, ..mk_removal() };
        let refusal = delete(&snapshot(0), &removal, &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::RevisionStale);
    }
}
