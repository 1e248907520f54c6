//! `slipway get`: an object as a document that `apply` takes.

use clap::Args;
use slipway_core::files::document::DocumentKind;
use slipway_wire::files::{Document, ObjectReference, ReadDocuments};
use slipway_wire::fleet::Agent;

use crate::arguments::Output;
use crate::broker::target::Gone;
use crate::error::Error;
use crate::fleet::find::{Within, find};
use crate::session::Session;

#[derive(Debug, Clone, Args)]
pub struct GetArguments {
    /// Its kind, such as resource or Resource
    #[arg(value_name = "KIND")]
    pub kind: String,
    /// Its name; of a placement that of the project
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The project that it is in; `default` if not given
    #[arg(long)]
    pub project: Option<String>,
    /// The cloud of a credential or an assignment
    #[arg(long)]
    pub cloud: Option<String>,
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway get resource web-1 --project shop -o yaml",
    "slipway get cloud local",
    "slipway get stack web --project shop",
];

pub(crate) async fn run(session: &mut Session<'_>, arguments: GetArguments) -> Result<(), Error> {
    let GetArguments { kind, mut name, project, cloud } = arguments;
    let kind = kind_of(&kind);
    if kind == DocumentKind::Agent.as_str() {
        // A document has both names.
        let within = Within { project: project.clone() };
        let agent: Agent = find(&session.client, &name, &within, Gone::Refused).await?;
        name = format!("{}@{}", agent.name, agent.cluster_name);
    }
    let project = project.or_else(|| session.client.project().map(str::to_owned));
    let object = ObjectReference { kind, project, cloud, name };
    let found = documents(session, vec![object]).await?;
    if [Output::Table, Output::Wide].contains(&session.output) {
        session.output = Output::Yaml;
    }
    for document in found {
        session.show(&document, |_, _| String::new());
    }
    Ok(())
}

/// The kind as documents spell it; people write it in small letters, and in the plural.
fn kind_of(text: &str) -> String {
    let small = text.to_lowercase();
    let singular = small.strip_suffix('s').unwrap_or(&small);
    let kinds = DocumentKind::ALL.iter().map(|kind| kind.as_str());
    let known = kinds.into_iter().find(|kind| [&small, singular].contains(&&*kind.to_lowercase()));
    known.map_or_else(|| text.to_owned(), str::to_owned)
}

pub(super) async fn documents(
    session: &mut Session<'_>,
    objects: Vec<ObjectReference>,
) -> Result<Vec<Document>, Error> {
    session.client.post(&["documents"], &ReadDocuments { objects }).await
}
