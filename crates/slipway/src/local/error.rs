//! Why a command on this machine failed.

use std::path::PathBuf;

use slipway_store::{BackupError, DirectoryError};

use crate::config::InvalidConfig;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Config(#[from] InvalidConfig),
    #[error(transparent)]
    Backup(#[from] BackupError),
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error("{} is there already; choose another name, or replace it with --force", path.display())]
    FileExists { path: PathBuf },
    #[error("{} is the database itself; choose another name for the backup", path.display())]
    IsTheDatabase { path: PathBuf },
    #[error("{what}: {source}")]
    Io { what: String, source: std::io::Error },
    /// Shown like an error of the client, with the client's exit code.
    #[error(transparent)]
    Client(#[from] slipway_cli::Error),
}

impl Error {
    /// The stable code shown beside the text.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Config(_) => "config_invalid",
            Self::Backup(error) => error.code(),
            Self::Directory(DirectoryError::DataDirectoryInUse { .. }) => "data_directory_in_use",
            Self::Directory(DirectoryError::Unusable { .. }) => "data_directory_unusable",
            Self::FileExists { .. } => "file_exists",
            Self::IsTheDatabase { .. } => "file_is_the_database",
            Self::Io { .. } => "io_failed",
            Self::Client(_) => "usage",
        }
    }

    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}
