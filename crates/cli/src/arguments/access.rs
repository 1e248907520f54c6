//! Keys, bootstrap tokens and the audit on the command line.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::{IdArguments, PageArguments, TargetArguments, parse_duration};

#[derive(Debug, Clone, Subcommand)]
pub enum KeyCommand {
    /// Make a key; its text is shown this once
    Create(KeyCreateArguments),
    /// List keys, also those that are revoked
    List(PageArguments),
    /// Show one key
    Show(IdArguments),
    /// Give a key another text, which is shown this once
    Rotate(KeyRotateArguments),
    /// End a key at once
    Revoke(RevokeArguments),
    /// Show the key that this command comes with
    Whoami,
}

#[derive(Debug, Clone, Args)]
pub struct KeyCreateArguments {
    /// How the audit names whoever uses it
    #[arg(long)]
    pub name: String,
    /// What it may do
    #[arg(long, value_enum)]
    pub role: RoleArgument,
    /// The only project that it reaches (name or id); all of them if not given
    #[arg(long)]
    pub project: Option<String>,
    /// When it ends by itself, for instance 720h; never if not given
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub ttl: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RoleArgument {
    Viewer,
    Operator,
    Admin,
}

impl RoleArgument {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

#[derive(Debug, Clone, Args)]
pub struct KeyRotateArguments {
    /// The id of the key
    pub id: String,
    /// How long the text before stays good, 168h at most
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "0s")]
    pub overlap: Duration,
}

#[derive(Debug, Clone, Args)]
pub struct RevokeArguments {
    /// Its id
    pub id: String,
    /// Why; kept in the audit
    #[arg(long)]
    pub reason: Option<String>,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, Clone, Subcommand)]
pub enum TokenCommand {
    /// Issue a bootstrap token for a resource whose node is waited for; it is shown this once,
    /// and the one before no longer works
    Issue(TokenIssueArguments),
    /// List the bootstrap tokens of a resource
    List(TokenListArguments),
    /// Show one bootstrap token
    Show(IdArguments),
    /// Let nobody enrol with a token any more
    Revoke(RevokeArguments),
}

#[derive(Debug, Clone, Args)]
pub struct TokenIssueArguments {
    #[command(flatten)]
    pub target: TargetArguments,
    /// How long it lives, from 5m to 24h
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub ttl: Option<Duration>,
    /// Write out the manifests of a DaemonSet that enrols with it, the token in a Secret or in a
    /// variable
    #[arg(long, value_enum, value_name = "HOW", requires = "image")]
    pub daemon_set: Option<TokenDelivery>,
    /// The image of the node agent
    #[arg(long, requires = "daemon_set")]
    pub image: Option<String>,
    /// The machine to enrol, by its name in the cluster [default: the handle]
    #[arg(long, requires = "daemon_set", value_name = "NAME")]
    pub machine: Option<String>,
    /// The namespace of the DaemonSet
    #[arg(long, requires = "daemon_set", value_name = "NAME", default_value = "plexd")]
    pub namespace: String,
    /// How nodes reach the server [default: as this command does]
    #[arg(long, requires = "daemon_set", value_name = "URL")]
    pub api_url: Option<String>,
}

/// How a DaemonSet hands the token to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TokenDelivery {
    Secret,
    Env,
}

#[derive(Debug, Clone, Args)]
pub struct TokenListArguments {
    #[command(flatten)]
    pub target: TargetArguments,
    #[command(flatten)]
    pub page: PageArguments,
}

#[derive(Debug, Clone, Subcommand)]
pub enum AuditCommand {
    /// List who did what, the newest first
    List(AuditListArguments),
    /// Write out every entry, the oldest first, one JSON document a line
    Export(AuditFilterArguments),
}

#[derive(Debug, Clone, Args)]
pub struct AuditListArguments {
    #[command(flatten)]
    pub filter: AuditFilterArguments,
    #[command(flatten)]
    pub page: PageArguments,
}

#[derive(Debug, Clone, Default, Args)]
pub struct AuditFilterArguments {
    /// Only by this actor, for instance key:admin
    #[arg(long)]
    pub actor: Option<String>,
    /// Only this, for instance resource.delete
    #[arg(long)]
    pub verb: Option<String>,
    /// Only about things of this kind, for instance resource
    #[arg(long)]
    pub kind: Option<String>,
    /// Only about the thing with this id
    #[arg(long)]
    pub id: Option<String>,
    /// Only of this project (name or id)
    #[arg(long)]
    pub project: Option<String>,
    /// Only from this time on, for instance 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Only before this time
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
}
