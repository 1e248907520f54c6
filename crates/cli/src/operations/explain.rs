//! `slipway explain …`: why something is in its state, for the person on call:
//! the state first, then its blockers with remedies, then its parts, the known
//! facts, and the history.

use std::fmt::Write;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::Value;
use slipway_core::ids::NodeId;
use slipway_core::operations::explanation::ExplainedKind;
use slipway_core::operations::reference::ids_from;
use slipway_wire::blocker::{Blocker, Remedy};
use slipway_wire::nodes::Node;
use slipway_wire::operations::{ExplainedPart, Explanation};

use crate::broker::target::{TargetArguments, find_id};
use crate::client::Listing;
use crate::error::Error;
use crate::exit::Exit;
use crate::nodes::node;
use crate::output::time;
use crate::session::Session;
use crate::terminal::clean;

#[derive(Debug, Clone, Args)]
#[command(allow_missing_positional = true)]
pub struct ExplainArguments {
    /// What kind of thing; not needed for a handle or an id
    #[arg(value_name = "KIND", value_parser = kinds())]
    pub kind: Option<ExplainedKind>,
    /// Its id, or the beginning of it; a resource also by its handle, with its kind a node by
    /// its host name, a project and a cluster by their names
    #[arg(value_name = "ID-OR-NAME")]
    pub target: String,
    /// The project of a handle (name or id)
    #[arg(long)]
    pub project: Option<String>,
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway explain web-1",
    "slipway explain 0192f0c1",
    "slipway explain resource web-1",
    "slipway explain project default",
    "slipway explain cluster local -o json",
    "slipway explain deletion 0192f0c1-2b3c-7d4e-8f50-123456789abc",
];

pub(crate) async fn run(
    session: &mut Session<'_>,
    arguments: ExplainArguments,
) -> Result<(), Error> {
    let ExplainArguments { kind, target, project } = arguments;
    let target = TargetArguments { target, project };
    match kind {
        None => any(session, &target).await,
        Some(ExplainedKind::Resource) => resource(session, &target).await,
        Some(kind @ ExplainedKind::Node) => {
            let id = node_id(session, target.target).await?;
            explain(session, kind, &id).await
        }
        Some(kind) => explain(session, kind, &target.target).await,
    }
}

async fn any(session: &mut Session<'_>, target: &TargetArguments) -> Result<(), Error> {
    let path = ["explain", target.target.as_str()];
    let wanted = Listing::default().with("project", target.project.as_deref());
    match session.client.get_where::<Explanation>(&path, wanted).await {
        Ok(explanation) => show(session, &explanation),
        Err(error) if error.exit() == Exit::NotFound => {
            // Names the handles that are near.
            Err(find_id(&session.client, target).await.err().unwrap_or(error))
        }
        Err(error) => Err(error),
    }
}

/// The kinds that the server explains, by their names.
fn kinds() -> impl TypedValueParser<Value = ExplainedKind> {
    let names = ExplainedKind::ALL.iter().map(|kind| kind.as_str());
    PossibleValuesParser::new(names)
        .try_map(|name| ExplainedKind::parse(&name).ok_or("this is no kind that is explained"))
}

pub(crate) async fn resource(
    session: &mut Session<'_>,
    target: &TargetArguments,
) -> Result<(), Error> {
    match find_id(&session.client, target).await {
        Ok(id) => explain(session, ExplainedKind::Resource, &id).await,
        // It may be the beginning of an id.
        Err(error) if ids_from(&target.target).is_some() => {
            let found = explain(session, ExplainedKind::Resource, &target.target).await;
            found.map_err(|second| match second.exit() {
                Exit::NotFound => error,
                _ => second,
            })
        }
        Err(error) => Err(error),
    }
}

async fn explain(session: &mut Session<'_>, kind: ExplainedKind, id: &str) -> Result<(), Error> {
    let explanation: Explanation = session.client.get(&["explain", kind.as_str(), id]).await?;
    show(session, &explanation)
}

fn show(session: &mut Session<'_>, explanation: &Explanation) -> Result<(), Error> {
    session.show(explanation, |explanation, _| text(explanation));
    Ok(())
}

/// A host name means the registered node of that name, or else the last one.
async fn node_id(session: &Session<'_>, target: String) -> Result<String, Error> {
    if target.parse::<NodeId>().is_ok() {
        return Ok(target);
    }
    let nodes: Vec<Node> = session.client.list(&["nodes"], Listing::default()).await?.items;
    let named: Vec<_> = nodes.into_iter().filter(|node| node.hostname == target).collect();
    let registered: Vec<_> = named.iter().filter(|node| node.registered).collect();
    if registered.len() > 1 {
        let ids: Vec<_> = registered.iter().map(|node| node.id.as_str()).collect();
        return Err(Error::Usage(format!(
            "`{target}` is the host name of the nodes {}; choose one by its id",
            ids.join(", ")
        )));
    }
    let found = registered.first().copied().or(named.last()).map(|node| node.id.clone());
    // It may be the beginning of an id.
    let found = found.or_else(|| ids_from(&target).map(|_| target.clone()));
    found.ok_or_else(|| {
        Error::NotFound(format!(
            "there is no node with the host name `{target}`; see `slipway node list`"
        ))
    })
}

/// Not a table: sentences are long and must not be wrapped into columns.
pub(crate) fn text(explanation: &Explanation) -> String {
    let failed = explanation.failure.as_ref().map(|failure| &failure.observed);
    let mut lines = vec![format!(
        "{} is {} since {}",
        clean(&explanation.name),
        clean(&explanation.state),
        time(&explanation.since)
    )];
    if let Some(failure) = &explanation.failure {
        lines.push(format!("It failed at {}: {}", time(&failure.at), clean(&failure.reason)));
    }
    lines.extend(explanation.remedies.iter().map(|found| remedy(found, "")));
    lines.push(match &explanation.waiting_for {
        Some(waiting) => format!("It waits for {}.", clean(waiting)),
        None => "It waits for nothing.".to_owned(),
    });
    if let Some(deadline) = &explanation.deadline {
        let normal = if explanation.overdue { "was" } else { "is" };
        lines.push(format!("That {normal} normal until {}.", time(deadline)));
    }
    lines.push(format!("Next: {}.", clean(&explanation.next)));
    if let Some(holder) = &explanation.held_by {
        lines.push(format!("Claimed by {} until {}", clean(&holder.worker), time(&holder.until)));
    }
    if let Some(node) = &explanation.node {
        lines.push(format!("Node: {}", clean(&node::in_short(node))));
    }
    if !explanation.blockers.is_empty() {
        heading(&mut lines, "Blockers:");
        lines.extend(explanation.blockers.iter().map(|found| blocker(found, "  ")));
    }
    if !explanation.parts.is_empty() {
        heading(&mut lines, "With it:");
        lines.extend(explanation.parts.iter().map(part));
    }
    if !explanation.facts.is_empty() || !nothing(&explanation.observed) || failed.is_some() {
        heading(&mut lines, "Known:");
        let facts = explanation.facts.iter().filter(|(_, value)| !nothing(value));
        lines.extend(facts.map(|(name, value)| format!("  {}: {}", clean(name), plain(value))));
        let observed =
            [("observed", Some(&explanation.observed)), ("observed when it failed", failed)];
        for (name, observed) in observed {
            let observed = observed.filter(|observed| !nothing(observed));
            lines.extend(observed.map(|observed| format!("  {name}: {}", plain(observed))));
        }
    }
    if !explanation.history.is_empty() {
        heading(&mut lines, "History:");
        if explanation.older_history.is_some() {
            lines.push(format!("  … older: slipway {}", older(explanation)));
        }
        for entry in &explanation.history {
            let from = entry.from.as_deref().map(|from| format!("{from} → ")).unwrap_or_default();
            lines.push(format!(
                "  {}  {}{}  ({})",
                time(&entry.at),
                clean(&from),
                clean(&entry.to),
                clean(&entry.why)
            ));
        }
    }
    lines.join("\n")
}

/// The command that lists the whole history.
fn older(explanation: &Explanation) -> String {
    let fact = |name| explanation.facts.get(name).map(plain);
    match fact("resource_id").zip(fact("attempt")) {
        Some((resource, number)) => format!("resource history {resource} --attempt {number}"),
        None => format!("resource history {}", clean(&explanation.id)),
    }
}

fn heading(lines: &mut Vec<String>, text: &str) {
    lines.push(String::new());
    lines.push(text.to_owned());
}

fn nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

/// A string without its quotes, any other value as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => clean(text),
        value => clean(&value.to_string()),
    }
}

fn part(part: &ExplainedPart) -> String {
    let mut text = format!("  {} {}", clean(&part.kind), clean(&part.id));
    if !part.name.is_empty() {
        let _ = write!(text, " ({})", clean(&part.name));
    }
    let _ = write!(text, " is {}", clean(&part.state));
    if let Some(since) = &part.since {
        let _ = write!(text, " since {}", time(since));
    }
    if let Some(about) = &part.about {
        let _ = write!(text, ": {}", clean(about));
    }
    for found in &part.blockers {
        let _ = write!(text, "\n{}", blocker(found, "    "));
    }
    text
}

fn blocker(blocker: &Blocker, indent: &str) -> String {
    let mut text = format!(
        "{indent}{} since {}, for the {}: {}",
        clean(&blocker.code),
        time(&blocker.since),
        clean(&blocker.owner),
        clean(&blocker.message)
    );
    if !matches!(&blocker.evidence, Value::Null) {
        // Writing to a `String` does not fail.
        let evidence = clean(&blocker.evidence.to_string());
        let _ = write!(text, "\n{indent}  evidence: {evidence}");
    }
    for found in &blocker.remedies {
        let _ = write!(text, "\n{}", remedy(found, &format!("{indent}  ")));
    }
    text
}

fn remedy(remedy: &Remedy, indent: &str) -> String {
    let mut text = format!("{indent}{} ({})", clean(&remedy.action), clean(&remedy.role));
    if let Some(command) = &remedy.command {
        // Writing to a `String` does not fail.
        let _ = write!(text, "\n{indent}  $ {}", clean(command));
    }
    text
}
