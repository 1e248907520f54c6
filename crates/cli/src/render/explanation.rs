//! Why something is where it is, for the person who was woken by it: the state
//! first, then what blocks it with the ways out, then what belongs to it, what
//! is known, and how it came here.

use std::fmt::Write;

use serde_json::Value;
use slipway_wire::api::{Blocker, ExplainedPart, Explanation};

use super::details::node_in_short;
use super::table::time;
use crate::terminal::clean;

/// Not a table: sentences are long and must not be broken into columns.
pub(crate) fn explanation(explanation: &Explanation) -> String {
    let mut lines = vec![format!(
        "{} is {} since {}",
        clean(&explanation.name),
        clean(&explanation.state),
        time(&explanation.since)
    )];
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
        lines.push(format!("Held by {} until {}", clean(&holder.worker), time(&holder.until)));
    }
    if let Some(node) = &explanation.node {
        lines.push(format!("Node: {}", clean(&node_in_short(node))));
    }
    if !explanation.blockers.is_empty() {
        heading(&mut lines, "Blockers:");
        lines.extend(explanation.blockers.iter().map(|found| blocker(found, "  ")));
    }
    if !explanation.parts.is_empty() {
        heading(&mut lines, "With it:");
        lines.extend(explanation.parts.iter().map(part));
    }
    if !explanation.facts.is_empty() || !nothing(&explanation.observed) {
        heading(&mut lines, "Known:");
        let facts = explanation.facts.iter().filter(|(_, value)| !nothing(value));
        lines.extend(facts.map(|(name, value)| format!("  {}: {}", clean(name), plain(value))));
        if !nothing(&explanation.observed) {
            lines.push(format!("  observed: {}", plain(&explanation.observed)));
        }
    }
    if !explanation.history.is_empty() {
        heading(&mut lines, "History:");
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

/// A text without its quotes, anything else as JSON.
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
        // Writing to a text does not fail.
        let evidence = clean(&blocker.evidence.to_string());
        let _ = write!(text, "\n{indent}  evidence: {evidence}");
    }
    for remedy in &blocker.remedies {
        let (action, role) = (clean(&remedy.action), clean(&remedy.role));
        let _ = write!(text, "\n{indent}  {action} ({role})");
        if let Some(command) = &remedy.command {
            let _ = write!(text, "\n{indent}    $ {}", clean(command));
        }
    }
    text
}
