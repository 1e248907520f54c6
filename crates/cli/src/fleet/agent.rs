//! `slipway agent …`: the rows of the programs that bring stacks to clusters. The binary adds
//! the commands that run such a program.

use clap::Subcommand;
use serde::Serialize;
use serde_json::{Value, json};
use slipway_wire::fleet::{
    Agent, AgentEvent, AgentKey, ConfirmPruneRequest, CreateAgentRequest, CreateAgentResponse,
    Generator, PruneConfirmation,
};

use super::delete::{self, FleetDeleteArguments};
use super::find::{FleetKind, FleetTarget, Within, find, name_of, names};
use super::generator::{FleetListArguments, shown_once};
use super::tags::{self, AnnotateArguments, LabelArguments, Tagged, Tags};
use crate::broker::target::Gone;
use crate::complete;
use crate::error::Error;
use crate::kind::{Cells, Detail, Facts, Kind, Row};
use crate::output::{optional_time, or_dash, time, yes_no};
use crate::session::Session;

#[derive(Debug, Clone, Subcommand)]
pub enum AgentCommand {
    /// Make an agent, which acts once it is activated; the text of its key is shown this once
    Create {
        /// Its name, unique with the name of its cluster in its project
        name: String,
        /// The name of the cluster that it runs in
        #[arg(long)]
        cluster: String,
        /// Register it with this generator, by name or id; repeat it for several
        #[arg(long = "generator", value_name = "GENERATOR", add = complete::names("generator"))]
        generators: Vec<String>,
        /// Activate it at once
        #[arg(long)]
        activate: bool,
        #[command(flatten)]
        within: Within,
    },
    /// List agents, with their last heartbeats
    List(FleetListArguments),
    /// Show one agent: its registrations, targets, labels and annotations
    Get(FleetTarget),
    /// Let an agent carry out what it is offered
    Activate(FleetTarget),
    /// Let an agent rest: it changes nothing until it is activated again
    Deactivate(FleetTarget),
    /// Delete an agent: its key is refused, and what it holds becomes leak records
    Delete(Box<FleetDeleteArguments>),
    /// Replace the key of an agent; the new text is shown this once, the old one ends at once
    RotateKey(FleetTarget),
    /// Show or change the labels of an agent
    Label(LabelArguments),
    /// Show or change the annotations of an agent
    Annotate(AnnotateArguments),
    /// List what an agent reported, newest first
    Events(FleetTarget),
    /// Let an agent carry out a removal that it holds back because it is large
    PruneConfirm {
        #[command(flatten)]
        target: FleetTarget,
        /// Only this removal: the digest that the agent gave; the last one if not given
        #[arg(long)]
        digest: Option<String>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway agent create edge --cluster berlin --generator ci --activate",
    "slipway agent list",
    "slipway agent list --project shop -o wide",
    "slipway agent get edge",
    "slipway agent get edge@berlin -o yaml",
    "slipway agent activate edge",
    "slipway agent deactivate edge",
    "slipway agent delete edge --dry-run",
    "slipway agent delete edge --reason retired --yes",
    "slipway agent rotate-key edge",
    "slipway agent label edge --add prod --remove test",
    "slipway agent annotate edge --add region=eu",
    "slipway agent events edge",
    "slipway agent prune-confirm edge --yes",
];

impl Kind for Agent {
    const PATH: &'static str = "agents";
}

impl FleetKind for Agent {
    fn id(&self) -> &str {
        &self.id
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn qualifier(&self) -> Option<String> {
        Some(self.cluster_name.clone())
    }
}

impl Tagged for Agent {
    fn label_body(&self, label: &str) -> Value {
        json!({ "agent_id": self.id, "label": label })
    }

    fn annotation_body(&self, key: &str, value: &str) -> Value {
        json!({ "agent_id": self.id, "key": key, "value": value })
    }
}

impl Row for Agent {
    fn cells(&self) -> Cells {
        vec![
            ("NAME", self.name.clone()),
            ("CLUSTER", self.cluster_name.clone()),
            ("STATUS", self.status.clone()),
            ("HEARTBEAT", or_dash(self.last_heartbeat.as_deref())),
            ("API SERVER", reachable(self)),
            ("AGE", self.created_at.clone()),
            ("DELETED", or_dash(self.deleted_at.as_deref())),
        ]
    }

    fn wide(&self) -> Cells {
        let latency = self.k8s_api_latency_ms.map(|latency| latency.to_string());
        vec![("LATENCY MS", or_dash(latency.as_deref())), ("ID", self.id.clone())]
    }
}

/// Whether the agent reaches the API server of its cluster.
fn reachable(agent: &Agent) -> String {
    match agent.k8s_reachable {
        Some(true) => "reached",
        Some(false) => "not reached",
        None => "-",
    }
    .to_owned()
}

impl Detail for Agent {
    const NOUN: &'static str = "agent";

    fn facts(&self) -> Facts {
        let latency = self.k8s_api_latency_ms.map(|latency| format!(" in {latency} ms"));
        let reached = self
            .k8s_reachable
            .map(|reached| format!("{}{}", yes_no(reached), latency.unwrap_or_default()));
        vec![
            ("name", Some(self.name.clone())),
            ("cluster", Some(self.cluster_name.clone())),
            ("id", Some(self.id.clone())),
            ("status", Some(self.status.clone())),
            ("last heartbeat", optional_time(self.last_heartbeat.as_ref())),
            ("reaches its API server", reached),
            ("created", Some(time(&self.created_at))),
            ("deleted", optional_time(self.deleted_at.as_ref())),
        ]
    }
}

/// An agent with what hangs on it.
#[derive(Debug, Serialize)]
struct AgentShown {
    #[serde(flatten)]
    agent: Agent,
    generators: Vec<String>,
    targets: Vec<String>,
    #[serde(flatten)]
    tags: Tags,
}

impl Detail for AgentShown {
    const NOUN: &'static str = "agent";

    fn facts(&self) -> Facts {
        let mut facts = self.agent.facts();
        facts.push(("generators", Some(self.generators.join(", "))));
        facts.push(("targets", Some(self.targets.join(", "))));
        facts.extend(self.tags.facts());
        facts
    }
}

impl Detail for CreateAgentResponse {
    const NOUN: &'static str = "agent";

    fn facts(&self) -> Facts {
        self.agent.facts()
    }

    fn note(&self) -> Option<String> {
        Some(shown_once(&self.initial_pak))
    }
}

impl Detail for AgentKey {
    const NOUN: &'static str = "agent";

    fn facts(&self) -> Facts {
        self.agent.facts()
    }

    fn note(&self) -> Option<String> {
        Some(shown_once(&self.pak))
    }
}

impl Row for AgentEvent {
    fn cells(&self) -> Cells {
        vec![
            ("WHAT", self.event_type.clone()),
            ("STATUS", self.status.clone()),
            ("LAST", self.updated_at.clone()),
            ("ID", self.deployment_object_id.clone()),
            ("MESSAGE", or_dash(self.message.as_deref())),
        ]
    }

    fn wide(&self) -> Cells {
        vec![("FIRST", self.created_at.clone())]
    }
}

pub(crate) async fn run(session: &mut Session<'_>, command: AgentCommand) -> Result<(), Error> {
    match command {
        AgentCommand::Create { name, cluster, generators, activate, within } => {
            let mut ids = Vec::new();
            for generator in &generators {
                let client = &session.client;
                ids.push(find::<Generator>(client, generator, &within, Gone::Refused).await?.id);
            }
            let project = within.project.or_else(|| session.client.project().map(str::to_owned));
            let body =
                CreateAgentRequest { cluster_name: cluster, generator_ids: ids, name, project };
            let mut made: CreateAgentResponse = session.client.post(&[Agent::PATH], &body).await?;
            let activated = match activate {
                true => status(session, &made.agent.id, "ACTIVE").await.map(Some),
                false => Ok(None),
            };
            // Its key is shown whatever happened since.
            if let Ok(Some(agent)) = &activated {
                made.agent.clone_from(agent);
            }
            session.show_details(&made);
            activated.map(drop)
        }
        AgentCommand::List(arguments) => {
            let wanted = arguments.listing(session);
            session.list::<Agent>(wanted).await
        }
        AgentCommand::Get(target) => get(session, target).await,
        AgentCommand::Activate(target) => set_status(session, target, "ACTIVE").await,
        AgentCommand::Deactivate(target) => set_status(session, target, "INACTIVE").await,
        AgentCommand::Delete(arguments) => {
            delete::run::<Agent>(session, *arguments, Vec::new()).await
        }
        AgentCommand::RotateKey(target) => {
            let found: Agent = target.find(&session.client).await?;
            let made: AgentKey =
                session.client.invoke(&[Agent::PATH, &found.id, "rotate-pak"]).await?;
            session.show_details(&made);
            Ok(())
        }
        AgentCommand::Label(arguments) => tags::label::<Agent>(session, arguments).await,
        AgentCommand::Annotate(arguments) => tags::annotate::<Agent>(session, arguments).await,
        AgentCommand::Events(target) => {
            let found: Agent = target.find(&session.client).await?;
            let events: Vec<AgentEvent> =
                session.client.get(&[Agent::PATH, &found.id, "events"]).await?;
            session.show_all(&events, "events");
            Ok(())
        }
        AgentCommand::PruneConfirm { target, digest, yes } => {
            session.terminal.can_agree(yes)?;
            let found: Agent = target.find(&session.client).await?;
            let question = format!(
                "Let agent `{}` remove what it holds back? `slipway explain agent {}` says how much.",
                found.name, target.name
            );
            session.terminal.agree(yes, &question)?;
            let path = [Agent::PATH, &found.id, "prune-confirmations"];
            let body = ConfirmPruneRequest { digest };
            session.client.post::<PruneConfirmation>(&path, &body).await?;
            Ok(())
        }
    }
}

async fn status(session: &Session<'_>, id: &str, status: &str) -> Result<Agent, Error> {
    session.client.put(&[Agent::PATH, id], &json!({ "status": status })).await
}

async fn set_status(
    session: &mut Session<'_>,
    target: FleetTarget,
    wanted: &str,
) -> Result<(), Error> {
    let found: Agent = target.find(&session.client).await?;
    let changed = status(session, &found.id, wanted).await?;
    session.show_details(&changed);
    Ok(())
}

async fn get(session: &mut Session<'_>, target: FleetTarget) -> Result<(), Error> {
    let client = &session.client;
    let agent: Agent = target.find(client).await?;
    let ids = async |below: &str, field: &str| {
        let found: Vec<Value> = client.get(&[Agent::PATH, &agent.id, below]).await?;
        let ids = found.iter().filter_map(|one| Some(one[field].as_str()?.to_owned()));
        Ok::<Vec<String>, Error>(ids.collect())
    };
    let registered = ids("registrations", "generator_id").await?;
    let targeted = ids("targets", "stack_id").await?;
    let named = async |ids: Vec<String>, path: &str| match ids.is_empty() {
        true => Vec::new(),
        false => {
            let names = names(client, path).await;
            ids.iter().map(|id| name_of(&names, id)).collect()
        }
    };
    let generators = named(registered, "generators").await;
    let targets = named(targeted, "stacks").await;
    let tags = Tags::read(client, Agent::PATH, &agent.id).await?;
    session.show_details(&AgentShown { agent, generators, targets, tags });
    Ok(())
}
