//! Why a resource is where it is, for the person who was woken by it: the
//! state first, then what blocks it with the ways out, then how it came here.

use std::fmt::Write;

use serde_json::Value;
use slipway_wire::api::{Blocker, Explanation};

use super::details::node_in_short;
use super::table::time;
use crate::terminal::clean;

/// Not a table: sentences are long and must not be broken into columns.
pub(crate) fn explanation(explanation: &Explanation) -> String {
    let mut lines = vec![format!(
        "{} is {} since {}",
        clean(&explanation.handle),
        clean(&explanation.phase),
        time(&explanation.phase_since)
    )];
    match (&explanation.waiting_for, &explanation.absence_proven_at) {
        (Some(waiting), _) => lines.push(format!("It waits for {}.", clean(waiting))),
        (None, Some(proven)) => {
            lines.push(format!("It is gone; proven twice at {}.", time(proven)));
        }
        (None, None) => lines.push("It waits for nothing.".to_owned()),
    }
    if let Some(deadline) = &explanation.deadline {
        lines.push(format!("That is normal until {}.", time(deadline)));
    }
    if let Some(check) = &explanation.next_check_at {
        lines.push(format!("The loop looks again at {} at the latest.", time(check)));
    }
    if let Some(node) = &explanation.node {
        lines.push(format!("Node: {}", clean(&node_in_short(node))));
    }
    if !explanation.blockers.is_empty() {
        lines.push(String::new());
        lines.push("Blockers:".to_owned());
        lines.extend(explanation.blockers.iter().map(blocker));
    }
    if !explanation.history.is_empty() {
        lines.push(String::new());
        lines.push("History:".to_owned());
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

fn blocker(blocker: &Blocker) -> String {
    let mut text = format!(
        "  {} since {}, for the {}: {}",
        clean(&blocker.code),
        time(&blocker.since),
        clean(&blocker.owner),
        clean(&blocker.message)
    );
    if !matches!(&blocker.evidence, Value::Null) {
        // Writing to a text does not fail.
        let _ = write!(text, "\n    evidence: {}", clean(&blocker.evidence.to_string()));
    }
    for remedy in &blocker.remedies {
        let _ = write!(text, "\n    {} ({})", clean(&remedy.action), clean(&remedy.role));
        if let Some(command) = &remedy.command {
            let _ = write!(text, "\n      $ {}", clean(command));
        }
    }
    text
}
