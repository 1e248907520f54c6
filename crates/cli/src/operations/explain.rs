//! `slipway explain …`: why something is in its state, for the person on call:
//! the state first, then its blockers with remedies, then its parts, the known
//! facts, and the history.

use std::fmt::Write;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::Value;
use slipway_core::operations::explanation::ExplainedKind;
use slipway_wire::blocker::{Blocker, Remedy};
use slipway_wire::nodes::Node;
use slipway_wire::operations::{ExplainedPart, Explanation};

use crate::broker::target::{self, Gone, TargetArguments};
use crate::client::Listing;
use crate::error::Error;
use crate::exit::Exit;
use crate::fleet::find::{Within, find_id};
use crate::nodes::node;
use crate::output::{field, observed, plain, time, wrap};
use crate::session::Session;
use crate::terminal::clean;

#[derive(Debug, Clone, Args)]
#[command(allow_missing_positional = true)]
pub struct ExplainArguments {
    /// What kind of thing; not needed for a handle or an id
    #[arg(value_name = "KIND", value_parser = kinds())]
    pub kind: Option<ExplainedKind>,
    /// Its id, or the beginning of it; a resource also by its handle, with its kind a node by
    /// its host name, a project, a cluster, a stack, a generator and an agent by their names
    #[arg(value_name = "ID-OR-NAME")]
    pub target: String,
    /// The project of a handle or a name of Fleet (name, id or beginning of the id)
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
    "slipway explain rollout server",
    "slipway explain stack web",
    "slipway explain agent edge@berlin",
    "slipway explain generator ci --project shop",
    "slipway explain workspace edge",
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
            // Also by its host name, and by the handle of its resource.
            let node: Node = session.client.get(&["nodes", &target.target]).await?;
            explain(session, kind, &node.id).await
        }
        Some(kind) => {
            let within = Within { project: target.project };
            let (client, name) = (&session.client, &target.target);
            let id = find_id(client, kind.as_str(), name, &within, Gone::Allowed).await;
            let id = id.transpose()?.unwrap_or(target.target);
            explain(session, kind, &id).await
        }
    }
}

async fn any(session: &mut Session<'_>, target: &TargetArguments) -> Result<(), Error> {
    let path = ["explain", target.target.as_str()];
    let wanted = Listing::default().with("project", target.project.as_deref());
    match session.client.get_where::<Explanation>(&path, wanted).await {
        Ok(explanation) => show(session, &explanation),
        Err(error) if error.exit() == Exit::NotFound => {
            // Names the handles that are near.
            Err(target::find_id(&session.client, target).await.err().unwrap_or(error))
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
    let id = target::find_id(&session.client, target).await?;
    explain(session, ExplainedKind::Resource, &id).await
}

pub(crate) async fn explain(
    session: &mut Session<'_>,
    kind: ExplainedKind,
    id: &str,
) -> Result<(), Error> {
    let explanation: Explanation = session.client.get(&["explain", kind.as_str(), id]).await?;
    show(session, &explanation)
}

fn show(session: &mut Session<'_>, explanation: &Explanation) -> Result<(), Error> {
    session.show(explanation, |explanation, layout| {
        wrap(&text(explanation), layout.width.filter(|_| !layout.wide))
    });
    Ok(())
}

/// Not a table: sentences are long, and commands are there to be copied.
pub(crate) fn text(explanation: &Explanation) -> String {
    let mut lines = vec![format!(
        "{} is {}{} since {}",
        clean(&explanation.name),
        clean(&explanation.state),
        node::silence(explanation.node.as_ref()),
        time(&explanation.since)
    )];
    lines.extend(explanation.notice.as_ref().map(|notice| format!("Note: {}.", clean(notice))));
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
    let mut known = Vec::new();
    explanation.facts.iter().for_each(|(name, value)| field(name, value, 1, &mut known));
    if !known.is_empty() {
        heading(&mut lines, "Known:");
        lines.extend(known);
    }
    let since = explanation.observed_since.as_deref();
    let mut seen = observed(&explanation.observed, since, explanation.observed_stale).into_iter();
    if let Some(when) = seen.next() {
        heading(&mut lines, &format!("Observed {when}:"));
        lines.extend(seen.map(|line| format!("  {line}")));
    }
    if let Some(Value::Object(fields)) = explanation.failure.as_ref().map(|failed| &failed.observed)
    {
        heading(&mut lines, "Observed when it failed:");
        fields.iter().for_each(|(name, value)| field(name, value, 1, &mut lines));
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

fn part(part: &ExplainedPart) -> String {
    let (kind, name, id) = (clean(&part.kind), clean(&part.name), clean(&part.id));
    let mut text = match (part.kind.as_str(), name.is_empty()) {
        // Its name says that it is an attempt.
        ("provisioned_resource", false) => format!("  {name} ({id})"),
        // Their names are what commands take.
        ("stack" | "agent" | "generator" | "server", false) => format!("  {kind} {name}"),
        (_, false) => format!("  {kind} {id} ({name})"),
        (_, true) => format!("  {kind} {id}"),
    };
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

/// With its evidence and its ways out, below each other.
pub(crate) fn blocker(blocker: &Blocker, indent: &str) -> String {
    let mut text = format!(
        "{indent}{} since {}, for the {}: {}",
        clean(&blocker.code),
        time(&blocker.since),
        clean(&blocker.owner),
        clean(&blocker.message)
    );
    let mut evidence = Vec::new();
    field("evidence", &blocker.evidence, 0, &mut evidence);
    for line in evidence {
        // Writing to a `String` does not fail.
        let _ = write!(text, "\n{indent}  {line}");
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
