//! A selector: the resources that have all of some labels in effect, in one project or in all
//! that the key reaches. Also deletes what a selector finds.

use std::time::Instant;

use slipway_wire::broker::Resource;
use slipway_wire::deletion::Deletion;
use slipway_wire::deletion::plan::DeletionPlan;

use crate::arguments::{DeletionArguments, WaitArguments};
use crate::client::{Client, Listing};
use crate::error::Error;
use crate::exit::Exit;
use crate::kind::{Cells, Row, table};
use crate::output::{or_dash, paint};
use crate::session::Session;
use crate::terminal::{Traits, clean};
use crate::wait::{Goal, wait_for};

/// The resources that a selector finds, each label as `KEY` or `KEY=VALUE`. To find none is an
/// error, so that a slip in a label is noticed.
pub(crate) async fn select(
    client: &Client,
    labels: &[String],
    project: Option<&str>,
) -> Result<Vec<Resource>, Error> {
    if labels.iter().any(|label| label.trim().is_empty() || label.starts_with('=')) {
        return Err(Error::Usage("a label is KEY or KEY=VALUE, as in -l team=a".to_owned()));
    }
    let project = project.or(client.project());
    let wanted = Listing::default().with("project", project);
    let wanted = labels.iter().fold(wanted, |all, one| all.with("label", Some(one.as_str())));
    let found = client.list::<Resource>(&["resources"], wanted).await?;
    if !found.quarantined.is_empty() {
        let message = format!(
            "{} rows cannot be read, and may have the labels, too: {}; name resources by their handles",
            found.quarantined.len(),
            found.quarantined.join(", ")
        );
        let (code, errors) = ("row_invalid", Vec::new());
        return Err(Error::Faults { code, message, errors, exit: Exit::Refused });
    }
    if found.items.is_empty() {
        let within = project.map(|project| format!(" in project `{project}`")).unwrap_or_default();
        let labels = labels.join(" ");
        return Err(Error::NotFound(format!("no resource{within} has the labels {labels}")));
    }
    Ok(found.items)
}

/// A resource with what its deletion would take away.
#[derive(Debug, serde::Serialize)]
struct Planned<'a> {
    resource: &'a Resource,
    plan: &'a DeletionPlan,
}

impl Row for Planned<'_> {
    fn cells(&self) -> Cells {
        let steps: Vec<_> = self
            .plan
            .steps
            .iter()
            .map(|step| format!("{} {}", step.count, step.kind.replace('_', " ")))
            .collect();
        let hindrance = match self.plan.protected.first() {
            Some(protected) => Some(protected.clone()),
            None => self.plan.under_way.as_ref().map(|id| format!("under way: deletion {id}")),
        };
        vec![
            ("HANDLE", self.resource.handle.clone()),
            ("PROJECT", or_dash(self.resource.project.as_deref())),
            ("PHASE", self.resource.phase.clone()),
            ("TAKES AWAY", steps.join(", ")),
            ("NOTE", or_dash(hindrance.as_deref())),
        ]
    }
}

/// Deletes everything that the selector finds: one plan for each, all of them shown, one
/// question. If one of the plans would be refused, none is carried out. The requests follow
/// each other, so the deletion brake counts them as it counts any others of this key.
pub(super) async fn delete(
    session: &mut Session<'_>,
    (labels, project): (&[String], Option<&str>),
    deletion: &DeletionArguments,
    wait: &WaitArguments,
) -> Result<(), Error> {
    if deletion.plan.is_some() {
        let problem = "--plan is of one deletion; with -l each gets a plan of its own";
        return Err(Error::Usage(problem.to_owned()));
    }
    session.terminal.can_agree(deletion.yes)?;
    let found = select(&session.client, labels, project).await;
    let Some(found) = session.unless_ignored(found, deletion.ignore_not_found)? else {
        return Ok(());
    };
    let mut plans = Vec::new();
    for resource in &found {
        plans.push(session.plan("resource", &resource.id, false).await?);
    }
    let planned: Vec<_> =
        found.iter().zip(&plans).map(|(resource, plan)| Planned { resource, plan }).collect();
    if !deletion.yes {
        let Traits { width, colours, .. } = session.terminal.traits();
        let text = table(&planned, width);
        session.terminal.say(&if colours { paint(&text) } else { text });
    }
    refuse_together(&planned, deletion.break_glass)?;
    let question = match found.len() {
        1 => "Delete this resource?".to_owned(),
        count => format!("Delete these {count} resources?"),
    };
    session.terminal.agree(deletion.yes, &question)?;

    let mut begun: Vec<Deletion> = Vec::new();
    let mut refused = None;
    for (resource, plan) in found.iter().zip(&plans) {
        let mut query = deletion.query();
        query.push(("plan", plan.id.clone()));
        match session.client.delete(&["resources", &resource.id], &query).await {
            Ok(deletion) => begun.push(deletion),
            Err(error) => {
                refused = Some((resource, error));
                break;
            }
        }
    }
    if refused.is_none() && wait.wait {
        let started = Instant::now();
        for (resource, deletion) in found.iter().zip(&mut begun) {
            let left = wait.timeout.saturating_sub(started.elapsed());
            wait_for(&session.client, resource, Goal::Deleted, left, session.terminal).await?;
            *deletion = session.client.get(&["deletions", &deletion.id]).await?;
        }
    }
    session.show_all(&begun, "deletions");
    let Some((resource, error)) = refused else { return Ok(()) };
    session.terminal.say(&format!(
        "{} of {} are being deleted; `{}` was refused, and what comes after it was not asked for",
        begun.len(),
        found.len(),
        clean(&resource.handle)
    ));
    Err(error)
}

/// Before the first request, so that a selector that cannot go as a whole takes nothing.
fn refuse_together(planned: &[Planned<'_>], break_glass: bool) -> Result<(), Error> {
    let passed = ["deletion_brake", "approval_required"];
    let refusals: Vec<_> = planned
        .iter()
        .flat_map(|one| one.plan.refusals.iter().map(move |refusal| (one, refusal)))
        .filter(|(_, refusal)| !(break_glass && passed.contains(&refusal.code.as_str())))
        .map(|(one, refusal)| format!("`{}`: {}", one.resource.handle, refusal.message))
        .collect();
    if refusals.is_empty() {
        return Ok(());
    }
    let message = format!("nothing was deleted; {}", refusals.join("; "));
    let (code, errors) = ("selection_refused", Vec::new());
    Err(Error::Faults { code, message, errors, exit: Exit::Refused })
}
