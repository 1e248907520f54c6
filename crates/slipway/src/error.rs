//! Why a command of this binary failed. Each error has a stable code, which is
//! shown beside its text.

use std::path::{Path, PathBuf};

use slipway_agent::fleet::Error as FleetError;
use slipway_app::ports::substrate::Error as SubstrateError;
use slipway_cli::Exit;
use slipway_core::ErrorKind;
use slipway_server::TlsError;
use slipway_store::{BackupError, DirectoryError, OpenError};

use crate::config::InvalidConfig;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Config(#[from] InvalidConfig),
    #[error("{address} is in use; stop what listens there, or choose another with {flag}")]
    PortInUse { address: String, flag: &'static str },
    #[error("cannot listen on {address}: {source}")]
    Listen { address: String, source: std::io::Error },
    #[error("{0}; correct `tls_cert` and `tls_key`")]
    Tls(#[from] TlsError),
    #[error("`node_ca_file`: {path} {problem}; name a PEM file of authorities, or leave it out")]
    NodeAuthorities { path: String, problem: String },
    #[error(transparent)]
    Store(#[from] OpenError),
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error(transparent)]
    Backup(#[from] BackupError),
    #[error(transparent)]
    App(#[from] slipway_app::Error),
    #[error("the local engine cannot start: {0}")]
    Substrate(#[from] SubstrateError),
    #[error(transparent)]
    Agent(#[from] slipway_agent::node::Error),
    #[error(transparent)]
    FleetAgent(#[from] FleetError),
    #[error(
        "`{key}`: {path} cannot be made or written: {source}; let this user write it, or choose \
         another folder"
    )]
    FolderUnusable { key: &'static str, path: String, source: std::io::Error },
    #[error("{} is there already; choose another name, or replace it with --force", path.display())]
    FileExists { path: PathBuf },
    #[error("{} is the database itself; choose another name for the backup", path.display())]
    IsTheDatabase { path: PathBuf },
    #[error("{what}: {source}")]
    Io { what: String, source: std::io::Error },
    #[error("the signing key in {path} cannot be used; restore it, or remove it to get a new one")]
    SigningKey { path: String },
    #[error("the built-in blueprint is invalid: {0}")]
    Seed(#[from] slipway_core::catalog::parameters::InvalidSchema),
    #[error("the loop over tenants cannot start: {0}")]
    Tenants(String),
    #[error("stopped by a second signal; unfinished work continues at the next start")]
    StoppedTwice,
    /// Shown like an error of the client, with the client's exit code.
    #[error(transparent)]
    Client(#[from] slipway_cli::Error),
}

impl Error {
    /// Whether the database cannot be reached now, so that the same step may work
    /// later.
    pub(crate) fn is_database_away(&self) -> bool {
        matches!(self, Self::App(error) if error.is_logged() && error.kind() == ErrorKind::Unavailable)
    }

    /// A setting is at fault, or the start failed.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Client(error) => error.exit(),
            Self::Config(_)
            | Self::Tls(_)
            | Self::NodeAuthorities { .. }
            | Self::FolderUnusable { .. }
            | Self::Directory(DirectoryError::Unusable { .. })
            | Self::Store(
                OpenError::InvalidUrl | OpenError::Directory(DirectoryError::Unusable { .. }),
            ) => Exit::Usage,
            Self::App(error) if error.kind() == ErrorKind::InvalidInput => Exit::Usage,
            Self::FleetAgent(error) => match error {
                error if error.is_usage() => Exit::Usage,
                FleetError::Unavailable(_) => Exit::Unreachable,
                FleetError::KeyRefused(_) => Exit::Unauthenticated,
                _ => Exit::Refused,
            },
            _ => Exit::Refused,
        }
    }

    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Config(error) => error.code(),
            Self::PortInUse { .. } => "port_in_use",
            Self::Listen { .. } => "listen_failed",
            Self::Tls(_) => "tls_unusable",
            Self::NodeAuthorities { .. } => "node_ca_file_unusable",
            Self::Store(OpenError::InvalidUrl) => "database_url_invalid",
            Self::Store(OpenError::DatabaseUnreachable { .. }) => "database_unreachable",
            Self::Store(OpenError::DatabaseRefused { .. }) => "database_refused",
            Self::Store(OpenError::DatabaseConnectionsExhausted { .. }) => {
                "database_connections_exhausted"
            }
            Self::Store(OpenError::DatabaseReadOnly(_)) => "database_read_only",
            Self::Store(OpenError::DatabaseFull(_)) => "database_full",
            Self::Store(OpenError::Sqlite(_)) => "database_unusable",
            Self::Store(OpenError::Migration(error)) => {
                error.refusal_code().unwrap_or("migration_failed")
            }
            Self::Store(OpenError::Directory(error)) | Self::Directory(error) => match error {
                DirectoryError::DataDirectoryInUse { .. } => "data_directory_in_use",
                DirectoryError::Unusable { .. } => "data_directory_unusable",
            },
            Self::Backup(error) => error.code(),
            Self::App(error) => error.kind().code(),
            Self::Substrate(SubstrateError::Conflict(_)) => "substrate_foreign",
            Self::Substrate(_) => "substrate_unusable",
            Self::Agent(_) => "agent_failed",
            Self::FleetAgent(error) => error.code(),
            Self::FolderUnusable { .. } => "folder_unusable",
            Self::FileExists { .. } => "file_exists",
            Self::IsTheDatabase { .. } => "file_is_the_database",
            Self::Io { .. } => "io_failed",
            Self::SigningKey { .. } => "signing_key_unusable",
            Self::Seed(_) => "internal",
            Self::StoppedTwice => "stopped_at_once",
            Self::Tenants(_) | Self::Store(OpenError::Jobs(_)) => "tenants_unusable",
            Self::Client(_) => "usage",
        }
    }

    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    pub(crate) fn reading(path: &Path) -> impl FnOnce(std::io::Error) -> Self + use<> {
        Self::io(format!("read {}", path.display()))
    }

    pub(crate) fn writing(path: &Path) -> impl FnOnce(std::io::Error) -> Self + use<> {
        Self::io(format!("write {}", path.display()))
    }
}
