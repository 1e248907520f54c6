//! What update, replace and retry change in a declaration, and the difference as people
//! read it.

use std::collections::BTreeMap;
use std::time::Instant;

use clap::Args;
use serde_json::{Map, Value};
use slipway_wire::broker::{FieldChange, Replace, Resource, UpdateResource, UpdatedResource};

use super::resource::show_after;
use super::select::select;
use super::target::{Gone, TargetArguments, find};
use crate::arguments::{WaitArguments, distinct, parse_pair};
use crate::catalog::parameters;
use crate::complete;
use crate::error::Error;
use crate::exit::Exit;
use crate::kind::{Cells, Detail, Facts, Row};
use crate::output::{dash_if_empty, or_dash};
use crate::session::Session;
use crate::terminal::clean;
use crate::wait::{Goal, wait_for};

/// Version and parameters; what is not given stays.
#[derive(Debug, Clone, Args)]
pub struct ChangeArguments {
    /// Another version of the blueprint
    #[arg(long = "version", value_name = "VERSION")]
    blueprint_version: Option<String>,
    /// A parameter with another value, or a field of one as NAME.FIELD; those that are not given stay
    #[arg(
        short,
        long = "parameter",
        visible_alias = "param",
        value_name = "NAME=VALUE",
        value_parser = parse_pair
    )]
    parameters: Vec<(String, String)>,
    /// A parameter whose value is taken away
    #[arg(long, value_name = "NAME")]
    unset: Vec<String>,
}

impl ChangeArguments {
    fn is_empty(&self) -> bool {
        self.blueprint_version.is_none() && self.parameters.is_empty() && self.unset.is_empty()
    }

    /// The version and the values, with the types that the version declares.
    pub(crate) async fn resolve(
        self,
        session: &Session<'_>,
        resource: &Resource,
    ) -> Result<(Option<String>, BTreeMap<String, Value>), Error> {
        let Self { blueprint_version: version, parameters, unset } = self;
        let given = distinct("--parameter", parameters)?;
        let unset =
            distinct("--unset", unset.into_iter().map(|name| (name, Value::Null)).collect())?;
        if let Some(both) = unset.keys().find(|name| given.contains_key(*name)) {
            return Err(Error::Usage(format!("`{both}` is given to --parameter and to --unset")));
        }
        let of = version.as_deref().unwrap_or(&resource.blueprint_version);
        let schema = match given.is_empty() {
            true => None,
            false => parameters::schema_of(&session.client, &resource.blueprint, Some(of)).await,
        };
        let values = parameters::typed_values(schema.as_ref(), given, Map::new())?;
        Ok((version, parameters::nested(unset, values.into_iter().collect())?))
    }
}

#[derive(Debug, Clone, Args)]
pub struct UpdateArguments {
    /// Handle, id or beginning of the id of the resource
    #[arg(
        value_name = "RESOURCE",
        required_unless_present = "selector",
        conflicts_with = "selector",
        add = complete::names("resource")
    )]
    target: Option<String>,
    /// All with this label in effect; given several times, with all of them
    #[arg(short = 'l', long = "selector", value_name = "KEY[=VALUE]")]
    selector: Vec<String>,
    /// The project of the handle or of the selector (name, id or beginning of the id)
    #[arg(long, add = complete::names("project"))]
    project: Option<String>,
    #[command(flatten)]
    change: ChangeArguments,
    /// A label to set; the others stay
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse_pair)]
    labels: Vec<(String, String)>,
    /// A label to take away
    #[arg(long, value_name = "KEY")]
    remove_label: Vec<String>,
    /// Only show the difference
    #[arg(long, conflicts_with = "wait")]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    wait: WaitArguments,
}

/// Shows the difference, asks, and applies what was shown and nothing else.
pub(crate) async fn update(
    session: &mut Session<'_>,
    arguments: UpdateArguments,
) -> Result<(), Error> {
    let UpdateArguments { target, selector, project, dry_run, yes, wait, .. } = arguments.clone();
    if arguments.is_empty() {
        let problem = "nothing to change is given: give --parameter, --unset, --version, --label or --remove-label";
        return Err(Error::Usage(problem.to_owned()));
    }
    session.terminal.can_agree(yes || dry_run)?;
    let Some(target) = target else {
        let found = select(&session.client, &selector, project.as_deref()).await?;
        return update_all(session, &arguments, found).await;
    };
    let target = TargetArguments { target, project };
    let resource = find(&session.client, &target, Gone::Refused).await?;
    let planned = Planned::of(session, &arguments, resource).await?;
    if dry_run {
        session.show_details(&planned.shown);
        return Ok(());
    }
    let handle = clean(&planned.shown.resource.handle);
    if planned.shown.changes.is_empty() {
        session.terminal.say(&format!("nothing to do: `{handle}` is declared so already"));
        return show_after(session, planned.shown.resource, Goal::Ready, &wait).await;
    }
    session.terminal.say(&difference(&planned.shown.changes));
    session.terminal.agree(yes, &format!("Change `{handle}` so, in place?"))?;
    let updated = planned.apply(session).await?;
    show_after(session, updated.resource, Goal::Ready, &wait).await
}

impl UpdateArguments {
    fn is_empty(&self) -> bool {
        self.change.is_empty() && self.labels.is_empty() && self.remove_label.is_empty()
    }
}

/// An update that the server accepts, of the revision that was read.
struct Planned {
    body: UpdateResource,
    id: String,
    revision: i64,
    /// The resource with what would change.
    shown: UpdatedResource,
}

impl Planned {
    async fn of(
        session: &Session<'_>,
        arguments: &UpdateArguments,
        resource: Resource,
    ) -> Result<Self, Error> {
        let UpdateArguments { change, labels, remove_label, .. } = arguments.clone();
        let (version, parameters) = change.resolve(session, &resource).await?;
        let labels = relabelled(&resource, labels, &remove_label)?;
        let body = UpdateResource { version, parameters, labels };
        let (path, dry) = (["resources", resource.id.as_str()], [("dry_run", "true".to_owned())]);
        let revision = resource.revision;
        let shown = session.client.patch_where(&path, &dry, &body, Some(revision)).await?;
        Ok(Self { body, id: resource.id, revision, shown })
    }

    /// Refused if somebody wrote the resource since it was shown.
    async fn apply(&self, session: &Session<'_>) -> Result<UpdatedResource, Error> {
        session.client.patch(&["resources", &self.id], &self.body, Some(self.revision)).await
    }
}

/// Updates what a selector found: the difference of each is shown, one question is asked. If
/// one of them would be refused, none is changed.
async fn update_all(
    session: &mut Session<'_>,
    arguments: &UpdateArguments,
    found: Vec<Resource>,
) -> Result<(), Error> {
    let (mut planned, mut refused) = (Vec::new(), Vec::new());
    for resource in found {
        let handle = resource.handle.clone();
        match Planned::of(session, arguments, resource).await {
            Ok(one) => planned.push(one),
            Err(Error::Problem(problem)) => {
                refused.push(format!("`{handle}`: {}", problem.message));
            }
            Err(error) => return Err(error),
        }
    }
    if !refused.is_empty() {
        let message = format!("nothing was changed; {}", refused.join("; "));
        let (code, errors) = ("selection_refused", Vec::new());
        return Err(Error::Faults { code, message, errors, exit: Exit::Refused });
    }
    if arguments.dry_run {
        let shown: Vec<_> = planned.into_iter().map(|one| one.shown).collect();
        session.show_all(&shown, "resources");
        return Ok(());
    }
    let (planned, so_already): (Vec<_>, Vec<_>) =
        planned.into_iter().partition(|one| !one.shown.changes.is_empty());
    let count = planned.len();
    if !so_already.is_empty() {
        let already = so_already.len();
        session.terminal.say(&format!("{already} of {} are declared so already", already + count));
    }
    for Planned { shown, .. } in &planned {
        let difference = difference(&shown.changes).replace('\n', "\n  ");
        session.terminal.say(&format!("{}\n  {difference}", clean(&shown.resource.handle)));
    }
    if count == 0 {
        return Ok(());
    }
    let question = match count {
        1 => "Change this resource so, in place?".to_owned(),
        count => format!("Change these {count} resources so, in place?"),
    };
    session.terminal.agree(arguments.yes, &question)?;
    let (mut updated, mut stopped) = (Vec::new(), None);
    for one in &planned {
        match one.apply(session).await {
            Ok(done) => updated.push(done),
            Err(error) => {
                stopped = Some((clean(&one.shown.resource.handle), error));
                break;
            }
        }
    }
    if stopped.is_none() && arguments.wait.wait {
        let started = Instant::now();
        for one in &mut updated {
            let left = arguments.wait.timeout.saturating_sub(started.elapsed());
            let (client, terminal) = (&session.client, &mut *session.terminal);
            wait_for(client, &one.resource, Goal::Ready, left, terminal).await?;
            one.resource = client.get(&["resources", &one.resource.id]).await?;
        }
    }
    session.show_all(&updated, "resources");
    let Some((handle, error)) = stopped else { return Ok(()) };
    session.terminal.say(&format!(
        "{} of {count} were changed; `{handle}` was refused, and what comes after it was not asked for",
        updated.len(),
    ));
    Err(error)
}

/// All labels afterwards; `None` if none is given.
fn relabelled(
    resource: &Resource,
    set: Vec<(String, String)>,
    removed: &[String],
) -> Result<Option<BTreeMap<String, String>>, Error> {
    let set = distinct("--label", set)?;
    if set.is_empty() && removed.is_empty() {
        return Ok(None);
    }
    if let Some(both) = removed.iter().find(|key| set.contains_key(*key)) {
        let problem = format!("`{both}` is given to --label and to --remove-label");
        return Err(Error::Usage(problem));
    }
    let mut labels = resource.labels.clone();
    labels.retain(|key, _| !removed.contains(key));
    labels.extend(set);
    Ok(Some(labels))
}

#[derive(Debug, Clone, Args)]
pub struct ReplaceArguments {
    #[command(flatten)]
    target: TargetArguments,
    /// Why it is made anew
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    change: ChangeArguments,
    /// Make the new attempt first, and take the old one down when it is Ready; the blueprint
    /// has to allow two at once
    #[arg(long)]
    surge: bool,
    /// Take the attempt that was to replace the one in use away; the one in use stays
    #[arg(long, conflicts_with_all = ["surge", "blueprint_version", "parameters", "unset"])]
    abort: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    wait: WaitArguments,
}

pub(crate) async fn replace(
    session: &mut Session<'_>,
    arguments: ReplaceArguments,
) -> Result<(), Error> {
    let ReplaceArguments { target, reason, change, surge, abort, yes, wait } = arguments;
    session.terminal.can_agree(yes)?;
    let resource = find(&session.client, &target, Gone::Refused).await?;
    let (version, parameters) = change.resolve(session, &resource).await?;
    let (handle, id) = (clean(&resource.handle), &resource.id);
    let question = match (surge, abort) {
        (_, true) => format!(
            "Take the attempt that was to replace `{handle}` ({id}) away? The one in use stays."
        ),
        (true, false) => format!(
            "Make `{handle}` ({id}) anew, and take the old one down when the new one is Ready? What runs on the old one ends then."
        ),
        (false, false) => {
            format!("Take `{handle}` ({id}) down and make it anew? What runs on it ends.")
        }
    };
    session.terminal.agree(yes, &question)?;
    let body = Replace { reason, version, parameters, surge, abort };
    let replaced = session.client.post(&["resources", &resource.id, "replace"], &body).await?;
    let goal = if abort { Goal::Alone } else { Goal::ReadyAfter(resource.attempt.number) };
    show_after(session, replaced, goal, &wait).await
}

/// A line with `-` for each value that goes, and one with `+` for each that comes.
fn difference(changes: &[FieldChange]) -> String {
    let line = |sign: char, field: &str, value: &Value| {
        // A parameter may be a number or a text that looks like one.
        let plain = value.as_str().filter(|_| !field.starts_with("parameters."));
        let value = plain.map_or_else(|| value.to_string(), str::to_owned);
        format!("{sign} {}: {}", clean(field), clean(&value))
    };
    let lines = changes.iter().flat_map(|change| {
        let before = change.before.as_ref().map(|value| line('-', &change.field, value));
        let after = change.after.as_ref().map(|value| line('+', &change.field, value));
        before.into_iter().chain(after)
    });
    lines.collect::<Vec<_>>().join("\n")
}

impl Row for UpdatedResource {
    fn cells(&self) -> Cells {
        vec![
            ("HANDLE", self.resource.handle.clone()),
            ("PROJECT", or_dash(self.resource.project.as_deref())),
            ("PHASE", self.resource.phase.clone()),
            ("CHANGES", dash_if_empty(difference(&self.changes).replace('\n', ", "))),
        ]
    }
}

impl Detail for UpdatedResource {
    fn facts(&self) -> Facts {
        let changes = match &self.changes[..] {
            [] => "none".to_owned(),
            changes => difference(changes),
        };
        vec![
            ("handle", Some(self.resource.handle.clone())),
            ("phase", Some(self.resource.phase.clone())),
            ("changes", Some(changes)),
            ("revision", Some(self.resource.revision.to_string())),
        ]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_difference_has_a_line_for_what_goes_and_one_for_what_comes() {
        let change = |field: &str, before: Option<Value>, after: Option<Value>| FieldChange {
            field: field.to_owned(),
            before,
            after,
        };
        let shown = difference(&[
            change("version", Some(json!("v1")), Some(json!("v2"))),
            change("parameters.size", None, Some(json!(3))),
            change("parameters.note", None, Some(json!("3"))),
            change("labels.tier", Some(json!("web\u{1b}[2J")), None),
        ]);
        let lines: Vec<_> = shown.lines().collect();
        assert_eq!(lines[..3], ["- version: v1", "+ version: v2", "+ parameters.size: 3"]);
        assert_eq!(lines[3], "+ parameters.note: \"3\"");
        assert!(lines[4].starts_with("- labels.tier: web") && !shown.contains('\u{1b}'), "{shown}");
    }
}
