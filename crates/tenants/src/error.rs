//! What can go wrong with a job or its store. [`Error::code`] never changes.

use crate::State;

/// An error of a store or of the executor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("job `{id}` does not exist")]
    JobNotFound { id: String },
    #[error("job `{id}` is {found}, not {expected}: somebody else changed it; read it again")]
    StaleRead { id: String, expected: State, found: State },
    #[error("invalid job: {field} {problem}")]
    InvalidJob { field: &'static str, problem: String },
    #[error("illegal transition {from} → {to}")]
    IllegalTransition { from: State, to: State },
    #[error(
        "invalid table name `{name}`: use letters, digits and underscores, 52 at most, \
         and where the database has schemas one dot"
    )]
    InvalidTableName { name: String },
    #[error("tenant `{tenant}` has the unfinished job `{job}`; wait for it, or cancel it")]
    TenantBusy { tenant: String, job: String },
    #[error("tenant `{tenant}` is ready since job `{job}`; decommission it first")]
    TenantReady { tenant: String, job: String },
    #[error("job `{id}` belongs to another tenant; choose another id")]
    TenantMismatch { id: String },
    #[error("tenant `{tenant}` has the newer job `{job}`, so the earlier one stays decommissioned")]
    TenantReplaced { tenant: String, job: String },
    #[error(
        "job `{job}` left something of tenant `{tenant}` behind: retry that job, or remove it \
         and resolve its leak record"
    )]
    TenantLeaks { tenant: String, job: String },
    #[error("job `{id}` is {state}, so it cannot be {action}")]
    WrongState { id: String, state: State, action: &'static str },
    /// A constructor got no value for this.
    #[error("{0} is missing")]
    Missing(&'static str),
    #[error(
        "metadata `{key}` looks like a secret: keep it in a secret manager, and store a \
         reference to it, such as its name"
    )]
    SecretInMetadata { key: String },
    #[error(
        "another worker holds job `{id}`; it is continued when that one releases it or its lease ends"
    )]
    Leased { id: String },
    #[error("the claim of job `{id}` was lost to another worker; nothing was written")]
    ClaimLost { id: String },
    #[error("job `{id}` failed: {last_error}")]
    JobFailed { id: String, last_error: String },
    #[error("table {table} lacks columns, so it can only be read: call create_table to upgrade it")]
    NotUpgraded { table: String },
    #[error(
        "tenant `{tenant}` has several unfinished jobs: end all but one of them, then create the table again"
    )]
    SeveralUnfinished { tenant: String },
    #[error("the row of job `{id}` cannot be read: {reason}")]
    Corrupt { id: String, reason: String },
    #[error("the database is not available: {0}")]
    Unavailable(String),
    #[error("the database refused: {0}")]
    Database(String),
}

impl Error {
    /// A name for programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::JobNotFound { .. } => "job_not_found",
            Self::StaleRead { .. } => "stale_read",
            Self::InvalidJob { .. } => "invalid_job",
            Self::IllegalTransition { .. } => "illegal_transition",
            Self::InvalidTableName { .. } => "invalid_table_name",
            Self::TenantBusy { .. } => "tenant_busy",
            Self::TenantReady { .. } => "tenant_ready",
            Self::TenantMismatch { .. } => "tenant_mismatch",
            Self::TenantReplaced { .. } => "tenant_replaced",
            Self::TenantLeaks { .. } => "tenant_leaks",
            Self::WrongState { .. } => "wrong_state",
            Self::Missing(_) => "missing_dependency",
            Self::SecretInMetadata { .. } => "secret_in_metadata",
            Self::Leased { .. } => "leased",
            Self::ClaimLost { .. } => "claim_lost",
            Self::JobFailed { .. } => "job_failed",
            Self::NotUpgraded { .. } => "table_not_upgraded",
            Self::SeveralUnfinished { .. } => "several_unfinished_jobs",
            Self::Corrupt { .. } => "corrupt_job",
            Self::Unavailable(_) => "unavailable",
            Self::Database(_) => "database",
        }
    }

    /// Whether the same call may succeed later, if nothing but the database changes.
    #[must_use]
    pub const fn is_temporary(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}
