//! `slipway template …`: texts that objects are made from.

use std::path::PathBuf;

use clap::Subcommand;
use serde::Serialize;
use serde_json::{Value, json};
use slipway_wire::fleet::{
    Agent, CreateTemplateRequest, Generator, RenderTemplate, StackTemplate, UpdateTemplateRequest,
};

use super::delete::{self, FleetDeleteArguments};
use super::find::{FleetKind, FleetTarget, Within, find as find_one, name_of, names};
use super::generator::FleetListArguments;
use super::manifests;
use super::parameters::TemplateParameters;
use super::tags::{self, AnnotateArguments, LabelArguments, Tagged};
use crate::arguments::Output;
use crate::broker::target::Gone;
use crate::complete;
use crate::error::Error;
use crate::kind::{Cells, Detail, Facts, Kind, Row};
use crate::output::{optional_time, or_dash, time};
use crate::session::Session;
use crate::terminal::clean;

#[derive(Debug, Clone, Subcommand)]
pub enum TemplateCommand {
    /// Make a template, its first version
    Create {
        /// Its name
        name: String,
        /// The file with its text, - for the input
        #[arg(short, long, value_name = "FILE")]
        file: PathBuf,
        /// The file with the JSON Schema of its parameters; any parameters if not given
        #[arg(long, value_name = "FILE")]
        schema: Option<PathBuf>,
        /// What it is, for people
        #[arg(long)]
        description: Option<String>,
        /// The generator that owns it, by name or id; of the whole project if not given
        #[arg(long, add = complete::names("generator"))]
        generator: Option<String>,
        #[command(flatten)]
        within: Within,
    },
    /// List templates, every version
    List(FleetListArguments),
    /// Show the newest version of a template, or NAME@VERSION
    Get(FleetTarget),
    /// Make the next version of a template
    Update {
        #[command(flatten)]
        target: FleetTarget,
        /// The file with its new text, - for the input; as before if not given
        #[arg(short, long, value_name = "FILE", required_unless_present = "schema")]
        file: Option<PathBuf>,
        /// The file with the JSON Schema of its parameters; as before if not given
        #[arg(long, value_name = "FILE")]
        schema: Option<PathBuf>,
        /// What it is, for people; as before if not given
        #[arg(long)]
        description: Option<String>,
    },
    /// Delete one version of a template, the newest or NAME@VERSION; what was made from it stays
    Delete(Box<FleetDeleteArguments>),
    /// Show what a template becomes with these parameters, and submit nothing
    Render {
        #[command(flatten)]
        target: FleetTarget,
        #[command(flatten)]
        parameters: TemplateParameters,
        /// For this agent (name, NAME@CLUSTER or id): what is not given comes from its labels
        /// and annotations, where the schema says so
        #[arg(long)]
        agent: Option<String>,
    },
    /// Show or change the labels of a template, which a stack must have too
    Label(LabelArguments),
    /// Show or change the annotations of a template, which a stack must have too
    Annotate(AnnotateArguments),
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway template create site -f site.yaml --schema site.schema.json",
    "slipway template list",
    "slipway template get site",
    "slipway template get site@1 -o yaml",
    "slipway template update site -f site.yaml",
    "slipway template delete site@1 --yes",
    "slipway template render site --param replicas=3",
    "slipway template render site --param replicas=3 --agent edge@berlin",
    "slipway template label site --add prod",
    "slipway template annotate site --add region=eu",
];

impl Kind for StackTemplate {
    const PATH: &'static str = "templates";
}

impl FleetKind for StackTemplate {
    fn id(&self) -> &str {
        &self.id
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn qualifier(&self) -> Option<String> {
        Some(self.version.to_string())
    }

    /// The newest version of each owner.
    fn meant(mut found: Vec<Self>) -> Vec<Self> {
        found.sort_by(|one, other| {
            (&one.generator_id, other.version).cmp(&(&other.generator_id, one.version))
        });
        found.dedup_by(|later, first| later.generator_id == first.generator_id);
        found
    }
}

impl Tagged for StackTemplate {
    fn annotation_body(&self, key: &str, value: &str) -> Value {
        json!({ "key": key, "value": value })
    }
}

impl Row for StackTemplate {
    fn cells(&self) -> Cells {
        vec![
            ("NAME", self.name.clone()),
            ("VERSION", self.version.to_string()),
            ("AGE", self.created_at.clone()),
            ("DELETED", or_dash(self.deleted_at.as_deref())),
            ("DESCRIPTION", or_dash(self.description.as_deref())),
        ]
    }

    fn wide(&self) -> Cells {
        vec![("CHECKSUM", self.checksum.clone()), ("ID", self.id.clone())]
    }
}

impl Detail for StackTemplate {
    const NOUN: &'static str = "template";

    fn facts(&self) -> Facts {
        vec![
            ("name", Some(self.name.clone())),
            ("version", Some(self.version.to_string())),
            ("id", Some(self.id.clone())),
            ("description", self.description.clone()),
            ("checksum", Some(self.checksum.clone())),
            ("created", Some(time(&self.created_at))),
            ("deleted", optional_time(self.deleted_at.as_ref())),
            ("parameters", Some(self.parameters_schema.clone())),
        ]
    }

    fn note(&self) -> Option<String> {
        Some(harmless(&self.template_content))
    }
}

/// A version with the name of its owner.
#[derive(Debug, Serialize)]
struct TemplateRow {
    #[serde(flatten)]
    template: StackTemplate,
    generator: Option<String>,
}

impl Row for TemplateRow {
    fn cells(&self) -> Cells {
        let mut cells = self.template.cells();
        cells.insert(2, ("GENERATOR", or_dash(self.generator.as_deref())));
        cells
    }

    fn wide(&self) -> Cells {
        self.template.wide()
    }
}

/// The template of a name.
pub(crate) async fn find(
    session: &Session<'_>,
    given: &str,
    within: &Within,
) -> Result<StackTemplate, Error> {
    find_one(&session.client, given, within, Gone::Refused).await
}

pub(crate) async fn run(session: &mut Session<'_>, command: TemplateCommand) -> Result<(), Error> {
    match command {
        TemplateCommand::Create { name, file, schema, description, generator, within } => {
            let content = manifests::read(&file).map_err(Error::Usage)?;
            let schema = match schema {
                Some(path) => manifests::read(&path).map_err(Error::Usage)?,
                None => ANYTHING.to_owned(),
            };
            let owner = match generator {
                Some(given) => {
                    let client = &session.client;
                    Some(find_one::<Generator>(client, &given, &within, Gone::Refused).await?.id)
                }
                None => None,
            };
            let project = within.project.or_else(|| session.client.project().map(str::to_owned));
            let body = CreateTemplateRequest {
                description,
                name,
                parameters_schema: schema,
                template_content: content,
                // A generator says which project.
                project: project.filter(|_| owner.is_none()),
                generator_id: owner,
            };
            session.create::<StackTemplate>(&body).await
        }
        TemplateCommand::List(arguments) => list(session, arguments).await,
        TemplateCommand::Get(target) => {
            let found: StackTemplate = target.find(&session.client).await?;
            session.show_details(&found);
            Ok(())
        }
        TemplateCommand::Update { target, file, schema, description } => {
            let read = |path: PathBuf| manifests::read(&path).map_err(Error::Usage);
            let (file, schema) = (file.map(read).transpose()?, schema.map(read).transpose()?);
            let found: StackTemplate = target.find(&session.client).await?;
            let body = UpdateTemplateRequest {
                description,
                parameters_schema: schema.unwrap_or(found.parameters_schema),
                template_content: file.unwrap_or(found.template_content),
            };
            let path = [StackTemplate::PATH, &found.id];
            let made: StackTemplate = session.client.put(&path, &body).await?;
            session.show_details(&made);
            Ok(())
        }
        TemplateCommand::Delete(arguments) => {
            delete::run::<StackTemplate>(session, *arguments, Vec::new()).await
        }
        TemplateCommand::Render { target, parameters, agent } => {
            let parameters = parameters.value()?;
            let found: StackTemplate = target.find(&session.client).await?;
            let agent_id = match agent {
                Some(given) => {
                    let within = &target.within;
                    let agent = find_one::<Agent>(&session.client, &given, within, Gone::Refused);
                    Some(agent.await?.id)
                }
                None => None,
            };
            let body = RenderTemplate { parameters, agent_id };
            let path = [StackTemplate::PATH, &found.id, "render"];
            let rendered: Value = session.client.post(&path, &body).await?;
            show_rendered(session, &rendered);
            Ok(())
        }
        TemplateCommand::Label(arguments) => tags::label::<StackTemplate>(session, arguments).await,
        TemplateCommand::Annotate(arguments) => {
            tags::annotate::<StackTemplate>(session, arguments).await
        }
    }
}

/// The schema of a template that says nothing about its parameters.
const ANYTHING: &str = "{\"type\": \"object\"}";

/// The text as it is, so that it can be piped.
fn show_rendered(session: &mut Session<'_>, rendered: &Value) {
    match (session.output, rendered["yaml_content"].as_str()) {
        (Output::Table | Output::Wide | Output::Name, Some(text)) => {
            session.terminal.print(&harmless(text));
        }
        _ => session.show(rendered, |rendered, _| rendered.to_string()),
    }
}

/// Lines and tabs stay; what could drive a terminal goes.
fn harmless(text: &str) -> String {
    let line = |line: &str| line.split('\t').map(clean).collect::<Vec<_>>().join("\t");
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

async fn list(session: &mut Session<'_>, list: FleetListArguments) -> Result<(), Error> {
    let is_watched = list.list.watch;
    let wanted = list.listing(session);
    if is_watched {
        return session.list::<StackTemplate>(wanted).await;
    }
    let path = [StackTemplate::PATH];
    let found = session.client.list::<StackTemplate>(&path, wanted).await?.items;
    let names = names(&session.client, Generator::PATH).await;
    let row = |template: StackTemplate| TemplateRow {
        generator: template.generator_id.as_deref().map(|id| name_of(&names, id)),
        template,
    };
    let rows: Vec<_> = found.into_iter().map(row).collect();
    session.show_all(&rows, StackTemplate::PATH);
    Ok(())
}
