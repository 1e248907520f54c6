//! A cloud credential: where a secret is stored, never its value.

use crate::catalog::name::Name;
use crate::ids::{CloudCredentialId, CloudId, DeletionId, ProjectId, Revision};
use crate::kind::kind;
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

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

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
}
