//! A cloud credential: where a secret is stored, never its value; and which
//! projects may use it.

use serde_json::json;

use crate::access::audit::{About, Actor};
use crate::catalog::cloud::Cloud;
use crate::catalog::project::Project;
use crate::catalog::{CatalogWrite, Name};
use crate::commit::Commit;
use crate::deletion::request::Deletable;
use crate::error::{ErrorKind, Refusal};
use crate::ids::{CloudCredentialId, CloudId, DeletionId, ProjectId, Revision};
use crate::kind::{about, audited, existing, free, kind, unknown};
use crate::precondition::Expected;
use crate::text::InvalidText;
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    pub id: CloudCredentialId,
    pub cloud_id: CloudId,
    /// Unique within its cloud among the not deleted.
    pub name: Name,
    pub coordinates: Coordinates,
    pub revision: Revision,
    pub deletion_id: Option<DeletionId>,
    pub deleted_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

kind!(Credential, CloudCredentialId, CredentialNotFound);

/// Mount and path in a KV-v2 store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coordinates {
    pub kv_mount: String,
    pub kv_path: String,
}

impl Coordinates {
    pub const DEFAULT_MOUNT: &str = "secret";
    const MAX_MOUNT: usize = 128;
    const MAX_PATH: usize = 512;

    /// Derives what is not given: the same two ids always give the same path,
    /// so whoever writes the secret can compute it too.
    pub fn new(
        mount: Option<&str>,
        path: Option<&str>,
        cloud: CloudId,
        credential: CloudCredentialId,
    ) -> Result<Self, InvalidText> {
        let kv_mount = mount.unwrap_or(Self::DEFAULT_MOUNT);
        let derived = format!("clouds/{cloud}/credentials/{credential}");
        let kv_path = path.unwrap_or(&derived);
        check("kv_mount", kv_mount, Self::MAX_MOUNT)?;
        check("kv_path", kv_path, Self::MAX_PATH)?;
        Ok(Self { kv_mount: kv_mount.to_owned(), kv_path: kv_path.to_owned() })
    }
}

/// Checks that a vault takes the path literally: no empty, `.` or `..` segment
/// that would lead elsewhere.
fn check(field: &str, text: &str, most: usize) -> Result<(), InvalidText> {
    let segment = |segment: &str| {
        !segment.is_empty()
            && segment != "."
            && segment != ".."
            && segment.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    if text.len() <= most && text.split('/').all(segment) {
        return Ok(());
    }
    Err(InvalidText::new(
        field,
        format!(
            "must be at most {most} bytes of letters, digits and - _ . in segments separated by single slashes; it is the path of the secret, not its value"
        ),
    ))
}

/// Permission for a project to use a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CredentialAssignment {
    pub project_id: ProjectId,
    pub credential_id: CloudCredentialId,
    pub created_at: Timestamp,
}

/// A credential, its row locked, and its cloud, locked against deletion.
#[derive(Debug, Clone)]
pub struct CredentialSnapshot {
    pub now: Timestamp,
    pub cloud: Option<Cloud>,
    pub credential: Option<Credential>,
    /// Live projects that it is assigned to.
    pub projects: i64,
    /// Not deleted resources that are made with it.
    pub resources: i64,
}

#[derive(Debug, Clone)]
pub struct NewCredential {
    pub id: CloudCredentialId,
    pub name: Name,
    pub kv_mount: Option<String>,
    pub kv_path: Option<String>,
}

pub fn create(
    snapshot: &CredentialSnapshot,
    new: &NewCredential,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let Some(cloud) = &snapshot.cloud else {
        return Err(unknown(ErrorKind::CloudNotFound, "cloud").at("cloud"));
    };
    free(&snapshot.credential, "name", new.name.as_str())?;
    let coordinates =
        Coordinates::new(new.kv_mount.as_deref(), new.kv_path.as_deref(), cloud.id, new.id)?;
    let credential = Credential {
        id: new.id,
        cloud_id: cloud.id,
        name: new.name.clone(),
        coordinates,
        revision: Revision::FIRST,
        deletion_id: None,
        deleted_at: None,
        created_at: snapshot.now,
        updated_at: snapshot.now,
    };
    let details = json!({ "name": credential.name, "cloud_id": cloud.id });
    let about = about(&credential);
    let write = CatalogWrite::CredentialInsert(credential);
    Ok(audited(write, "credential.create", about, actor, snapshot.now, details))
}

/// Changes where the reference points. `None` leaves a part unchanged.
pub fn update(
    snapshot: &CredentialSnapshot,
    kv_mount: Option<&str>,
    kv_path: Option<&str>,
    expected: Expected,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let credential = existing(&snapshot.credential, expected)?;
    let before = &credential.coordinates;
    let coordinates = Coordinates::new(
        Some(kv_mount.unwrap_or(&before.kv_mount)),
        Some(kv_path.unwrap_or(&before.kv_path)),
        credential.cloud_id,
        credential.id,
    )?;
    let details = json!({
        "before": { "kv_mount": before.kv_mount, "kv_path": before.kv_path },
        "after": { "kv_mount": coordinates.kv_mount, "kv_path": coordinates.kv_path },
    });
    let write = CatalogWrite::CredentialUpdate(Credential { coordinates, ..credential.clone() });
    Ok(audited(write, "credential.update", about(credential), actor, snapshot.now, details))
}

impl Deletable for Credential {
    type Snapshot = CredentialSnapshot;
    const DELETE: &'static str = "credential.delete";

    fn found(snapshot: &CredentialSnapshot) -> (&Option<Self>, Timestamp) {
        (&snapshot.credential, snapshot.now)
    }

    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn free(&self, snapshot: &CredentialSnapshot, _cascade: bool) -> Result<(), Refusal> {
        if snapshot.projects == 0 && snapshot.resources == 0 {
            return Ok(());
        }
        let message = format!(
            "credential `{}` is assigned to {} project(s) and used by {} resource(s); delete the resources and withdraw the credential first",
            self.name, snapshot.projects, snapshot.resources
        );
        let details = json!({ "projects": snapshot.projects, "resources": snapshot.resources });
        Err(Refusal::new(ErrorKind::CredentialInUse, message).with(details))
    }
}

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
    let about = About::new(credential_id).of(project_id);
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
    let about = About::new(credential_id).of(project_id);
    Ok(audited(write, "credential.withdraw", about, actor, snapshot.now, json!({})))
}

fn ends(
    snapshot: &CredentialAssignmentSnapshot,
) -> Result<(ProjectId, CloudCredentialId), Refusal> {
    let project = existing(&snapshot.project, Expected::Any)?;
    let credential = existing(&snapshot.credential, Expected::Any)?;
    Ok((project.id, credential.id))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::commit::Write;
    use crate::deletion::door::Door;
    use crate::deletion::request::request;
    use crate::fixtures::catalog::{mk_ask, mk_cloud, mk_credential, mk_project};
    use crate::fixtures::{at, mk_actor};

    fn of(mount: Option<&str>, path: Option<&str>) -> Result<Coordinates, InvalidText> {
        let (cloud, credential) = (Uuid::from_u128(1), Uuid::from_u128(2));
        Coordinates::new(mount, path, CloudId::new(cloud), CloudCredentialId::new(credential))
    }

    #[test]
    fn what_is_not_given_is_derived_from_the_two_ids() {
        let derived = of(None, None).unwrap();
        assert_eq!(derived.kv_mount, "secret");
        assert_eq!(
            derived.kv_path,
            format!("clouds/{}/credentials/{}", Uuid::from_u128(1), Uuid::from_u128(2))
        );
        assert_eq!(of(None, None).unwrap(), derived);
    }

    #[test]
    fn coordinates_lead_where_they_say() {
        assert!(of(Some("kv/team"), Some("a/b.c_d-e")).is_ok());
        for bad in ["", "/a", "a/", "a//b", "a/../b", ".", "a b", "a\0", &"x".repeat(513)] {
            assert_eq!(of(None, Some(bad)).unwrap_err().field, "kv_path", "{bad:?}");
        }
        assert_eq!(of(Some(".."), None).unwrap_err().field, "kv_mount");
    }

    fn snapshot() -> CredentialSnapshot {
        CredentialSnapshot {
            now: at(1_000),
            cloud: Some(mk_cloud()),
            credential: Some(mk_credential()),
            projects: 0,
            resources: 0,
        }
    }

    #[test]
    fn a_credential_in_use_stays() {
        let delete = |snapshot: &CredentialSnapshot| {
            request::<Credential>(snapshot, &Door::default(), &mk_ask(), &mk_actor())
        };
        for (projects, resources) in [(1, 0), (0, 1)] {
            let used = CredentialSnapshot { projects, resources, ..snapshot() };
            let refusal = delete(&used).unwrap_err();
            assert_eq!(refusal.kind, ErrorKind::CredentialInUse);
        }
        assert!(delete(&snapshot()).is_ok());
    }

    #[test]
    fn an_update_keeps_what_it_does_not_name() {
        let commit = update(&snapshot(), None, Some("a/b"), Expected::Any, &mk_actor()).unwrap();
        let Write::Catalog(write) = &commit.writes[0] else { panic!("{commit:?}") };
        let CatalogWrite::CredentialUpdate(updated) = &**write else { panic!("{write:?}") };
        assert_eq!(updated.coordinates.kv_mount, mk_credential().coordinates.kv_mount);
        assert_eq!(updated.coordinates.kv_path, "a/b");
    }

    #[test]
    fn without_its_cloud_there_is_no_credential() {
        let new = NewCredential {
            id: mk_credential().id,
            name: mk_credential().name,
            kv_mount: None,
            kv_path: None,
        };
        let orphan = CredentialSnapshot { cloud: None, credential: None, ..snapshot() };
        let refusal = create(&orphan, &new, &mk_actor()).unwrap_err();
        assert_eq!(refusal.field.as_deref(), Some("cloud"));
    }

    fn assignable() -> CredentialAssignmentSnapshot {
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
        assert!(assign(&assignable(), &mk_actor()).unwrap().is_empty());
        let fresh = CredentialAssignmentSnapshot { assignment: None, ..assignable() };
        assert_eq!(assign(&fresh, &mk_actor()).unwrap().writes.len(), 1);
        let refusal = withdraw(&fresh, &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::AssignmentNotFound);
    }

    #[test]
    fn what_is_used_is_not_withdrawn() {
        let used = CredentialAssignmentSnapshot { resources: 1, ..assignable() };
        let refusal = withdraw(&used, &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::AssignmentInUse);
        assert!(withdraw(&assignable(), &mk_actor()).is_ok());
    }

    #[test]
    fn both_ends_must_be_live() {
        let table = [
            (
                CredentialAssignmentSnapshot { project: None, ..assignable() },
                ErrorKind::ProjectNotFound,
            ),
            (
                CredentialAssignmentSnapshot { credential: None, ..assignable() },
                ErrorKind::CredentialNotFound,
            ),
        ];
        for (snapshot, kind) in table {
            assert_eq!(assign(&snapshot, &mk_actor()).unwrap_err().kind, kind);
            assert_eq!(withdraw(&snapshot, &mk_actor()).unwrap_err().kind, kind);
        }
    }
}
