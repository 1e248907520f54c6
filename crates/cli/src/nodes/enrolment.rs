//! `slipway resource enrolment`: what a machine is booted with.

use std::time::Duration;

use clap::{Args, ValueEnum};
use slipway_wire::nodes::{IssueToken, IssuedToken};

use crate::arguments::{parse_duration, whole_seconds};
use crate::broker::target::{Gone, TargetArguments, find};
use crate::error::Error;
use crate::renderers::{DaemonSet, MachineConfig};
use crate::session::Session;

#[derive(Debug, Clone, Args)]
pub struct EnrolmentArguments {
    #[command(flatten)]
    pub target: TargetArguments,
    /// A cloud-init document, variables for an agent without a file, or the manifests of a
    /// DaemonSet
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::CloudInit)]
    pub format: Format,
    /// How long its token lives, from 5m to 24h
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub ttl: Option<Duration>,
    /// The image of the node agent, for a DaemonSet
    #[arg(long, required_if_eq("format", "daemon-set"))]
    pub image: Option<String>,
    /// The namespace of the DaemonSet
    #[arg(long, value_name = "NAME", default_value = "plexd")]
    pub namespace: String,
    /// The host name of the machine [default: the handle]
    #[arg(long, value_name = "NAME")]
    pub machine: Option<String>,
    /// How the machine reaches the server [default: the public URL of the server]
    #[arg(long, value_name = "URL")]
    pub api_url: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    CloudInit,
    Env,
    DaemonSet,
}

/// Issues a token and prints the document that holds it.
pub(crate) async fn show(
    session: &mut Session<'_>,
    arguments: &EnrolmentArguments,
) -> Result<(), Error> {
    let ttl_seconds = arguments.ttl.map(|ttl| whole_seconds("--ttl", ttl)).transpose()?;
    let resource = find(&session.client, &arguments.target, Gone::Refused).await?;
    let body = IssueToken { kind: "node".to_owned(), ttl_seconds };
    let path = ["resources", &resource.id, "tokens"];
    let issued: IssuedToken = session.client.post(&path, &body).await?;
    let failed = |reason: &str| Error::Unreadable {
        server: session.server.clone(),
        reason: format!("token {} cannot be written out: {reason}", issued.about.token_id),
    };
    let token = issued.token.as_deref().ok_or_else(|| failed("it was shown before"))?;
    let api_url = arguments.api_url.as_deref().or(issued.api_url.as_deref());
    let config = MachineConfig {
        api_url: api_url.unwrap_or(&session.server),
        project_id: &resource.project_id,
        resource_handle: &resource.handle,
        hostname: arguments.machine.as_deref().unwrap_or(&resource.handle),
        authorities: issued.authorities.as_deref(),
        token,
    };
    let rendered = match arguments.format {
        Format::CloudInit => (session.renderers.cloud_init)(&config),
        Format::Env => Ok(variables(&config)),
        Format::DaemonSet => (session.renderers.daemon_set)(&DaemonSet {
            api_url: config.api_url,
            project_id: config.project_id,
            resource_handle: config.resource_handle,
            hostname: config.hostname,
            namespace: &arguments.namespace,
            image: arguments.image.as_deref().unwrap_or_default(),
            by_environment: false,
            token,
        }),
    };
    let rendered = rendered.map_err(|reason| failed(&reason))?;
    session.terminal.say("This holds the token, which enrols one machine once.");
    session.terminal.print(rendered.trim_end());
    Ok(())
}

/// What plexd of generation B reads if it has no file.
fn variables(config: &MachineConfig<'_>) -> String {
    let pairs = [
        ("PLEXD_API", config.api_url),
        ("PLEXD_PROJECT_ID", config.project_id),
        ("PLEXD_RESOURCE_HANDLE", config.resource_handle),
        ("PLEXD_BOOTSTRAP_TOKEN", config.token),
    ];
    pairs.map(|(name, value)| format!("{name}={value}\n")).concat()
}
