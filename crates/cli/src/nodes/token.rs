//! `slipway token …`: bootstrap tokens issued by hand.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use serde::de::IgnoredAny;
use slipway_wire::broker::Resource;
use slipway_wire::nodes::{IssueToken, IssuedToken, Token};

use crate::arguments::{
    IdArguments, PageArguments, RevokeArguments, because, parse_duration, whole_seconds,
};
use crate::broker::target::{Gone, TargetArguments, find};
use crate::error::Error;
use crate::kind::{Cells, Detail, Facts, Kind, Row};
use crate::output::{optional_time, or_dash, time};
use crate::renderers::DaemonSet;
use crate::session::Session;

#[derive(Debug, Clone, Subcommand)]
pub enum TokenCommand {
    /// Issue a bootstrap token for a resource whose node is waited for; it is shown this once,
    /// and the one before no longer works
    Issue(TokenIssueArguments),
    /// List the bootstrap tokens of a resource
    List {
        #[command(flatten)]
        target: TargetArguments,
        #[command(flatten)]
        page: PageArguments,
    },
    /// Show one bootstrap token
    Show(IdArguments),
    /// Revoke a token: nobody can enrol with it any more
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
    pub daemon_set: Option<TokenOutput>,
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

/// How a DaemonSet passes the token to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TokenOutput {
    Secret,
    Env,
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway token issue web-1 --ttl 30m",
    "slipway token issue web-1 --daemon-set secret --image registry.example/plexd:1.0",
    "slipway token list web-1",
    "slipway token show 0192f0c1-2b3c",
    "slipway token revoke 0192f0c1-2b3c --yes",
];

impl Kind for Token {
    const PATH: &'static str = "tokens";
}

impl Row for Token {
    fn cells(&self) -> Cells {
        vec![
            ("ID", self.token_id.clone()),
            ("STATE", self.state.clone()),
            ("AGE", self.issued_at.clone()),
            ("EXPIRES", self.expires_at.clone()),
            ("BY", or_dash(self.issued_by.as_deref())),
        ]
    }

    fn wide(&self) -> Cells {
        vec![("ATTEMPT ID", self.provisioned_resource_id.clone())]
    }
}

impl Detail for Token {
    const NOUN: &'static str = "token";

    fn facts(&self) -> Facts {
        vec![
            ("id", Some(self.token_id.clone())),
            ("state", Some(self.state.clone())),
            ("kind", Some(self.kind.clone())),
            ("resource", self.resource.clone()),
            ("attempt", Some(self.provisioned_resource_id.clone())),
            ("issued", Some(time(&self.issued_at))),
            ("issued by", self.issued_by.clone()),
            ("expires", Some(time(&self.expires_at))),
            ("used", optional_time(self.consumed_at.as_ref())),
            ("used by node", self.consumed_by_node_id.clone()),
            ("revoked", optional_time(self.revoked_at.as_ref())),
        ]
    }
}

impl Detail for IssuedToken {
    fn facts(&self) -> Facts {
        self.about.facts()
    }

    fn note(&self) -> Option<String> {
        Some(match &self.token {
            Some(text) => format!("This token is shown once:\n\n    {text}"),
            None => "Its text was shown before; issue another.".to_owned(),
        })
    }
}

pub(crate) async fn run(session: &mut Session<'_>, command: TokenCommand) -> Result<(), Error> {
    match command {
        TokenCommand::Issue(arguments) => issue(session, &arguments).await,
        TokenCommand::List { target, page } => {
            let resource = find(&session.client, &target, Gone::Allowed).await?;
            session.list_at::<Token>(&["resources", &resource.id, "tokens"], page).await
        }
        TokenCommand::Show(arguments) => session.get::<Token>(&arguments.id).await,
        TokenCommand::Revoke(RevokeArguments { id, reason, yes, ignore_not_found }) => {
            let question = "Revoke this token? Nobody can enrol with it any more.";
            session.terminal.agree(yes, question)?;
            let path = ["tokens", &id];
            let done = session.client.delete::<IgnoredAny>(&path, &because(reason)).await;
            session.unless_ignored(done, ignore_not_found).map(|_| ())
        }
    }
}

async fn issue(session: &mut Session<'_>, arguments: &TokenIssueArguments) -> Result<(), Error> {
    let ttl_seconds = arguments.ttl.map(|ttl| whole_seconds("--ttl", ttl)).transpose()?;
    let resource = find(&session.client, &arguments.target, Gone::Refused).await?;
    let body = IssueToken { kind: "node".to_owned(), ttl_seconds };
    let path = ["resources", &resource.id, "tokens"];
    let token: IssuedToken = session.client.post(&path, &body).await?;
    match arguments.daemon_set {
        None => session.show_details(&token),
        Some(token_output) => {
            let manifests = manifests(session, arguments, token_output, &resource, &token)?;
            session.terminal.print(&manifests);
        }
    }
    Ok(())
}

/// The manifests that run an agent with this token.
fn manifests(
    session: &mut Session<'_>,
    arguments: &TokenIssueArguments,
    token_output: TokenOutput,
    resource: &Resource,
    issued: &IssuedToken,
) -> Result<String, Error> {
    let failed = |reason: &str| Error::Unreadable {
        server: session.server.clone(),
        reason: format!("token {} cannot be written out: {reason}", issued.about.token_id),
    };
    let token = issued.token.as_deref().ok_or_else(|| failed("it was shown before"))?;
    let rendered = (session.renderers.daemon_set)(&DaemonSet {
        api_url: arguments.api_url.as_deref().unwrap_or(&session.server),
        project_id: &resource.project_id,
        resource_handle: &resource.handle,
        hostname: arguments.machine.as_deref().unwrap_or(&resource.handle),
        namespace: &arguments.namespace,
        image: arguments.image.as_deref().unwrap_or_default(),
        by_environment: token_output == TokenOutput::Env,
        token,
    });
    let rendered = rendered.map_err(|reason| failed(&reason))?;
    session.terminal.say("These hold the token, which enrols one machine once.");
    Ok(rendered.trim_end().to_owned())
}
