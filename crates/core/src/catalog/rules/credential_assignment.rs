//! Allowing a project to use a credential, and withdrawing that.

use serde_json::json;

use crate::access::audit::Actor;
use crate::catalog::CatalogWrite;
use crate::catalog::credential::{Credential, CredentialAssignment};
use crate::catalog::project::Project;
use crate::catalog::rules::common::{About, audited, existing, unknown};
use crate::commit::Commit;
use crate::error::{ErrorKind, Refusal};
use crate::ids::{CloudCredentialId, ProjectId};
use crate::precondition::Expected;
use crate::time::Timestamp;

/// A credential, a project, both locked against deletion, and the assignment.
#[derive(Debug, Clone)]
pub struct CredentialAssignmentSnapshot {
    pub now: Timestamp,
    pub project: Option<Project>,
    pub credential: Option<Credential>,
    pub assignment: Option<CredentialAssignment>,
    /// Not deleted resources of the project that are made with the credential.
    pub resources: i64,
}

/// Idempotent: a second assignment writes nothing.
pub fn assign(snapshot: &CredentialAssignmentSnapshot, actor: &Actor) -> Result<Commit, Refusal> {
    let (project_id, credential_id) = ends(snapshot)?;
    if snapshot.assignment.is_some() {
        return Ok(Commit::default());
    }
    let assignment = CredentialAssignment { project_id, credential_id, created_at: snapshot.now };
    let write = CatalogWrite::CredentialAssignmentInsert(assignment);
    let about = about(project_id, credential_id);
    Ok(audited(write, "credential.assign", about, actor, snapshot.now, json!({})))
}

pub fn withdraw(snapshot: &CredentialAssignmentSnapshot, actor: &Actor) -> Result<Commit, Refusal> {
    let (project_id, credential_id) = ends(snapshot)?;
    let Some(assignment) = snapshot.assignment else {
        return Err(unknown(ErrorKind::AssignmentNotFound, "assignment"));
    };
    if snapshot.resources > 0 {
        return Err(Refusal::new(
            ErrorKind::AssignmentInUse,
            format!(
                "{} resource(s) of the project use this credential; delete them and wait until they are gone",
                snapshot.resources
            ),
        )
        .with(json!({ "resources": snapshot.resources })));
    }
    let write = CatalogWrite::CredentialAssignmentDelete(assignment);
    let about = about(project_id, credential_id);
    Ok(audited(write, "credential.withdraw", about, actor, snapshot.now, json!({})))
}

fn ends(
    snapshot: &CredentialAssignmentSnapshot,
) -> Result<(ProjectId, CloudCredentialId), Refusal> {
    let project = existing(&snapshot.project, Expected::Any)?;
    let credential = existing(&snapshot.credential, Expected::Any)?;
    Ok((project.id, credential.id))
}

fn about(project: ProjectId, credential: CloudCredentialId) -> About {
    About::new(credential).of(project)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::catalog::{mk_credential, mk_project};
    use crate::fixtures::{at, mk_actor};

    fn snapshot() -> CredentialAssignmentSnapshot {
        CredentialAssignmentSnapshot {
            now: at(1_000),
            project: Some(mk_project()),
            credential: Some(mk_credential()),
            assignment: Some(CredentialAssignment {
                project_id: mk_project().id,
                credential_id: mk_credential().id,
                created_at: at(900),
            }),
            resources: 0,
        }
    }

    #[test]
    fn what_is_assigned_is_assigned_once() {
        assert!(assign(&snapshot(), &mk_actor()).unwrap().is_empty());
        let fresh = CredentialAssignmentSnapshot { assignment: None, ..snapshot() };
        assert_eq!(assign(&fresh, &mk_actor()).unwrap().writes.len(), 1);
        let refusal = withdraw(&fresh, &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::AssignmentNotFound);
    }

    #[test]
    fn what_is_used_is_not_withdrawn() {
        let used = CredentialAssignmentSnapshot { resources: 1, ..snapshot() };
        let refusal = withdraw(&used, &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::AssignmentInUse);
        assert!(withdraw(&snapshot(), &mk_actor()).is_ok());
    }

    #[test]
    fn both_ends_must_be_live() {
        let table = [
            (
                CredentialAssignmentSnapshot { project: None, ..snapshot() },
                ErrorKind::ProjectNotFound,
            ),
            (
                CredentialAssignmentSnapshot { credential: None, ..snapshot() },
                ErrorKind::CredentialNotFound,
            ),
        ];
        for (snapshot, kind) in table {
            assert_eq!(assign(&snapshot, &mk_actor()).unwrap_err().kind, kind);
            assert_eq!(withdraw(&snapshot, &mk_actor()).unwrap_err().kind, kind);
        }
    }
}
