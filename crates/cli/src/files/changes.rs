//! Shows what an apply does or would do.

use serde::Serialize;
use serde_json::Value;
use slipway_wire::files::{AppliedDocument, ObjectReference};
use slipway_wire::problem::FieldError;
use slipway_wire::topology::{PlanObstacle, PlannedGroup, PlannedServer, WorkspacePlan};

use super::folder::Found;
use crate::terminal::clean;

/// What became of a document.
#[derive(Debug, Serialize)]
pub(super) struct Line {
    pub(super) object: ObjectReference,
    pub(super) origin: String,
    #[serde(flatten)]
    pub(super) applied: AppliedDocument,
    /// The place of each fault.
    #[serde(skip)]
    places: Vec<String>,
}

impl Line {
    pub(super) fn new(found: &Found, applied: AppliedDocument) -> Self {
        let faults = applied.refusal.iter().flat_map(|refusal| &refusal.errors);
        let places = faults.map(|fault| found.location(&fault.field)).collect();
        let origin = found.location("");
        Self { object: found.object.clone(), origin, applied, places }
    }

    pub(super) fn is(&self, outcome: &str) -> bool {
        self.applied.outcome == outcome
    }

    /// Every fault, with its place.
    pub(super) fn faults(&self) -> Vec<FieldError> {
        let Some(refusal) = &self.applied.refusal else { return Vec::new() };
        let ObjectReference { kind, name, .. } = &self.object;
        let named = |place: &str| match (&**kind, &**name) {
            ("", _) => place.to_owned(),
            (kind, "") => format!("{place}: {kind} without a name"),
            _ => format!("{place}: {}", self.object),
        };
        if refusal.errors.is_empty() {
            let (code, message) = (refusal.code.clone(), refusal.message.clone());
            return vec![FieldError { field: named(&self.origin), code, message }];
        }
        let placed = refusal.errors.iter().zip(&self.places);
        placed.map(|(fault, place)| FieldError { field: named(place), ..fault.clone() }).collect()
    }

    /// The object with its differences, a line each.
    fn shown(&self) -> String {
        let sign = match self.applied.outcome.as_str() {
            "created" => '+',
            "refused" => '!',
            _ => '~',
        };
        let mut lines = vec![format!("{sign} {}", clean(&self.object.to_string()))];
        for change in &self.applied.changes {
            let path = clean(&change.field);
            let side = |sign: char, value: &Option<Value>| {
                value.as_ref().map(|value| format!("    {sign} {path}: {}", short(value)))
            };
            lines.extend(side('-', &change.before));
            lines.extend(side('+', &change.after));
        }
        lines.extend(self.applied.plan.iter().flat_map(servers));
        lines.join("\n")
    }
}

/// What would become of the servers of a workspace, a line each, with the gates in their way.
fn servers(plan: &WorkspacePlan) -> Vec<String> {
    let mut lines = vec!["    servers:".to_owned()];
    for PlannedGroup { group, role, count } in &plan.created {
        let plural = if *count == 1 { "" } else { "s" };
        lines.push(format!("      + {count} server{plural} of group {group} ({role})"));
    }
    for PlannedServer { server, group, action, blocked } in &plan.servers {
        let (sign, what) = match action.as_str() {
            "delete" => ('-', "goes"),
            "in_place" => ('~', "changes in place"),
            "replace_surge_first" => ('~', "is replaced, the new machine first"),
            "replace" => ('~', "is replaced, the old machine first"),
            _ => ('~', "does not change"),
        };
        lines.push(format!("      {sign} {server} of group {group} {what}"));
        let obstacle = |one: &PlanObstacle| format!("        ! {}: {}", one.code, one.message);
        lines.extend(blocked.iter().map(obstacle));
    }
    if plan.further > 0 {
        lines.push(format!("      ~ {} more change like these", plan.further));
    }
    if lines.len() == 1 {
        lines.push("      none comes, changes or goes".to_owned());
    }
    lines.iter().map(|line| clean(line)).collect()
}

/// A value on one line.
fn short(value: &Value) -> String {
    let text = clean(&value.to_string());
    match text.char_indices().nth(120) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The differences, and how many objects there are of each outcome.
pub(super) fn shown(lines: &[Line]) -> String {
    let is_shown = |line: &&Line| match line.applied.outcome.as_str() {
        "unchanged" => false,
        "refused" => line.applied.plan.is_some(),
        _ => true,
    };
    let different = lines.iter().filter(is_shown);
    let mut text: Vec<String> = different.map(Line::shown).collect();
    text.push(summary(lines));
    text.join("\n")
}

fn summary(lines: &[Line]) -> String {
    let count = |outcome: &str| lines.iter().filter(|line| line.is(outcome)).count();
    let counted =
        ["created", "changed", "unchanged", "refused"].map(|outcome| (outcome, count(outcome)));
    let counted = counted.iter().filter(|(_, count)| *count > 0);
    let parts: Vec<_> = counted.map(|(outcome, count)| format!("{count} {outcome}")).collect();
    if parts.is_empty() { "no documents".to_owned() } else { parts.join(", ") }
}

/// Whether something differs.
pub(super) fn differ(lines: &[Line]) -> bool {
    lines.iter().any(|line| line.is("created") || line.is("changed"))
}
