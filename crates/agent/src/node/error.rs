//! Errors that end an agent. Refusals of the server and failures of the network
//! are none of them: those are states, shown in `status.json`.

use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not a failure of the node: another agent serves its directory.
    #[error(
        "another agent holds the lock of {directory}; it is alive and serves this node, so this one ends"
    )]
    AlreadyRunning { directory: PathBuf },

    #[error("cannot {action} {path}: {source}")]
    File { action: &'static str, path: PathBuf, source: io::Error },

    /// The reason never quotes the document, because it carries the token.
    #[error("the user-data in {directory} cannot be used: {reason}; apply a corrected document")]
    UserData { directory: PathBuf, reason: String },

    #[error(
        "the node configuration {path} cannot be used: {reason}; correct it in the user-data document"
    )]
    Configuration { path: PathBuf, reason: String },

    #[error("the state file {path} is damaged: {reason}; remove the node and provision it again")]
    State { path: PathBuf, reason: String },

    #[error("the HTTP client for {api_url} cannot be set up: {reason}")]
    Client { api_url: String, reason: String },

    #[error("the kernel gave no random bytes: {0}")]
    Random(String),

    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
}

impl From<getrandom::Error> for Error {
    fn from(error: getrandom::Error) -> Self {
        Self::Random(error.to_string())
    }
}

impl Error {
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { action, path, source }
    }
}
