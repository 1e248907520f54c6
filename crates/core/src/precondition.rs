//! Preconditions: the revision that a caller read and expects to change.

use serde_json::json;

use crate::error::{ErrorKind, Refusal};
use crate::ids::Revision;

/// `If-Match`, as decisions see it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Expected {
    /// Any revision.
    #[default]
    Any,
    Exactly(Revision),
}

impl Expected {
    /// Refuses if the row was written since; names the current revision.
    pub fn check(self, kind: &str, current: Revision) -> Result<(), Refusal> {
        match self {
            Self::Exactly(expected) if expected != current => Err(Refusal::new(
                ErrorKind::RevisionStale,
                format!(
                    "this {kind} is at revision {}, not {}; read it again, then repeat the change",
                    current.0, expected.0
                ),
            )
            .with(json!({ "current_revision": current.0 }))),
            Self::Any | Self::Exactly(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_revision_is_stale() {
        assert!(Expected::Any.check("project", Revision(3)).is_ok());
        assert!(Expected::Exactly(Revision(3)).check("project", Revision(3)).is_ok());
        let refusal = Expected::Exactly(Revision(2)).check("project", Revision(3)).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::RevisionStale);
        assert_eq!(refusal.details, Some(json!({ "current_revision": 3 })));
    }
}
