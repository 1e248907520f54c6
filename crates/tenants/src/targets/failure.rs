//! How a call on a target's database can fail, and what a step says about it.

use slipway_durable::database::{ErrorClass, class};
use sqlx::postgres::{PgDatabaseError, PgErrorPosition};

use super::folder::Script;
use super::names::TenantNames;
use super::target::{Fence, Work};
use crate::StepError;

#[derive(Debug)]
pub(crate) enum Failure {
    Database(sqlx::Error),
    /// A statement of this file.
    Script {
        file: String,
        line: Option<usize>,
        error: sqlx::Error,
    },
    /// The database did not answer in time, so nobody knows what it did.
    Silent(String),
    Refused(StepError),
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl From<StepError> for Failure {
    fn from(error: StepError) -> Self {
        Self::Refused(error)
    }
}

impl Failure {
    pub(crate) fn permanent(message: impl Into<String>) -> Self {
        Self::Refused(StepError::permanent(message.into()))
    }

    pub(crate) fn transient(message: impl Into<String>) -> Self {
        Self::Refused(StepError::transient(message.into()))
    }

    pub(crate) fn of_script(script: &Script, error: sqlx::Error) -> Self {
        let refusal = error.as_database_error();
        let refusal = refusal.and_then(|error| error.try_downcast_ref::<PgDatabaseError>());
        let line = refusal.and_then(PgDatabaseError::position).and_then(|at| match at {
            PgErrorPosition::Original(at) => {
                let before = script.sql.chars().take(at.saturating_sub(1));
                Some(1 + before.filter(|letter| *letter == '\n').count())
            }
            PgErrorPosition::Internal { .. } => None,
        });
        Self::Script { file: script.file.clone(), line, error }
    }

    /// Whether a fresh connection may do better at once: a lock was not free, or the
    /// connection was lost. What was done before is in the ledger.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Database(error) | Self::Script { error, .. } => match class(error) {
                ErrorClass::Conflict => true,
                ErrorClass::Timeout => code(error).as_deref() == Some("55P03"),
                ErrorClass::Unavailable => matches!(error, sqlx::Error::Io(_)) || is_ended(error),
                _ => false,
            },
            Self::Silent(_) | Self::Refused(_) => false,
        }
    }
}

/// The server restarts, or somebody ended this session.
fn is_ended(error: &sqlx::Error) -> bool {
    code(error).is_some_and(|code| code.starts_with("57P"))
}

pub(crate) fn code(error: &sqlx::Error) -> Option<String> {
    error.as_database_error().and_then(|error| error.code()).map(|code| code.to_string())
}

/// The refusal of a lower fence, or of a ledger whose number was lost. If the worker lost its
/// claim, nobody hears it. Otherwise the database went back in time: trying again would give a
/// higher number, and cleaning up would remove what was made since, so a person decides.
pub(crate) fn fenced(found: Option<Fence>, work: &Work<'_>) -> Failure {
    let (found, fence) = (found.unwrap_or_default(), work.fence);
    let ahead = format!(
        "the target's ledger is ahead: it has work {}, token {}, and this is work {}, token {}",
        found.work, found.token, fence.work, fence.token
    );
    let why = match work.lost {
        Some(lost) if lost.has(found.work) => {
            "; the database was restored from a backup that does not know that work"
        }
        _ => "",
    };
    Failure::Refused(StepError::waiting(format!("{ahead}{why}; nothing was changed")))
}

/// The refusal of a name that the ledger knows as another tenant's.
pub(crate) fn belongs_to(names: &TenantNames, owner: &str) -> Failure {
    let (tenant, schema) = (names.tenant(), names.schema());
    Failure::permanent(match names.is_unclear(owner) {
        false => {
            format!("the name {schema} belongs to tenant {owner}: choose another name or prefix")
        }
        true => format!(
            "the target's ledger names the tenant of {schema} `{owner}` and no id, as development \
             versions wrote it: if that is this tenant {tenant}, write its id {} there",
            names.owner()
        ),
    })
}

/// An error of the database alone is permanent only if the same call would fail again.
impl From<Failure> for StepError {
    fn from(failure: Failure) -> Self {
        let (what, error) = match failure {
            Failure::Refused(error) => return error,
            Failure::Silent(what) => {
                return Self::transient(format!(
                    "state unknown: {what}; the ledger is read before anything is repeated"
                ));
            }
            Failure::Database(error) => (String::new(), error),
            Failure::Script { file, line: Some(line), error } => {
                (format!("{file}, line {line}: "), error)
            }
            Failure::Script { file, line: None, error } => (format!("{file}: "), error),
        };
        let class = class(&error);
        let text = error.as_database_error().map_or_else(
            || error.to_string(),
            |refusal| match refusal.code() {
                Some(code) => format!("{} ({code})", refusal.message()),
                None => refusal.message().to_owned(),
            },
        );
        let message = crate::redacted(&format!("{what}{text}"));
        if class.is_temporary() || class.concerns_the_database() {
            Self::transient(message)
        } else {
            Self::permanent(message)
        }
    }
}
