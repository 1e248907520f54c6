//! `slipway generator …`: programs that submit stacks.

use std::time::Duration;

use clap::{Args, Subcommand};
use reqwest::Method;
use serde::Serialize;
use serde_json::Value;
use slipway_wire::fleet::{
    Agent, AgentGeneratorRegistration, AgentRegistrationBody, CreateGeneratorResponse, Generator,
    NewGenerator, Stack,
};

use super::delete::{self, KeepDeleteArguments};
use super::find::{FleetKind, FleetTarget, Within, find};
use super::tags::unless_there;
use crate::arguments::{DeletedListArguments, parse_duration, whole_seconds};
use crate::broker::target::Gone;
use crate::client::Listing;
use crate::complete;
use crate::error::Error;
use crate::kind::{Cells, Detail, Facts, Kind, Row};
use crate::output::{optional_time, or_dash, time};
use crate::session::Session;

#[derive(Debug, Clone, Subcommand)]
pub enum GeneratorCommand {
    /// Make a generator; the text of its key is shown this once
    Create {
        /// Its name, unique in its project
        name: String,
        /// The project that it belongs to (name or id); `default` if not given
        #[arg(long, add = complete::names("project"))]
        project: Option<String>,
        /// What it is, for people
        #[arg(long)]
        description: Option<String>,
        /// Take Secrets with values in its objects
        #[arg(long)]
        accept_secrets: bool,
        /// How long what is deleted of it can be restored, such as 7d; as the settings of
        /// deletions say if not given
        #[arg(long, value_name = "TIME", value_parser = parse_duration)]
        retention: Option<Duration>,
    },
    /// List generators
    List(FleetListArguments),
    /// Show one generator, its stacks and the agents that are registered with it
    Get(FleetTarget),
    /// Change the name, the description, or whether Secrets are taken
    Update {
        #[command(flatten)]
        target: FleetTarget,
        /// Its new name
        #[arg(long, value_name = "NAME")]
        rename: Option<String>,
        /// Its new description; an empty one takes it away
        #[arg(long)]
        description: Option<String>,
        /// Whether its objects may have Secrets with values
        #[arg(long, value_name = "true|false")]
        accept_secrets: Option<bool>,
        /// How long what is deleted of it can be restored; 0s leaves it to the settings of
        /// deletions again
        #[arg(long, value_name = "TIME", value_parser = parse_duration)]
        retention: Option<Duration>,
    },
    /// Delete a generator with its stacks and templates; agents remove what they have of them
    Delete(Box<KeepDeleteArguments>),
    /// Replace the key of a generator; the new text is shown this once, the old one ends at once
    RotateKey(FleetTarget),
    /// Let an agent take stacks of a generator
    Register(RegisterArguments),
    /// End that: the agent is told to remove what it has of the generator
    Unregister(RegisterArguments),
}

#[derive(Debug, Clone, Args)]
pub struct FleetListArguments {
    /// Only of this project (name or id)
    #[arg(long, add = complete::names("project"))]
    pub project: Option<String>,
    #[command(flatten)]
    pub list: DeletedListArguments,
}

impl FleetListArguments {
    /// The project of the context counts, if none is given.
    pub(crate) fn listing(self, session: &Session<'_>) -> Listing {
        let usual = session.client.project().map(str::to_owned);
        Listing::from(self.list).with("project", self.project.or(usual))
    }
}

#[derive(Debug, Clone, Args)]
pub struct RegisterArguments {
    /// The generator, by name or id
    #[arg(add = complete::names("generator"))]
    pub generator: String,
    /// The agent, by name, NAME@CLUSTER or id
    #[arg(add = complete::names("agent"))]
    pub agent: String,
    #[command(flatten)]
    pub within: Within,
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway generator create ci --description pipeline",
    "slipway generator list",
    "slipway generator list --project shop --show-deleted",
    "slipway generator get ci",
    "slipway generator update ci --accept-secrets true --retention 7d",
    "slipway generator delete ci --dry-run",
    "slipway generator delete ci --reason moved --yes",
    "slipway generator rotate-key ci",
    "slipway generator register ci edge",
    "slipway generator unregister ci edge@berlin",
];

impl Kind for Generator {
    const PATH: &'static str = "generators";
}

impl FleetKind for Generator {
    fn id(&self) -> &str {
        &self.id
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl Row for Generator {
    fn cells(&self) -> Cells {
        vec![
            ("NAME", self.name.clone()),
            ("AGE", self.created_at.clone()),
            ("LAST ACTIVE", or_dash(self.last_active_at.as_deref())),
            ("DELETED", or_dash(self.deleted_at.as_deref())),
            ("DESCRIPTION", or_dash(self.description.as_deref())),
        ]
    }

    fn wide(&self) -> Cells {
        vec![("ID", self.id.clone())]
    }
}

impl Detail for Generator {
    const NOUN: &'static str = "generator";

    fn facts(&self) -> Facts {
        vec![
            ("name", Some(self.name.clone())),
            ("id", Some(self.id.clone())),
            ("description", self.description.clone()),
            ("last active", optional_time(self.last_active_at.as_ref())),
            ("created", Some(time(&self.created_at))),
            ("deleted", optional_time(self.deleted_at.as_ref())),
        ]
    }
}

/// A generator with what belongs to it.
#[derive(Debug, Serialize)]
struct GeneratorShown {
    #[serde(flatten)]
    generator: Generator,
    stacks: Vec<String>,
    agents: Vec<String>,
}

impl Detail for GeneratorShown {
    const NOUN: &'static str = "generator";

    fn facts(&self) -> Facts {
        let mut facts = self.generator.facts();
        facts.push(("stacks", Some(self.stacks.join(", "))));
        facts.push(("agents", Some(self.agents.join(", "))));
        facts
    }
}

impl Detail for CreateGeneratorResponse {
    const NOUN: &'static str = "generator";

    fn facts(&self) -> Facts {
        self.generator.facts()
    }

    fn note(&self) -> Option<String> {
        Some(shown_once(&self.pak))
    }
}

pub(crate) fn shown_once(key: &str) -> String {
    format!("This key is shown once:\n\n    {key}")
}

pub(crate) async fn run(session: &mut Session<'_>, command: GeneratorCommand) -> Result<(), Error> {
    match command {
        GeneratorCommand::Create { name, project, description, accept_secrets, retention } => {
            let project = project.or_else(|| session.client.project().map(str::to_owned));
            let accepts_secrets = accept_secrets.then_some(true);
            let retention_seconds = retention.map(seconds).transpose()?;
            let body =
                NewGenerator { description, name, project, accepts_secrets, retention_seconds };
            session.post::<CreateGeneratorResponse>(&[Generator::PATH], &body).await
        }
        GeneratorCommand::List(arguments) => {
            let wanted = arguments.listing(session);
            session.list::<Generator>(wanted).await
        }
        GeneratorCommand::Get(target) => get(session, target).await,
        GeneratorCommand::Update { target, rename, description, accept_secrets, retention } => {
            let retention = retention.map(seconds).transpose()?;
            let kept = retention.map(|kept| if kept == 0 { Value::Null } else { kept.into() });
            let found: Generator = target.find(&session.client).await?;
            let body = body_of([
                ("name", rename.map(Into::into)),
                ("description", description.map(or_null)),
                ("accepts_secrets", accept_secrets.map(Into::into)),
                ("retention_seconds", kept),
            ]);
            if body.as_object().is_some_and(serde_json::Map::is_empty) {
                let problem = "nothing to change: give --rename, --description, --accept-secrets or --retention";
                return Err(Error::Usage(problem.to_owned()));
            }
            let changed: Generator =
                session.client.put(&[Generator::PATH, &found.id], &body).await?;
            session.show_details(&changed);
            Ok(())
        }
        GeneratorCommand::Delete(arguments) => {
            delete::keeping::<Generator>(session, *arguments).await
        }
        GeneratorCommand::RotateKey(target) => {
            let found: Generator = target.find(&session.client).await?;
            let path = [Generator::PATH, &found.id, "rotate-pak"];
            let made: CreateGeneratorResponse = session.client.invoke(&path).await?;
            session.show_details(&made);
            Ok(())
        }
        GeneratorCommand::Register(arguments) => {
            let (path, body) = registration(session, &arguments).await?;
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            let made = session.client.post::<AgentGeneratorRegistration>(&path, &body).await;
            unless_there(session, made, "the registration")
        }
        GeneratorCommand::Unregister(arguments) => {
            let (path, body) = registration(session, &arguments).await?;
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            session.client.silent_json(Method::DELETE, &path, &body).await
        }
    }
}

fn seconds(retention: Duration) -> Result<u64, Error> {
    whole_seconds("--retention", retention)
}

/// The fields that have a value.
pub(crate) fn body_of<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(fields.collect())
}

/// An empty text takes a field away.
pub(crate) fn or_null(text: String) -> Value {
    if text.is_empty() { Value::Null } else { Value::String(text) }
}

async fn get(session: &mut Session<'_>, target: FleetTarget) -> Result<(), Error> {
    let generator: Generator = target.find(&session.client).await?;
    let of = || Listing::default().with("generator_id", Some(generator.id.as_str()));
    let stacks = session.client.list::<Stack>(&[Stack::PATH], of()).await?.items;
    let agents = session.client.list::<Agent>(&[Agent::PATH], of()).await?.items;
    let stacks = stacks.into_iter().map(|stack| stack.name).collect();
    let agents = agents.into_iter().map(|agent| format!("{}@{}", agent.name, agent.cluster_name));
    let agents = agents.collect();
    session.show_details(&GeneratorShown { generator, stacks, agents });
    Ok(())
}

async fn registration(
    session: &Session<'_>,
    RegisterArguments { generator, agent, within }: &RegisterArguments,
) -> Result<([String; 3], AgentRegistrationBody), Error> {
    let client = &session.client;
    let generator: Generator = find(client, generator, within, Gone::Refused).await?;
    let agent: Agent = find(client, agent, within, Gone::Refused).await?;
    let path = [Generator::PATH.to_owned(), generator.id, "register".to_owned()];
    Ok((path, AgentRegistrationBody { agent_id: Some(agent.id) }))
}
