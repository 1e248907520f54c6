//! `slipway apply` and `slipway diff`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use reqwest::Method;
use slipway_core::files::fault::MOST_FAULTS;
use slipway_wire::broker::Resource;
use slipway_wire::files::{AppliedDocument, Apply, FileFault, PutFaults};
use slipway_wire::problem::FieldError;
use slipway_wire::tenants::Tenant;
use slipway_wire::topology::Workspace;

use super::changes::{self, Line};
use super::folder::{Folder, Found};
use super::{prune, watch};
use crate::arguments::{Output, WaitArguments};
use crate::client::Listing;
use crate::error::Error;
use crate::exit::Exit;
use crate::session::Session;
use crate::tenants::tenant::until_over;
use crate::terminal::clean;
use crate::topology::wait::until_ready;
use crate::wait::{Goal, wait_for};

/// The most documents of a request, and about the most bytes.
const BATCH: usize = 200;
const BATCH_BYTES: usize = 700 * 1_024;

/// The kind whose documents have plans.
const WORKSPACE: &str = "Workspace";

/// The source of a folder that names none.
const DEFAULT_SOURCE: &str = "default";

#[derive(Debug, Clone, Args)]
pub struct FileArguments {
    /// A file in YAML, JSON or Nickel (.ncl), a folder with what is in it, or - for the input;
    /// several if repeated
    #[arg(short, long = "file", value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Who declares this; by default what the folder's .slipway.yaml says
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
    /// Take fields over that other sources wrote
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Clone, Args)]
pub struct ApplyArguments {
    #[command(flatten)]
    pub files: FileArguments,
    /// Delete what the source declared before and no longer does
    #[arg(long)]
    pub prune: bool,
    /// Do what `slipway workspace plan` showed for the workspace among the files, or nothing
    #[arg(long, value_name = "PLAN", conflicts_with = "watch")]
    pub plan: Option<String>,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Keep the files applied: again when one changes, and every minute
    #[arg(long, conflicts_with = "wait")]
    pub watch: bool,
    /// How often --watch looks for changed files
    #[arg(long, value_name = "TIME", value_parser = slipway_core::time::parse_duration, default_value = "5s", requires = "watch")]
    pub interval: std::time::Duration,
    #[command(flatten)]
    pub wait: WaitArguments,
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway apply -f sample.yaml",
    "slipway apply -f shop --source shop --prune --yes",
    "slipway apply -f shop --wait --timeout 10m",
    "slipway apply -f shop.ncl",
    "slipway diff -f shop",
];

/// The files, and who declares them.
#[derive(Debug)]
pub(super) struct Declared {
    pub(super) folder: Folder,
    pub(super) source: String,
    /// Whether somebody said who it is.
    pub(super) named: bool,
    force: bool,
}

impl Declared {
    pub(super) fn read(arguments: &FileArguments) -> Result<Self, Error> {
        let folder = Folder::read(&arguments.files)?;
        let source = arguments.source.clone().or_else(|| folder.source.clone());
        let named = source.is_some();
        let source = source.unwrap_or_else(|| DEFAULT_SOURCE.to_owned());
        Ok(Self { folder, source, named, force: arguments.force })
    }

    fn workspaces(&mut self) -> impl Iterator<Item = &mut Found> {
        let is_workspace = |found: &&mut Found| found.object.kind == WORKSPACE;
        self.folder.documents.iter_mut().filter(is_workspace)
    }

    /// Lets the workspace among the files do what this plan says, or nothing.
    fn hold_to(&mut self, plan: &str) -> Result<(), Error> {
        let mut workspaces: Vec<_> = self.workspaces().collect();
        match &mut workspaces[..] {
            [only] => only.submitted.plan = Some(plan.to_owned()),
            other => {
                let problem = format!(
                    "--plan is for one workspace, and the files have {} of them",
                    other.len()
                );
                return Err(Error::Usage(problem));
            }
        }
        Ok(())
    }

    /// The same for what was shown before somebody agreed.
    fn hold_to_shown(&mut self, shown: &[Line]) {
        for found in self.workspaces() {
            let line = shown.iter().find(|line| line.object == found.object);
            let plan = line.and_then(|line| line.applied.plan.as_ref());
            let digest = plan.map(|plan| plan.digest.clone());
            found.submitted.plan = found.submitted.plan.take().or(digest);
        }
    }

    /// Applies everything, in requests of a limited size.
    pub(super) async fn send(
        &self,
        session: &mut Session<'_>,
        dry_run: bool,
    ) -> Result<Vec<Line>, Error> {
        let mut lines: Vec<Line> = Vec::with_capacity(self.folder.documents.len());
        for batch in batches(&self.folder.documents) {
            let documents = batch.iter().map(|found| found.submitted.clone()).collect();
            let body = Apply { source: self.source.clone(), documents, dry_run, force: self.force };
            let applied: Vec<AppliedDocument> = session.client.post(&["apply"], &body).await?;
            let earlier = lines.iter().any(|line| line.is("created"));
            for (found, mut applied) in batch.iter().zip(applied) {
                if dry_run && earlier {
                    allow_missing(&mut applied);
                }
                lines.push(Line::new(found, applied));
            }
        }
        Ok(lines)
    }
}

/// What an earlier request of a dry run would create is not there for a later one.
fn allow_missing(applied: &mut AppliedDocument) {
    let missing = applied.refusal.as_ref().is_some_and(|refusal| {
        let code = refusal.code.as_str();
        code.ends_with("_not_found")
            || ["credential_not_assigned", "namespace_not_ready"].contains(&code)
    });
    if missing {
        *applied = AppliedDocument { outcome: "created".to_owned(), ..AppliedDocument::default() };
    }
}

fn batches(documents: &[Found]) -> Vec<&[Found]> {
    let (mut batches, mut begin, mut bytes) = (Vec::new(), 0, 0);
    for (number, found) in documents.iter().enumerate() {
        let size = found.submitted.document.to_string().len() + found.submitted.origin.len() + 64;
        if number > begin && (number - begin >= BATCH || bytes + size > BATCH_BYTES) {
            batches.push(&documents[begin..number]);
            (begin, bytes) = (number, 0);
        }
        bytes += size;
    }
    if begin < documents.len() {
        batches.push(&documents[begin..]);
    }
    batches
}

pub(crate) async fn diff(session: &mut Session<'_>, arguments: FileArguments) -> Result<(), Error> {
    let declared = Declared::read(&arguments)?;
    let lines = declared.send(session, true).await?;
    session.show(&lines, |lines, _| changes::shown(lines));
    let faults = faults(&declared, &lines);
    if !faults.is_empty() {
        let message = format!("{}; everything else can be applied", counted(faults.len()));
        return Err(failed(message, faults, Exit::Usage));
    }
    if changes::differ(&lines) { Err(Error::Differs) } else { Ok(()) }
}

/// Shows what an apply would do to the servers of the workspaces among the files, with the gates
/// in the way.
pub(crate) async fn plan(session: &mut Session<'_>, arguments: FileArguments) -> Result<(), Error> {
    let mut declared = Declared::read(&arguments)?;
    declared.folder.documents.retain(|found| found.object.kind == WORKSPACE);
    if declared.folder.documents.is_empty() && declared.folder.broken.is_empty() {
        return Err(Error::Usage("the files have no document of kind Workspace".to_owned()));
    }
    let lines = declared.send(session, true).await?;
    session.show(&lines, |lines, _| changes::shown(lines));
    let faults = faults(&declared, &lines);
    if !faults.is_empty() {
        let message = format!("{} in the way", counted(faults.len()));
        return Err(failed(message, faults, Exit::Refused));
    }
    if let ([Line { applied, .. }], true) = (&lines[..], session.output.is_for_people())
        && let Some(plan) = &applied.plan
    {
        let files: Vec<_> = arguments.files.iter().map(|file| file.display().to_string()).collect();
        session.terminal.say(&format!(
            "to do exactly this, or nothing: slipway apply -f {} --plan {}",
            clean(&files.join(" -f ")),
            clean(&plan.digest)
        ));
    }
    Ok(())
}

pub(crate) async fn run(session: &mut Session<'_>, arguments: ApplyArguments) -> Result<(), Error> {
    if arguments.watch {
        return watch::run(session, &arguments).await;
    }
    let mut declared = Declared::read(&arguments.files)?;
    if let Some(plan) = &arguments.plan {
        declared.hold_to(plan)?;
    }
    if arguments.prune {
        prune::check(session, &declared, arguments.yes)?;
    }
    let asks = session.terminal.traits().asks && !arguments.yes;
    if asks {
        let planned = declared.send(session, true).await?;
        if changes::differ(&planned) {
            session.terminal.say(&changes::shown(&planned));
            session.terminal.agree(false, "Apply this?")?;
            declared.hold_to_shown(&planned);
        }
    }
    let begun = Instant::now();
    let lines = declared.send(session, false).await?;
    show(session, &lines);
    let faults = faults(&declared, &lines);
    record(session, &declared, &faults).await?;
    let pruned = match arguments.prune {
        true => {
            let limit = arguments.wait.wait.then_some(arguments.wait.timeout);
            prune::run(session, &declared, &lines, arguments.yes, limit).await?
        }
        false => Vec::new(),
    };
    if arguments.wait.wait {
        wait(session, &lines, begun, &arguments).await?;
    }
    let faults: Vec<_> = faults.into_iter().chain(pruned).collect();
    if faults.is_empty() {
        return Ok(());
    }
    let message = format!("{}; everything else was applied", counted(faults.len()));
    Err(failed(message, faults, Exit::Refused))
}

/// Shows what was done, and new keys.
pub(super) fn show(session: &mut Session<'_>, lines: &[Line]) {
    session.show(&lines, |lines, _| changes::shown(lines));
    for line in lines {
        if let (Some(secret), Output::Table | Output::Wide) = (&line.applied.secret, session.output)
        {
            let text = format!("{}, shown this once:\n{}\n", line.object, clean(secret));
            session.terminal.print(&text);
        }
    }
}

/// Tells the server what was not applied, for `slipway source` and `slipway status`; without
/// any fault, it forgets those of the apply before.
pub(super) async fn record(
    session: &Session<'_>,
    declared: &Declared,
    faults: &[FieldError],
) -> Result<(), Error> {
    let body = PutFaults {
        faults: faults.iter().take(MOST_FAULTS).map(file_fault).collect(),
        total: u32::try_from(faults.len()).unwrap_or(u32::MAX),
    };
    let path = ["apply-sources", declared.source.as_str(), "faults"];
    match session.client.silent_json(Method::PUT, &path, &body).await {
        // The server is older than this command.
        Err(error) if error.exit() == Exit::NotFound => Ok(()),
        recorded => recorded,
    }
}

/// The place of a fault is `FILE:LINE`, with the object behind it if that is known.
fn file_fault(fault: &FieldError) -> FileFault {
    let (place, object) = match fault.field.split_once(": ") {
        Some((place, object)) => (place, Some(object)),
        None => (fault.field.as_str(), None),
    };
    let numbered = place.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
    let (file, line) = match numbered {
        Some((file, line)) => (file, Some(line)),
        None => (place, None),
    };
    let message = match object {
        Some(object) => format!("{object}: {}", fault.message),
        None => fault.message.clone(),
    };
    FileFault { file: file.to_owned(), line, code: fault.code.clone(), message }
}

/// What could not be read, and what was refused.
pub(super) fn faults(declared: &Declared, lines: &[Line]) -> Vec<FieldError> {
    let broken = declared.folder.broken.iter().cloned();
    broken.chain(lines.iter().flat_map(Line::faults)).collect()
}

fn failed(message: String, errors: Vec<FieldError>, exit: Exit) -> Error {
    Error::Faults { code: "apply_incomplete", message, errors, exit }
}

fn counted(count: usize) -> String {
    if count == 1 { "1 fault".to_owned() } else { format!("{count} faults") }
}

/// Waits for every resource, every tenant and every workspace among the documents.
async fn wait(
    session: &mut Session<'_>,
    lines: &[Line],
    begun: Instant,
    arguments: &ApplyArguments,
) -> Result<(), Error> {
    let left = || arguments.wait.timeout.saturating_sub(begun.elapsed());
    let applied = |kind: &'static str| {
        let of_kind = move |line: &&Line| line.object.kind == kind && !line.is("refused");
        lines.iter().filter(of_kind).map(|line| {
            let project = line.object.project.clone().unwrap_or_else(|| "default".to_owned());
            (project, line.object.name.clone())
        })
    };
    for (project, handle) in applied("Resource") {
        let wanted =
            Listing::first(Some(1)).with("project", Some(project)).with("handle", Some(handle));
        let found = session.client.list::<Resource>(&["resources"], wanted).await?;
        if let Some(found) = found.items.first() {
            wait_for(&session.client, found, Goal::Ready, left(), session.terminal).await?;
        }
    }
    let mut tenants: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (project, name) in applied("Tenant") {
        tenants.entry(project).or_default().insert(name);
    }
    for (project, names) in tenants {
        let path = ["projects", &project, "tenants"];
        let found = session.client.list::<Tenant>(&path, Listing::default()).await?;
        for tenant in found.items.iter().filter(|tenant| names.contains(&tenant.name)) {
            until_over(session, tenant, left()).await?;
        }
    }
    for (project, name) in applied("Workspace") {
        let wanted = Listing::default().with("project", Some(project));
        let found = session.client.list::<Workspace>(&["workspaces"], wanted).await?;
        if let Some(found) = found.items.iter().find(|one| one.name == name) {
            until_ready(session, found, left()).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_has_its_file_its_line_and_its_object() {
        let fault = |field: &str| {
            let (code, message) = ("invalid_input".to_owned(), "is wrong".to_owned());
            file_fault(&FieldError { field: field.to_owned(), code, message })
        };
        let whole = fault("a/b.yaml:3: Resource web");
        assert_eq!((whole.file.as_str(), whole.line), ("a/b.yaml", Some(3)));
        assert_eq!(whole.message, "Resource web: is wrong");
        let plain = fault("a.yaml");
        assert_eq!((plain.file.as_str(), plain.line), ("a.yaml", None));
        assert_eq!(plain.message, "is wrong");
    }
}
