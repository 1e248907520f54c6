//! `slipway login`: a context with a key that its server accepts.

use clap::Args;
use reqwest::Url;
use slipway_core::secret::Secret;
use slipway_wire::access::ApiKey;

use super::choose::DEFAULT_SERVER;
use super::commands::{View, check_name, insert};
use super::file::{Context, Contexts};
use crate::arguments::ClientOptions;
use crate::client::Client;
use crate::error::Error;
use crate::session::show_details_on;
use crate::suggest;
use crate::terminal::{Terminal, clean};

#[derive(Debug, Clone, Args)]
pub struct LoginArguments {
    /// The name of the context; that of --context or the host of the server if not given
    #[arg(long)]
    pub name: Option<String>,
    /// The project of resources if a command names none
    #[arg(long)]
    pub project: Option<String>,
    /// Replace a context of this name, also one for another server
    #[arg(long)]
    pub replace: bool,
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway login --server https://slipway.example --name prod",
    "slipway login --context prod",
    "slipway login --server https://slipway.example --ca-file ca.pem --key-file ci.key",
];

/// Asks for the key, asks the server about it, and only then keeps it.
pub(crate) async fn run(
    arguments: LoginArguments,
    options: &ClientOptions,
    terminal: &mut Terminal,
) -> Result<(), Error> {
    let file = options.contexts_file()?;
    let known = file.read()?;
    let chosen = options.context.clone().filter(|name| !name.is_empty());
    if let Some(name) = &chosen {
        known.get(name)?;
    }
    let named = arguments.name.or(chosen);
    // Logging in again needs only the name of the context.
    let before = named.as_ref().and_then(|name| known.contexts.get(name)).cloned();
    let server = options.server.clone().or_else(|| before.as_ref().map(|one| one.server.clone()));
    let server = server.unwrap_or_else(|| DEFAULT_SERVER.to_owned());
    let before = before.filter(|before| before.server == server);
    let ca_file = match options.absolute_ca_file()? {
        Some(path) => Some(path),
        None => before.as_ref().and_then(|before| before.ca_file.clone()),
    };
    let name = match named {
        Some(name) => name,
        None => host_of(&server)?,
    };
    check_name(&name)?;
    // Before anybody types a key for nothing.
    let replace = arguments.replace || is_about(&known, &name, &server);
    insert(&mut known.clone(), &name, bare(&server), replace)?;

    let given = options.secret_key()?;
    let secret = match given {
        Some(given) => given,
        None => terminal.secret(&format!("API key for {}:", clean(&server)))?,
    };
    if !secret.expose().bytes().all(|byte| byte.is_ascii_graphic()) {
        let problem = "a key has letters, digits and underscores only; nothing was sent";
        return Err(Error::Usage(problem.to_owned()));
    }
    let client = Client::new(&server, Some(secret.clone()), ca_file.as_deref())?;
    let own: ApiKey = client.get(&["whoami"]).await?;
    if let Some(project) = &arguments.project
        && let Err(error) = client.get::<serde_json::Value>(&["projects", project]).await
    {
        return Err(suggest::reference(&client, error, project).await);
    }
    let project = arguments.project.or_else(|| before.as_ref()?.project.clone()).or(own.project);

    let data_dir = before.and_then(|before| before.data_dir);
    let context = Context { server, key: Some(secret), ca_file, project, data_dir };
    let path = file.path().display().to_string();
    let view = file.change(|all| {
        let replace = arguments.replace || is_about(all, &name, &context.server);
        insert(all, &name, context.clone(), replace)?;
        all.current = Some(name.clone());
        Ok(View::of(&name, &context, true, path))
    })?;
    terminal.say(&format!("logged in as key `{}`, role {}", clean(&own.name), clean(&own.role)));
    show_details_on(terminal, options.output, None, &view);
    Ok(())
}

/// Whether the context of this name has this server already.
fn is_about(all: &Contexts, name: &str, server: &str) -> bool {
    all.contexts.get(name).is_some_and(|context| context.server == server)
}

fn bare(server: &str) -> Context {
    Context {
        server: server.to_owned(),
        key: None::<Secret>,
        ca_file: None,
        project: None,
        data_dir: None,
    }
}

/// `slipway.example`, with its port if it has one.
fn host_of(server: &str) -> Result<String, Error> {
    let url = Url::parse(server).ok();
    let host = url.as_ref().and_then(|url| Some((url.host_str()?, url.port())));
    match host {
        Some((host, None)) => Ok(host.to_owned()),
        Some((host, Some(port))) => {
            Ok(format!("{}-{port}", host.trim_matches(['[', ']']).replace(':', "-")))
        }
        None => {
            Err(Error::Usage(format!("--server `{server}` is no URL, such as {DEFAULT_SERVER}")))
        }
    }
}
