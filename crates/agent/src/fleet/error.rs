//! Errors that end an agent. A server or a cluster that does not answer is none of
//! them, except with `--once`: an agent waits for both.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "`--server`: `{server}` {problem}; name the address of the control plane, such as https://slipway.example.com"
    )]
    Server { server: String, problem: String },

    #[error("the HTTP client for {server} cannot be set up: {reason}")]
    Client { server: String, reason: String },

    #[error("{what} {path} cannot be read: {source}", path = path.display())]
    File { what: &'static str, path: PathBuf, source: io::Error },

    #[error("there is no key in {}; put the key of the agent into it", path.display())]
    EmptyKey { path: PathBuf },

    #[error(
        "the key is not that of an agent; use the one that was shown when the agent was created, or rotate it"
    )]
    NotAnAgent,

    #[error(
        "the key is that of the agent {found}, not of {expected}; correct --id, --name and --cluster-name, or use the other key"
    )]
    OtherAgent { found: String, expected: String },

    #[error("the folder {} cannot be used: {source}", path.display())]
    Folder { path: PathBuf, source: io::Error },

    #[error("another agent uses the folder {}; stop it, or choose another folder", path.display())]
    InUse { path: PathBuf },

    #[error(
        "what {target} holds belongs to another owner: {reason}; use another folder or namespace, or remove that inventory"
    )]
    OtherOwner { target: String, reason: String },

    #[error("{0}")]
    Unavailable(String),

    #[error("{0}; the agent may be deleted, or its key rotated")]
    KeyRefused(String),

    #[error("the agent {name} is {status}, so it does nothing; activate it first")]
    Inactive { name: String, status: String },

    #[error("{}", problems.join("\n"))]
    Incomplete { problems: Vec<String> },

    #[error("the kernel gave no random bytes: {0}")]
    Random(#[from] getrandom::Error),

    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
}

impl Error {
    /// A stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Server { .. } => "server_invalid",
            Self::Client { .. } => "client_failed",
            Self::File { .. } => "file_unreadable",
            Self::EmptyKey { .. } => "key_missing",
            Self::NotAnAgent => "key_of_no_agent",
            Self::OtherAgent { .. } => "key_of_other_agent",
            Self::Folder { .. } => "folder_unusable",
            Self::InUse { .. } => "folder_in_use",
            Self::OtherOwner { .. } => "inventory_of_other_owner",
            Self::Unavailable(_) => "unavailable",
            Self::KeyRefused(_) => "key_refused",
            Self::Inactive { .. } => "agent_inactive",
            Self::Incomplete { .. } => "agent_incomplete",
            Self::Random(_) | Self::Signals(_) => "agent_failed",
        }
    }

    /// Whether the command line is at fault.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Server { .. }
                | Self::Client { .. }
                | Self::File { .. }
                | Self::EmptyKey { .. }
                | Self::NotAnAgent
                | Self::OtherAgent { .. }
                | Self::Folder { .. }
        )
    }
}
