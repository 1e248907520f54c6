//! The application's only error type: a refusal with its kind. Database errors
//! become refusals too; their text goes to the log and not to the caller.

use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{BootstrapTokenId, LeakRecordId, NodeId, ProvisionedResourceId};
use slipway_core::text::InvalidText;

use crate::ports::store;

/// Marks the end of a dry run; nobody reads it.
const DRY_RUN: &str = "a dry run ended before its write";

/// Why a use-case failed.
#[derive(Debug, thiserror::Error)]
#[error("{refusal}")]
pub struct Error {
    pub refusal: Refusal,
    /// For the log only.
    pub internal: Option<String>,
}

impl Error {
    pub fn kind(&self) -> ErrorKind {
        self.refusal.kind
    }

    /// Whether a dry run decided to write; see [`store::Error::DryRun`].
    pub fn is_dry_run(&self) -> bool {
        self.internal.as_deref() == Some(DRY_RUN)
    }

    /// Whether the store has logged it; see [`store::Error::is_logged`].
    pub fn is_logged(&self) -> bool {
        self.internal.is_some()
            && matches!(
                self.refusal.kind,
                ErrorKind::Unavailable | ErrorKind::DatabaseReadOnly | ErrorKind::DatabaseFull
            )
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, internal: None }
    }
}

impl From<InvalidText> for Error {
    fn from(invalid: InvalidText) -> Self {
        Refusal::from(invalid).into()
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        let internal = Some(error.to_string());
        match error {
            store::Error::Refused(refusal) => refusal.into(),
            store::Error::DryRun => Self {
                refusal: Refusal::new(ErrorKind::Internal, DRY_RUN),
                internal: Some(DRY_RUN.to_owned()),
            },
            store::Error::NotFound { kind } => {
                let missing = match kind {
                    NodeId::KIND => ErrorKind::NodeNotFound,
                    LeakRecordId::KIND => ErrorKind::LeakNotFound,
                    BootstrapTokenId::KIND => ErrorKind::TokenNotFound,
                    ProvisionedResourceId::KIND => ErrorKind::ProvisionedResourceNotFound,
                    _ => ErrorKind::ResourceNotFound,
                };
                Refusal::new(missing, format!("there is no such {kind}; check the id")).into()
            }
            store::Error::Corrupt { id, reason } => Self {
                refusal: Refusal::new(
                    ErrorKind::RowInvalid,
                    format!(
                        "{id} is quarantined because its row is invalid: {reason}; repair the row"
                    ),
                ),
                internal,
            },
            store::Error::Unavailable(_) => Self {
                refusal: Refusal::new(
                    ErrorKind::Unavailable,
                    "the database cannot be reached now; try again in a moment",
                ),
                internal,
            },
            store::Error::ReadOnly(_) => Self {
                refusal: Refusal::new(
                    ErrorKind::DatabaseReadOnly,
                    "the database is read-only now, so nothing can be changed; reading works, and \
                     so does this once the database can be written again",
                ),
                internal,
            },
            store::Error::Full(_) => Self {
                refusal: Refusal::new(
                    ErrorKind::DatabaseFull,
                    "the database is full, so nothing can be added; reading works, and so does \
                     this once the database has more space",
                ),
                internal,
            },
            store::Error::Internal(_) => Self {
                refusal: Refusal::new(
                    ErrorKind::Internal,
                    "the control plane failed; its log has the cause under the correlation id",
                ),
                internal,
            },
        }
    }
}
