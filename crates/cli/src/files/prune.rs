//! Removes what a source declared before and no longer does.
//!
//! Everything goes through the one deletion, with its plan, its protection and its brake. What
//! another source declares too stays, with the fields of that source. A document that cannot be read
//! might be about anything, so one of them means that nothing is pruned.

use std::collections::BTreeSet;
use std::time::Duration;

use reqwest::Method;
use slipway_core::files::document::DocumentKind;
use slipway_wire::broker::Resource;
use slipway_wire::deletion::plan::{DeletionPlan, PlanDeletion};
use slipway_wire::files::{DeclaredObject, ObjectReference};
use slipway_wire::fleet::StackTemplate;
use slipway_wire::problem::FieldError;
use slipway_wire::topology::{TeardownWorkspace, Workspace};

use super::apply::Declared;
use super::changes::Line;
use crate::client::Listing;
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::terminal::clean;
use crate::topology::wait::until_gone;
use crate::wait::{Goal, wait_for};

const REASON: &str = "no longer declared";

/// Refuses before anything is applied.
pub(super) fn check(session: &Session<'_>, declared: &Declared, yes: bool) -> Result<(), Error> {
    if !declared.named {
        let problem = "--prune needs to know whose objects these are: give --source, or write `source: NAME` into .slipway.yaml of the folder";
        return Err(Error::Usage(problem.to_owned()));
    }
    // Without a terminal nobody can agree to a deletion later.
    session.terminal.can_agree(yes)
}

/// Answers what could not be removed yet. With a limit it waits until resources and workspaces
/// are gone before it removes what they use.
pub(super) async fn run(
    session: &mut Session<'_>,
    declared: &Declared,
    lines: &[Line],
    yes: bool,
    limit: Option<Duration>,
) -> Result<Vec<FieldError>, Error> {
    let invalid = |line: &Line| {
        let refusal = line.applied.refusal.as_ref();
        refusal.is_some_and(|refusal| refusal.code == "invalid_input")
    };
    if !declared.folder.broken.is_empty() || lines.iter().any(invalid) {
        session.terminal.say("nothing was pruned, since a document cannot be read");
        return Ok(Vec::new());
    }
    let path = ["apply-sources", &declared.source, "objects"];
    let known = match session.client.list::<DeclaredObject>(&path, Listing::default()).await {
        Ok(known) => known.items,
        // It declared nothing yet.
        Err(error) if error.exit() == Exit::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut gone = missing(declared, known);
    if gone.is_empty() {
        return Ok(Vec::new());
    }
    // What refers to something goes before it.
    gone.sort_by_key(|one| std::cmp::Reverse(rank(&one.object.kind)));
    let mut plans = Vec::new();
    for one in &gone {
        plans.push(plan(session, one).await?);
    }
    session.terminal.say(&shown(&gone, &plans));
    session.terminal.agree(yes, "Delete this?")?;
    let mut left = Vec::new();
    let mut leaving: Vec<&DeclaredObject> = Vec::new();
    for (one, plan) in gone.iter().zip(plans) {
        let takes_time = ["Resource", "Workspace"].contains(&&*one.object.kind);
        if let (false, Some(limit)) = (takes_time, limit) {
            for object in std::mem::take(&mut leaving) {
                wait(session, object, limit).await?;
            }
        }
        match remove(session, &declared.source, one, plan).await {
            Ok(()) if takes_time && one.shared_with.is_empty() => leaving.push(one),
            Ok(()) => {}
            // Something still uses it, or protects it: a later apply tries again.
            Err(Error::Problem(problem)) if problem.status == 409 => left.push(FieldError {
                field: one.object.to_string(),
                code: problem.code.clone(),
                message: format!("is not pruned yet: {}", problem.message),
            }),
            Err(error) => return Err(error),
        }
    }
    if let Some(limit) = limit {
        for object in leaving {
            wait(session, object, limit).await?;
        }
    }
    Ok(left)
}

async fn wait(
    session: &mut Session<'_>,
    object: &DeclaredObject,
    limit: Duration,
) -> Result<(), Error> {
    if object.object.kind == "Workspace" {
        return until_gone(session, &object.id, limit).await;
    }
    match session.client.get::<Resource>(&["resources", &object.id]).await {
        Ok(found) => {
            wait_for(&session.client, &found, Goal::Deleted, limit, session.terminal).await?;
            Ok(())
        }
        Err(error) if error.exit() == Exit::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn is_of_project(object: &ObjectReference) -> bool {
    DocumentKind::parse(&object.kind).is_some_and(DocumentKind::is_of_project)
}

/// The kind in the words of the API: `TenantProfile` is `tenant_profile`, or `tenant-profile`.
fn noun(kind: &str, between: char) -> String {
    let mut noun = String::new();
    for letter in kind.chars() {
        if letter.is_ascii_uppercase() && !noun.is_empty() {
            noun.push(between);
        }
        noun.push(letter.to_ascii_lowercase());
    }
    noun
}

fn rank(kind: &str) -> usize {
    DocumentKind::ALL.iter().take_while(|one| one.as_str() != kind).count()
}

/// What the source declared and no document is about.
fn missing(declared: &Declared, known: Vec<DeclaredObject>) -> Vec<DeclaredObject> {
    let default = "default".to_owned();
    let documents: BTreeSet<ObjectReference> = declared
        .folder
        .documents
        .iter()
        .map(|found| {
            let mut object = found.object.clone();
            let kind = DocumentKind::parse(&object.kind);
            if kind.is_some_and(|kind| kind.in_project() && kind != DocumentKind::Key) {
                object.project = object.project.or_else(|| Some(default.clone()));
            }
            if !kind.is_some_and(DocumentKind::in_cloud) {
                object.cloud = None;
            }
            object
        })
        .collect();
    known.into_iter().filter(|one| !documents.contains(&one.object)).collect()
}

/// The plan of a deletion, for the kinds that have one.
async fn plan(
    session: &mut Session<'_>,
    one: &DeclaredObject,
) -> Result<Option<DeletionPlan>, Error> {
    // A template is many rows, each deleted by itself; a workspace is taken down with its
    // servers, and its name is typed for that.
    let without = ["Key", "Template", "Workspace"];
    let without = is_of_project(&one.object) || without.contains(&&*one.object.kind);
    if without || !one.shared_with.is_empty() {
        return Ok(None);
    }
    let (kind, reference) = (noun(&one.object.kind, '_'), one.id.clone());
    let body = PlanDeletion { kind, reference, cascade: false };
    session.client.post(&["deletion-plans"], &body).await.map(Some)
}

fn shown(gone: &[DeclaredObject], plans: &[Option<DeletionPlan>]) -> String {
    let line = |(one, plan): (&DeclaredObject, &Option<DeletionPlan>)| {
        let object = clean(&one.object.to_string());
        if !one.shared_with.is_empty() {
            return format!(
                "  {object} stays: {} declares it too",
                clean(&one.shared_with.join(", "))
            );
        }
        let refusals = plan.iter().flat_map(|plan| &plan.refusals);
        let refusals: Vec<_> = refusals.map(|one| clean(&one.message)).collect();
        let protected = plan.iter().flat_map(|plan| &plan.protected).map(|one| clean(one));
        let hindered: Vec<_> = refusals.into_iter().chain(protected).collect();
        match hindered.is_empty() {
            true if one.object.kind == "Workspace" => format!("- {object} with all its servers"),
            true => format!("- {object}"),
            false => format!("- {object}: {}", hindered.join("; ")),
        }
    };
    gone.iter().zip(plans).map(line).collect::<Vec<_>>().join("\n")
}

async fn remove(
    session: &mut Session<'_>,
    source: &str,
    one: &DeclaredObject,
    plan: Option<DeletionPlan>,
) -> Result<(), Error> {
    let ObjectReference { kind, project, name, .. } = &one.object;
    let project = project.as_deref().unwrap_or_default();
    let mut query = vec![("reason", REASON.to_owned())];
    query.extend(plan.map(|plan| ("plan", plan.id)));
    if !one.shared_with.is_empty() {
        return release(session, source, &one.object).await;
    }
    let client = &session.client;
    let removed = match kind.as_str() {
        "Assignment" => {
            client.silent(Method::DELETE, &["projects", project, "credentials", name]).await
        }
        "Placement" => client.silent(Method::DELETE, &["projects", name, "cluster"]).await,
        "Key" => client.silent_with(Method::DELETE, &["keys", &one.id], &query).await,
        "Template" => remove_versions(session, &one.object).await,
        "Workspace" => take_down(session, one).await,
        kind => {
            let path = format!("{}s", noun(kind, '-'));
            client.silent_with(Method::DELETE, &[&path, &one.id], &query).await
        }
    };
    removed?;
    session.terminal.say(&format!("- {} is being deleted", clean(&one.object.to_string())));
    // These have no identity of their own that would tell an old one from a new one.
    if is_of_project(&one.object) {
        release(session, source, &one.object).await?;
    }
    Ok(())
}

/// A workspace with its servers, in order. One that leaves already goes on leaving.
async fn take_down(session: &Session<'_>, one: &DeclaredObject) -> Result<(), Error> {
    let client = &session.client;
    let found: Workspace = match client.get(&["workspaces", &one.id]).await {
        Ok(found) => found,
        Err(error) if error.exit() == Exit::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if found.deletion_id.is_some() {
        return Ok(());
    }
    // Whoever prunes has agreed to what is shown.
    let reason = Some(REASON.to_owned());
    let body = TeardownWorkspace { confirm: found.name, reason, ..TeardownWorkspace::default() };
    client.silent_json(Method::POST, &["workspaces", &one.id, "teardown"], &body).await
}

/// Every version of a template.
async fn remove_versions(session: &Session<'_>, object: &ObjectReference) -> Result<(), Error> {
    let client = &session.client;
    let wanted = Listing::default()
        .with("project", object.project.as_deref())
        .with("name", Some(object.name.as_str()));
    let versions = client.list::<StackTemplate>(&["templates"], wanted).await?.items;
    let query = [("reason", REASON.to_owned())];
    for version in versions {
        let path = ["templates", &version.id];
        client.silent_with(Method::DELETE, &path, &query).await?;
    }
    Ok(())
}

async fn release(
    session: &mut Session<'_>,
    source: &str,
    object: &ObjectReference,
) -> Result<(), Error> {
    let ObjectReference { kind, project, cloud, name } = object.clone();
    let optional = [("project", project), ("cloud", cloud)];
    let optional = optional.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let query: Vec<(&str, String)> =
        [("kind", kind), ("name", name)].into_iter().chain(optional).collect();
    let path = ["apply-sources", source, "objects"];
    session.client.silent_with(Method::DELETE, &path, &query).await
}
