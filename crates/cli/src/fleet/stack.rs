//! `slipway stack …`: what a generator wants on clusters.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use reqwest::Method;
use serde::Serialize;
use serde_json::json;
use slipway_wire::fleet::{
    CreateDeploymentObjectRequest, DeploymentObject, Generator, NewStack, Stack,
    StackHealthResponse, TemplateInstantiationRequest,
};

use super::delete::{self, KeepDeleteArguments};
use super::find::{FleetKind, FleetTarget, Within, find, name_of, names};
use super::generator::{FleetListArguments, body_of, or_null};
use super::manifests;
use super::parameters::TemplateParameters;
use super::strategy::{self, StrategyArguments};
use super::tags::{self, AnnotateArguments, LabelArguments, Tagged, Tags};
use super::template;
use crate::broker::target::Gone;
use crate::complete;
use crate::error::Error;
use crate::kind::{Cells, Detail, Facts, Kind, Row};
use crate::output::{optional_time, or_dash, time};
use crate::session::Session;

#[derive(Debug, Clone, Subcommand)]
pub enum StackCommand {
    /// Make a stack, which has no object yet
    Create {
        /// Its name, unique in its project
        name: String,
        /// The generator that owns it, by name or id
        #[arg(long, add = complete::names("generator"))]
        generator: String,
        /// What it is, for people
        #[arg(long)]
        description: Option<String>,
        #[command(flatten)]
        within: Within,
    },
    /// List stacks
    List {
        #[command(flatten)]
        list: FleetListArguments,
        /// Only of this generator, by name or id
        #[arg(long, add = complete::names("generator"))]
        generator: Option<String>,
    },
    /// Show one stack, its labels and annotations
    Get(FleetTarget),
    /// Change the name or the description of a stack; agents keep what they have
    Update {
        #[command(flatten)]
        target: FleetTarget,
        /// Its new name
        #[arg(long, value_name = "NAME")]
        rename: Option<String>,
        /// Its new description; an empty one takes it away
        #[arg(long, required_unless_present = "rename")]
        description: Option<String>,
    },
    /// Delete a stack; every agent that has it is told to remove it
    Delete(Box<KeepDeleteArguments>),
    /// Submit an object: from now on agents are offered it
    Submit(SubmitArguments),
    /// List the objects of a stack, newest last; their content is not shown
    Objects(FleetTarget),
    /// Withdraw an object; if it was the newest, the content before it becomes a new object
    Withdraw {
        #[command(flatten)]
        target: FleetTarget,
        /// Its number, as `slipway stack objects` shows it
        #[arg(value_name = "NUMBER")]
        number: i64,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Show or change the labels of a stack
    Label(LabelArguments),
    /// Show or change the annotations of a stack
    Annotate(AnnotateArguments),
    /// Submit the content of an older object again, as a new one
    Rollback {
        #[command(flatten)]
        target: FleetTarget,
        /// Its number, as `slipway stack objects` shows it; that before the newest if not given
        #[arg(long = "to", value_name = "NUMBER")]
        number: Option<i64>,
    },
    /// Show, set or remove how new objects are rolled out to agents
    Strategy(StrategyArguments),
    /// Show how healthy a stack is on its clusters
    Health(FleetTarget),
}

#[derive(Debug, Clone, Args)]
pub struct SubmitArguments {
    #[command(flatten)]
    pub target: FleetTarget,
    /// A file with manifests, a folder of them, or - for the input
    #[arg(short, long, value_name = "FILE", required_unless_present = "template")]
    pub file: Option<PathBuf>,
    /// Make the content from this template instead: its name, NAME@VERSION or id
    #[arg(long, conflicts_with = "file", add = complete::names("template"))]
    pub template: Option<String>,
    #[command(flatten)]
    pub parameters: TemplateParameters,
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway stack create web --generator ci",
    "slipway stack list",
    "slipway stack list --generator ci --show-deleted",
    "slipway stack get web",
    "slipway stack update web --rename shop",
    "slipway stack delete web --dry-run",
    "slipway stack delete web --reason closed --yes",
    "slipway stack delete web --keep --reason moved --yes",
    "slipway stack submit web -f manifests",
    "slipway stack submit web -f web.yaml",
    "slipway stack submit web --template site --param replicas=3",
    "slipway stack objects web",
    "slipway stack withdraw web 1767225600000000 --yes",
    "slipway stack label web --add prod",
    "slipway stack annotate web --add region=eu",
    "slipway stack rollback web",
    "slipway stack rollback web --to 1767225600000000",
    "slipway stack strategy web --wave test --wave prod --parallel 2",
    "slipway stack strategy web --remove",
    "slipway stack health web",
];

impl Kind for Stack {
    const PATH: &'static str = "stacks";
}

impl FleetKind for Stack {
    fn id(&self) -> &str {
        &self.id
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl Tagged for Stack {
    fn annotation_body(&self, key: &str, value: &str) -> serde_json::Value {
        json!({ "stack_id": self.id, "key": key, "value": value })
    }
}

impl Row for Stack {
    fn cells(&self) -> Cells {
        vec![
            ("NAME", self.name.clone()),
            ("AGE", self.created_at.clone()),
            ("DELETED", or_dash(self.deleted_at.as_deref())),
            ("DESCRIPTION", or_dash(self.description.as_deref())),
        ]
    }

    fn wide(&self) -> Cells {
        vec![("GENERATOR ID", self.generator_id.clone()), ("ID", self.id.clone())]
    }
}

impl Detail for Stack {
    const NOUN: &'static str = "stack";

    fn facts(&self) -> Facts {
        vec![
            ("name", Some(self.name.clone())),
            ("id", Some(self.id.clone())),
            ("description", self.description.clone()),
            ("created", Some(time(&self.created_at))),
            ("deleted", optional_time(self.deleted_at.as_ref())),
        ]
    }
}

/// A stack with the name of its generator.
#[derive(Debug, Serialize)]
struct StackRow {
    #[serde(flatten)]
    stack: Stack,
    generator: String,
}

impl Row for StackRow {
    fn cells(&self) -> Cells {
        let mut cells = self.stack.cells();
        cells.insert(1, ("GENERATOR", self.generator.clone()));
        cells
    }

    fn wide(&self) -> Cells {
        self.stack.wide()
    }
}

#[derive(Debug, Serialize)]
struct StackShown {
    #[serde(flatten)]
    stack: Stack,
    generator: String,
    #[serde(flatten)]
    tags: Tags,
}

impl Detail for StackShown {
    const NOUN: &'static str = "stack";

    fn facts(&self) -> Facts {
        let mut facts = self.stack.facts();
        facts.insert(1, ("generator", Some(self.generator.clone())));
        facts.extend(self.tags.facts());
        facts
    }
}

/// An object without its content, which may be confidential.
#[derive(Debug, Serialize)]
struct ObjectShown {
    sequence_id: i64,
    /// `content` or `marker`.
    kind: &'static str,
    bytes: usize,
    yaml_checksum: String,
    submitted_at: String,
    id: String,
}

impl From<DeploymentObject> for ObjectShown {
    fn from(object: DeploymentObject) -> Self {
        Self {
            sequence_id: object.sequence_id,
            kind: if object.is_deletion_marker { "marker" } else { "content" },
            bytes: object.yaml_content.len(),
            yaml_checksum: object.yaml_checksum,
            submitted_at: object.submitted_at,
            id: object.id,
        }
    }
}

/// The digits of a checksum that tell objects apart.
const SHORT_CHECKSUM: usize = 12;

impl Row for ObjectShown {
    fn cells(&self) -> Cells {
        let checksum = self.yaml_checksum.chars().take(SHORT_CHECKSUM).collect();
        vec![
            ("NUMBER", self.sequence_id.to_string()),
            ("KIND", self.kind.to_owned()),
            ("BYTES", self.bytes.to_string()),
            ("CHECKSUM", checksum),
            ("AGE", self.submitted_at.clone()),
        ]
    }

    fn wide(&self) -> Cells {
        vec![("SHA-256", self.yaml_checksum.clone()), ("ID", self.id.clone())]
    }
}

impl Detail for ObjectShown {
    const NOUN: &'static str = "object";

    fn facts(&self) -> Facts {
        vec![
            ("number", Some(self.sequence_id.to_string())),
            ("kind", Some(self.kind.to_owned())),
            ("bytes", Some(self.bytes.to_string())),
            ("sha-256", Some(self.yaml_checksum.clone())),
            ("submitted", Some(time(&self.submitted_at))),
            ("id", Some(self.id.clone())),
        ]
    }
}

/// The health of a stack, with the numbers of its objects.
#[derive(Debug, Serialize)]
struct HealthShown {
    #[serde(flatten)]
    health: StackHealthResponse,
    #[serde(skip)]
    numbers: BTreeMap<String, String>,
}

impl Detail for HealthShown {
    fn facts(&self) -> Facts {
        let mut facts = vec![("health", Some(self.health.overall_status.clone()))];
        let lines: Vec<_> = self
            .health
            .deployment_objects
            .iter()
            .map(|one| {
                let counts = [
                    (one.healthy_agents, "healthy"),
                    (one.degraded_agents, "degraded"),
                    (one.failing_agents, "failing"),
                ];
                let counts = counts.iter().filter(|(count, _)| *count > 0);
                let counts: Vec<_> =
                    counts.map(|(count, word)| format!("{count} {word}")).collect();
                let number = name_of(&self.numbers, &one.id);
                format!("{number}: {} ({})", one.status, counts.join(", "))
            })
            .collect();
        facts.push(("objects", Some(lines.join("\n"))));
        facts
    }
}

pub(crate) async fn run(session: &mut Session<'_>, command: StackCommand) -> Result<(), Error> {
    match command {
        StackCommand::Create { name, generator, description, within } => {
            let client = &session.client;
            let owner: Generator = find(client, &generator, &within, Gone::Refused).await?;
            session.create::<Stack>(&NewStack { description, generator_id: owner.id, name }).await
        }
        StackCommand::List { list, generator } => self::list(session, list, generator).await,
        StackCommand::Get(target) => get(session, target).await,
        StackCommand::Update { target, rename, description } => {
            let found: Stack = target.find(&session.client).await?;
            let body = body_of([
                ("name", rename.map(Into::into)),
                ("description", description.map(or_null)),
            ]);
            let changed: Stack = session.client.put(&[Stack::PATH, &found.id], &body).await?;
            session.show_details(&changed);
            Ok(())
        }
        StackCommand::Delete(arguments) => delete::keeping::<Stack>(session, *arguments).await,
        StackCommand::Submit(arguments) => submit(session, arguments).await,
        StackCommand::Objects(target) => {
            let found: Stack = target.find(&session.client).await?;
            let objects: Vec<_> =
                objects(session, &found).await?.into_iter().map(ObjectShown::from).collect();
            session.show_all(&objects, "objects");
            Ok(())
        }
        StackCommand::Withdraw { target, number, yes } => {
            session.terminal.can_agree(yes)?;
            let found: Stack = target.find(&session.client).await?;
            let objects = objects(session, &found).await?;
            let object = objects.iter().find(|object| object.sequence_id == number);
            let object = object.ok_or_else(|| no_object(&target.name, number))?;
            let is_newest = objects.last().is_some_and(|newest| newest.id == object.id);
            let question = match is_newest {
                true => format!(
                    "Withdraw the newest object of stack `{}`? The content before it is deployed again, or everything is removed if there is none.",
                    found.name
                ),
                false => format!("Withdraw object {number} of stack `{}`?", found.name),
            };
            session.terminal.agree(yes, &question)?;
            session.client.silent(Method::DELETE, &["deployment-objects", &object.id]).await
        }
        StackCommand::Label(arguments) => tags::label::<Stack>(session, arguments).await,
        StackCommand::Annotate(arguments) => tags::annotate::<Stack>(session, arguments).await,
        StackCommand::Rollback { target, number } => rollback(session, target, number).await,
        StackCommand::Strategy(arguments) => strategy::run(session, arguments).await,
        StackCommand::Health(target) => {
            let found: Stack = target.find(&session.client).await?;
            let health = session.client.get(&[Stack::PATH, &found.id, "health"]).await?;
            let numbers = objects(session, &found).await?.into_iter();
            let numbers =
                numbers.map(|object| (object.id, object.sequence_id.to_string())).collect();
            session.show_details(&HealthShown { health, numbers });
            Ok(())
        }
    }
}

async fn list(
    session: &mut Session<'_>,
    list: FleetListArguments,
    generator: Option<String>,
) -> Result<(), Error> {
    let within = Within { project: list.project.clone() };
    let is_watched = list.list.watch;
    let mut wanted = list.listing(session);
    if let Some(generator) = generator {
        let owner: Generator = find(&session.client, &generator, &within, Gone::Allowed).await?;
        wanted = wanted.with("generator_id", Some(owner.id));
    }
    if is_watched {
        return session.list::<Stack>(wanted).await;
    }
    let stacks = session.client.list::<Stack>(&[Stack::PATH], wanted).await?.items;
    let names = names(&session.client, Generator::PATH).await;
    let row = |stack: Stack| StackRow { generator: name_of(&names, &stack.generator_id), stack };
    let rows: Vec<_> = stacks.into_iter().map(row).collect();
    session.show_all(&rows, Stack::PATH);
    Ok(())
}

async fn get(session: &mut Session<'_>, target: FleetTarget) -> Result<(), Error> {
    let client = &session.client;
    let stack: Stack = target.find(client).await?;
    let tags = Tags::read(client, Stack::PATH, &stack.id).await?;
    let owner = client.get::<Generator>(&[Generator::PATH, &stack.generator_id]).await;
    let generator = owner.map_or_else(|_| stack.generator_id.clone(), |owner| owner.name);
    session.show_details(&StackShown { stack, generator, tags });
    Ok(())
}

async fn submit(session: &mut Session<'_>, arguments: SubmitArguments) -> Result<(), Error> {
    let SubmitArguments { target, file, template, parameters } = arguments;
    // What is wrong with the files is said before anything is asked.
    let content = file.map(|path| manifests::read(&path).map_err(Error::Usage)).transpose()?;
    let parameters = parameters.value()?;
    if content.is_some() && parameters.as_object().is_some_and(|all| !all.is_empty()) {
        return Err(Error::Usage("--param and --params are for --template".to_owned()));
    }
    let found: Stack = target.find(&session.client).await?;
    let path = [Stack::PATH, &found.id, "deployment-objects"];
    let made: DeploymentObject = match (content, template) {
        (Some(yaml_content), _) => {
            let body = CreateDeploymentObjectRequest { is_deletion_marker: false, yaml_content };
            session.client.post(&path, &body).await?
        }
        (None, template) => {
            let template = template.unwrap_or_default();
            let template = template::find(session, &template, &target.within).await?;
            let body = TemplateInstantiationRequest { parameters, template_id: template.id };
            session.client.post(&[path[0], path[1], path[2], "from-template"], &body).await?
        }
    };
    session.show_details(&ObjectShown::from(made));
    Ok(())
}

/// In the order of their numbers.
async fn objects(session: &Session<'_>, stack: &Stack) -> Result<Vec<DeploymentObject>, Error> {
    let path = [Stack::PATH, &stack.id, "deployment-objects"];
    let mut objects: Vec<DeploymentObject> = session.client.get(&path).await?;
    objects.sort_by_key(|object| object.sequence_id);
    Ok(objects)
}

fn no_object(stack: &str, number: i64) -> Error {
    Error::NotFound(format!(
        "stack `{stack}` has no object {number}; `slipway stack objects {stack}` lists them"
    ))
}

async fn rollback(
    session: &mut Session<'_>,
    target: FleetTarget,
    number: Option<i64>,
) -> Result<(), Error> {
    let found: Stack = target.find(&session.client).await?;
    let number = match number {
        Some(number) => number,
        None => {
            let objects = objects(session, &found).await?;
            before(&objects).ok_or_else(|| {
                Error::NotFound(format!(
                    "stack `{}` has no other content to go back to",
                    found.name
                ))
            })?
        }
    };
    let path = [Stack::PATH, &found.id, "rollback"];
    let made: DeploymentObject =
        session.client.post(&path, &json!({ "sequence_id": number })).await?;
    session.show_details(&ObjectShown::from(made));
    Ok(())
}

/// The newest content that differs from what the stack has now.
fn before(objects: &[DeploymentObject]) -> Option<i64> {
    let (newest, earlier) = objects.split_last()?;
    let other = |object: &&DeploymentObject| {
        !object.is_deletion_marker && object.yaml_checksum != newest.yaml_checksum
    };
    earlier.iter().rev().find(other).map(|object| object.sequence_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(sequence_id: i64, checksum: &str, is_deletion_marker: bool) -> DeploymentObject {
        DeploymentObject {
            created_at: String::new(),
            deleted_at: None,
            id: sequence_id.to_string(),
            is_deletion_marker,
            keep: false,
            per_agent: false,
            sequence_id,
            stack_id: String::new(),
            submitted_at: String::new(),
            updated_at: String::new(),
            yaml_checksum: checksum.to_owned(),
            yaml_content: String::new(),
        }
    }

    #[test]
    fn the_way_back_leads_to_other_content() {
        assert_eq!(before(&[]), None);
        assert_eq!(before(&[object(1, "a", false)]), None);
        let twice = [object(1, "a", false), object(2, "b", false), object(3, "b", false)];
        assert_eq!(before(&twice), Some(1));
        let marked = [object(1, "a", false), object(2, "m", true)];
        assert_eq!(before(&marked), Some(1), "what a marker took away");
        let behind = [object(1, "a", false), object(2, "m", true), object(3, "b", false)];
        assert_eq!(before(&behind), Some(1), "a marker is no content");
    }
}
