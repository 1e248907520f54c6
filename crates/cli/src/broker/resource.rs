//! `slipway resource …`: what operators declare.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use slipway_wire::broker::{
    Abandon, AttemptSummary, DeclareResource, HistoryEntry, Orphan, Orphaned, Resource,
    ResourceDetail, Retry, SecondAttempt,
};
use slipway_wire::deletion::Deletion;
use slipway_wire::nodes::{ConfirmGone, ForceDrain, IssuedToken, Reenrol};

use super::change::{self, ChangeArguments, ReplaceArguments, UpdateArguments};
use super::select;
use super::target::{Gone, TargetArguments, find, find_id};
use crate::arguments::{
    DeletionArguments, PageArguments, WaitArguments, distinct, parse_duration, parse_pair,
    whole_seconds,
};
use crate::catalog::parameters;
use crate::catalog::relabel::RelabelArguments;
use crate::client::Listing;
use crate::complete;
use crate::error::Error;
use crate::kind::{Cells, Detail, Facts, Kind, Row};
use crate::nodes::enrolment::{self, EnrolmentArguments};
use crate::nodes::node;
use crate::operations::explain;
use crate::output::{dash_if_empty, name_and_id, observed, optional_time, or_dash, pairs, time};
use crate::session::Session;
use crate::suggest;
use crate::wait::{Goal, wait_for};

#[derive(Debug, Clone, Subcommand)]
pub enum ResourceCommand {
    /// Declare a resource; it is brought to Ready by itself
    // Here `--version` is the version of the blueprint.
    #[command(disable_version_flag = true)]
    Create {
        /// The name of the slot, unique in its project
        #[arg(long)]
        handle: String,
        /// The blueprint to make it from, for instance local-node
        #[arg(long, add = complete::names("blueprint"))]
        blueprint: String,
        /// Project: name, id or beginning of the id
        #[arg(long, add = complete::names("project"))]
        project: Option<String>,
        /// Version of the blueprint; the newest if not given
        #[arg(long = "version", value_name = "VERSION")]
        blueprint_version: Option<String>,
        /// Credential: name, id or beginning of the id; the project's only one if not given
        #[arg(long)]
        credential: Option<String>,
        /// A parameter of the blueprint, which says what type it has; a field of an object as
        /// NAME.FIELD, and any value may be written as JSON
        #[arg(
            short,
            long = "parameter",
            visible_alias = "param",
            value_name = "NAME=VALUE",
            value_parser = parse_pair
        )]
        parameters: Vec<(String, String)>,
        /// A YAML or JSON file with parameters; those of the command line win
        #[arg(long, value_name = "FILE")]
        params_file: Option<PathBuf>,
        /// A label
        #[arg(short, long = "label", value_name = "KEY=VALUE", value_parser = parse_pair)]
        labels: Vec<(String, String)>,
        /// Protect it from deletion
        #[arg(long)]
        protected: bool,
        #[command(flatten)]
        wait: WaitArguments,
    },
    /// List resources
    List {
        /// Only of this project (name, id or beginning of the id)
        #[arg(long, add = complete::names("project"))]
        project: Option<String>,
        /// Of all projects, also if the context has one
        #[arg(long, conflicts_with = "project")]
        all_projects: bool,
        /// Only in this phase, for instance Ready
        #[arg(long, add = complete::phases())]
        phase: Option<String>,
        /// Only of this blueprint (slug or id)
        #[arg(long, add = complete::names("blueprint"))]
        blueprint: Option<String>,
        /// Only with this label in effect; given several times, with all of them
        #[arg(short, long = "label", value_name = "KEY[=VALUE]")]
        labels: Vec<String>,
        /// Only what does not advance, or for this reason (the code of a blocker)
        #[arg(long, value_name = "CODE", num_args = 0..=1, default_missing_value = "true")]
        blocked: Option<String>,
        /// Also those whose deletion is done
        #[arg(long)]
        show_deleted: bool,
        /// Go on and show every resource that changes, until interrupted
        #[arg(long, conflicts_with = "limit")]
        watch: bool,
        #[command(flatten)]
        page: PageArguments,
    },
    /// Show one resource
    Get(TargetArguments),
    /// Change parameters, version or labels of a resource, or of all that have some labels, in place
    ///
    /// Shows the difference first, and asks once. With a selector, none is changed if one of
    /// them would be refused. What cannot be changed in place is refused;
    /// `slipway resource replace` makes the resource anew.
    // Here `--version` is the version of the blueprint.
    #[command(disable_version_flag = true)]
    Update(Box<UpdateArguments>),
    /// Replace all labels of a resource, or change some; they win over those of its project
    Relabel {
        #[command(flatten)]
        target: TargetArguments,
        #[command(flatten)]
        labels: RelabelArguments,
    },
    /// Drain a resource, or all that have some labels, take them down in order and release them
    Delete {
        /// Handle, id or beginning of the id of the resource
        #[arg(
            value_name = "RESOURCE",
            required_unless_present = "labels",
            conflicts_with = "labels",
            add = complete::names("resource")
        )]
        target: Option<String>,
        /// All with this label in effect; given several times, with all of them
        #[arg(short, long = "label", value_name = "KEY[=VALUE]")]
        labels: Vec<String>,
        /// The project of the handle or of the labels (name, id or beginning of the id)
        #[arg(long, add = complete::names("project"))]
        project: Option<String>,
        #[command(flatten)]
        deletion: DeletionArguments,
        #[command(flatten)]
        wait: WaitArguments,
    },
    /// List the changes of phase of a resource, the newest first
    History {
        #[command(flatten)]
        target: TargetArguments,
        /// Of this attempt; the current one if not given
        #[arg(long, value_name = "NUMBER")]
        attempt: Option<i32>,
        #[command(flatten)]
        page: PageArguments,
    },
    /// Explain the state of a resource: what it waits for, what blocks it, what happens next
    Explain(TargetArguments),
    /// List the attempts of a resource, the newest first, each with how it failed
    Attempts {
        #[command(flatten)]
        target: TargetArguments,
        #[command(flatten)]
        page: PageArguments,
    },
    /// Take a resource down in order and make it anew, as declared or changed
    ///
    /// The slot keeps its handle, its labels and its history. Refused, like a deletion, if the
    /// resource is protected.
    // Here `--version` is the version of the blueprint.
    #[command(disable_version_flag = true)]
    Replace(Box<ReplaceArguments>),
    /// Take down what failed for good and try again, as declared or corrected
    // Here `--version` is the version of the blueprint.
    #[command(disable_version_flag = true)]
    Retry {
        #[command(flatten)]
        target: TargetArguments,
        /// Why it should work now
        #[arg(long)]
        reason: String,
        #[command(flatten)]
        change: ChangeArguments,
        #[command(flatten)]
        wait: WaitArguments,
    },
    /// Do not wait for a node that does not drain: revoke its key and go on
    ForceDrain {
        #[command(flatten)]
        target: TargetArguments,
        /// Why; what the node was doing may be lost
        #[arg(long)]
        reason: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        wait: WaitArguments,
    },
    /// Let the machine of a resource enrol again, without replacing it
    ///
    /// For a node that left, that never reported, or that is unreachable because its machine
    /// lost its identity. Its key ends, and a bootstrap token is shown this once: write it to
    /// the machine's token file, remove the old identity, and restart the agent.
    Reenrol {
        #[command(flatten)]
        target: TargetArguments,
        /// Why its machine has to enrol again
        #[arg(long)]
        reason: String,
        /// How long the token lives, from 5m to 24h
        #[arg(long, value_name = "TIME", value_parser = parse_duration)]
        ttl: Option<Duration>,
    },
    /// Show once what a machine has to be booted with, so that its agent enrols
    ///
    /// Issues a bootstrap token; the one before no longer works.
    Enrolment(EnrolmentArguments),
    /// Say that the machine of a resource is gone, which people booted by hand
    ///
    /// Only after `slipway resource delete`. Switch the machine off or wipe it first: from
    /// then on Slipway holds it for gone.
    ConfirmGone {
        #[command(flatten)]
        target: TargetArguments,
        /// How the machine went
        #[arg(long)]
        reason: String,
    },
    /// Give up a deletion that can never end, because its substrate is lost for good
    ///
    /// The resource becomes Deleted although nobody proved it gone: `slipway leaks` lists
    /// what may still exist and cost. Only after `slipway resource delete`, and only if
    /// its substrate cannot be read any more or its deletion is overdue.
    Abandon {
        #[command(flatten)]
        target: TargetArguments,
        /// Why nobody can prove it gone any more
        #[arg(long)]
        reason: String,
        /// The handle once more, where nobody can be asked to type it
        #[arg(long, value_name = "HANDLE")]
        confirm: Option<String>,
    },
    /// Keep what holds an overdue teardown in its cloud on purpose, so that the rest can go
    ///
    /// Strips no finalizer: the managed resource is told to keep its external object, and a
    /// leak record with its external name stays open until somebody resolves it. Only while
    /// the teardown is held past its deadline; `slipway explain resource` says by what.
    Orphan {
        #[command(flatten)]
        target: TargetArguments,
        /// Why the external object is kept
        #[arg(long)]
        reason: String,
        /// Only show what would be kept
        #[arg(long)]
        dry_run: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway resource create --handle web-1 --blueprint local-node --wait",
    "slipway resource create --handle web-2 --blueprint local-node -p busy_seconds=5 -l tier=web",
    "slipway resource list",
    "slipway resource list --project default --phase Ready -o json",
    "slipway resource list --blocked",
    "slipway resource list -o name",
    "slipway resource list -o jsonpath='{.items[*].handle}'",
    "slipway resource list --watch",
    "slipway resource get web-1",
    "slipway resource get web-1 -o yaml",
    "slipway resource history web-1 --limit 20",
    "slipway resource update web-1 --version v2 --dry-run",
    "slipway resource update web-1 --param size=3 --label tier=db --yes --wait",
    "slipway resource update web-1 --unset size --remove-label team --yes",
    "slipway resource update -l team=a --project shop --param size=3 --yes",
    "slipway resource relabel web-1 -l tier=web -l team=blue",
    "slipway resource relabel web-1 --add tier=db --remove team",
    "slipway resource delete web-1 --reason replaced",
    "slipway resource delete web-1 --yes --wait --timeout 10m",
    "slipway resource delete web-1 --yes --ignore-not-found",
    "slipway resource delete -l team=a --project shop --reason moved --yes",
    "slipway resource explain web-1",
    "slipway resource replace web-1 --param zone=b",
    "slipway resource replace web-1 --reason new-zone --param zone=b --yes --wait",
    "slipway resource replace web-1 --surge --version v2 --yes --wait",
    "slipway resource replace web-1 --abort --yes",
    "slipway resource retry web-1 --reason quota-raised --wait",
    "slipway resource retry web-2 --reason too-busy --param busy_seconds=1",
    "slipway resource attempts web-2",
    "slipway resource force-drain web-1 --reason node-is-lost --yes --wait",
    "slipway resource reenrol web-1 --reason disk-was-full",
    "slipway resource enrolment rack-7",
    "slipway resource enrolment rack-7 --format env --ttl 30m",
    "slipway resource enrolment rack-7 --format daemon-set --image registry.example/plexd:1.0",
    "slipway resource confirm-gone rack-7 --reason switched-off",
    "slipway resource abandon web-1 --reason cluster-is-lost --confirm web-1",
    "slipway resource orphan web-1 --reason provider-is-stuck --dry-run",
    "slipway resource orphan web-1 --reason provider-is-stuck --yes",
];

impl Kind for Resource {
    const PATH: &'static str = "resources";
}

impl Row for Resource {
    fn cells(&self) -> Cells {
        let blockers: Vec<_> = self.blockers.iter().map(|b| b.code.as_str()).collect();
        vec![
            ("HANDLE", self.handle.clone()),
            ("PROJECT", self.project.as_ref().unwrap_or(&self.project_id).clone()),
            (
                "PHASE",
                format!("{}{}{}", self.phase, node::silence(self.node.as_ref()), second(self)),
            ),
            ("AGE", self.created_at.clone()),
            ("BLOCKERS", dash_if_empty(blockers.join(", "))),
            ("BLUEPRINT", format!("{}@{}", self.blueprint, self.blueprint_version)),
        ]
    }

    fn wide(&self) -> Cells {
        let node = self.node.as_ref();
        vec![
            ("SINCE", self.phase_since.clone()),
            ("NODE", or_dash(node.map(|node| node.hostname.as_str()))),
            ("LABELS", dash_if_empty(pairs(&self.labels))),
            ("ID", self.id.clone()),
        ]
    }
}

/// The second attempt, behind the phase of the one in use.
fn second(resource: &Resource) -> String {
    let second = resource.second_attempt.as_ref();
    second.map(|one| format!(" (attempt {} {})", one.number, one.phase)).unwrap_or_default()
}

impl Row for HistoryEntry {
    fn cells(&self) -> Cells {
        vec![
            ("AT", time(&self.at)),
            ("FROM", or_dash(self.from.as_deref())),
            ("TO", self.to.clone()),
            ("WHY", self.why.clone()),
        ]
    }
}

impl Row for AttemptSummary {
    fn cells(&self) -> Cells {
        let failure = self.failure.as_ref();
        vec![
            ("ATTEMPT", self.number.to_string()),
            ("PHASE", self.phase.clone()),
            ("SINCE", self.phase_since.clone()),
            ("VERSION", self.blueprint_version.clone()),
            ("PARAMETERS", dash_if_empty(pairs(&self.parameters))),
            ("FAILED", or_dash(failure.map(|failure| failure.at.as_str()))),
            ("REASON", or_dash(failure.map(|failure| failure.reason.as_str()))),
        ]
    }
}

impl Detail for Resource {
    const NOUN: &'static str = "resource";

    fn facts(&self) -> Facts {
        let attempt = &self.attempt;
        let blockers: Vec<_> =
            self.blockers.iter().map(|b| format!("{}: {}", b.code, b.message)).collect();
        vec![
            ("handle", Some(self.handle.clone())),
            ("id", Some(self.id.clone())),
            ("project", Some(name_and_id(self.project.as_deref(), &self.project_id))),
            (
                "phase",
                Some(format!(
                    "{}{} since {}",
                    self.phase,
                    node::silence(self.node.as_ref()),
                    time(&self.phase_since)
                )),
            ),
            ("failure", attempt.failure_reason.clone()),
            ("blockers", Some(blockers.join("; "))),
            ("blueprint", Some(format!("{}@{}", self.blueprint, self.blueprint_version))),
            ("engine", Some(self.engine.clone())),
            ("parameters", Some(pairs(&attempt.parameters))),
            (
                "update",
                self.update_pending_since.as_ref().map(|at| format!("pending since {}", time(at))),
            ),
            ("labels", Some(pairs(&self.labels))),
            ("inherited", Some(inherited(self))),
            ("attempt", Some(format!("{} ({})", attempt.number, attempt.xr_name))),
            ("second attempt", self.second_attempt.as_ref().map(in_words)),
            ("node", self.node.as_ref().map(node::in_short)),
            ("deletion", self.deletion_id.clone()),
            ("created", Some(time(&self.created_at))),
            ("deleted", optional_time(self.deleted_at.as_ref())),
            ("gone, proven twice", optional_time(attempt.absence_proven_at.as_ref())),
            ("abandoned", optional_time(attempt.abandoned_at.as_ref())),
            ("revision", Some(self.revision.to_string())),
        ]
    }
}

fn in_words(second: &SecondAttempt) -> String {
    let SecondAttempt { number, phase, .. } = second;
    let what = match second.comes_in_use {
        true => "comes in use when it is Ready",
        false => "is being taken down",
    };
    let blockers = second.blockers.iter().map(|one| format!("; {}: {}", one.code, one.message));
    let failure = second.failure_reason.iter().map(|reason| format!("; failed: {reason}"));
    let rest: String = failure.chain(blockers).collect();
    format!("{number} is {phase} and {what}{rest}")
}

/// Includes the observation and the history; `-o yaml` shows all of it.
impl Detail for ResourceDetail {
    const NOUN: &'static str = "resource";

    fn open_deletion(&self) -> Option<&str> {
        self.resource.deletion_id.as_deref().filter(|_| self.resource.deleted_at.is_none())
    }

    fn facts(&self) -> Facts {
        /// Number of transitions and of attempts that are shown.
        const SHOWN: usize = 6;
        let line = |entry: &HistoryEntry| format!("{} at {}", entry.to, time(&entry.at));
        let history: Vec<_> = self.history.iter().take(SHOWN).map(line).collect();
        let mut facts = self.resource.facts();
        let since = self.observed_since.as_deref();
        let seen = self.observed.as_ref();
        let seen = seen.map(|seen| observed(seen, since, self.observed_stale).join("\n"));
        facts.push(("observed", seen));
        let attempts: Vec<_> = self.attempts.iter().take(SHOWN).map(in_short).collect();
        facts.push(("attempts", Some(attempts.join("; "))));
        facts.push(("history", Some(history.join(", "))));
        facts
    }
}

/// `2 is Ready`, `1 failed at …: no room`.
fn in_short(attempt: &AttemptSummary) -> String {
    match &attempt.failure {
        Some(failure) => {
            format!("{} failed at {}: {}", attempt.number, time(&failure.at), failure.reason)
        }
        None => format!("{} is {}", attempt.number, attempt.phase),
    }
}

/// The effective labels that come from the project.
fn inherited(resource: &Resource) -> String {
    let labels = resource.effective_labels.iter().filter(|(_, label)| label.source == "project");
    labels.map(|(key, label)| format!("{key}={}", label.value)).collect::<Vec<_>>().join(" ")
}

pub(crate) async fn run(session: &mut Session<'_>, command: ResourceCommand) -> Result<(), Error> {
    match command {
        ResourceCommand::Create {
            handle,
            blueprint,
            project,
            blueprint_version: version,
            credential,
            parameters,
            params_file,
            labels,
            protected,
            wait,
        } => {
            let parameters = distinct("--parameter", parameters)?;
            let file = parameters::from_file(params_file.as_deref())?;
            let labels = distinct("--label", labels)?;
            let usual = || session.client.project().map(str::to_owned);
            let mut body = DeclareResource {
                project: project.or_else(usual),
                handle,
                blueprint,
                version,
                credential,
                parameters: BTreeMap::new(),
                labels,
                protected,
            };
            let schema = match parameters.is_empty() {
                true => None,
                false => {
                    let (blueprint, version) = (&body.blueprint, body.version.as_deref());
                    parameters::schema_of(&session.client, blueprint, version).await
                }
            };
            body.parameters = parameters::typed_values(schema.as_ref(), parameters, file)?;
            create(session, &body, &wait).await
        }
        ResourceCommand::List {
            project,
            all_projects,
            phase,
            blueprint,
            labels,
            blocked,
            show_deleted,
            watch,
            page,
        } => {
            let usual = session.client.project().filter(|_| !all_projects);
            let project = project.or_else(|| usual.map(str::to_owned));
            let wanted = Listing::from(page).with("project", project).with("phase", phase);
            let wanted = wanted.with("blueprint", blueprint).with("blocked", blocked);
            let wanted = labels.into_iter().fold(wanted, |all, one| all.with("label", Some(one)));
            session.list::<Resource>(wanted.show_deleted(show_deleted).watched(watch)).await
        }
        ResourceCommand::Get(target) => {
            let id = find_id(&session.client, &target).await?;
            session.get_at::<ResourceDetail>(&["resources", &id]).await
        }
        ResourceCommand::History { target, attempt, page } => {
            let id = find_id(&session.client, &target).await?;
            let attempt = attempt.map(|number| number.to_string());
            let wanted = Listing::from(page).with("attempt", attempt);
            session.list_at::<HistoryEntry>(&["resources", &id, "history"], wanted).await
        }
        ResourceCommand::Explain(target) => explain::resource(session, &target).await,
        ResourceCommand::Relabel { target, labels } => {
            labels.check(session.terminal)?;
            let resource = find(&session.client, &target, Gone::Refused).await?;
            let now = (&resource.labels, resource.revision);
            let relabelling = labels.apply(session.terminal, &resource.handle, now)?;
            session.relabel::<Resource>(&resource.id, relabelling).await
        }
        ResourceCommand::Delete { target: None, labels, project, deletion, wait } => {
            let selector = (labels.as_slice(), project.as_deref());
            select::delete(session, selector, &deletion, &wait).await
        }
        ResourceCommand::Delete { target: Some(target), project, deletion, wait, .. } => {
            let target = TargetArguments { target, project };
            session.terminal.can_agree(deletion.yes)?;
            let found = find(&session.client, &target, Gone::Refused).await;
            let Some(found) = session.unless_ignored(found, deletion.ignore_not_found)? else {
                return Ok(());
            };
            let mut query = deletion.query();
            let question = format!("Delete `{}` ({})?", found.handle, found.id);
            let target = ("resource", found.id.as_str());
            session.agree_to_delete(target, &question, &deletion, &mut query).await?;
            delete(session, &found, &query, &wait).await
        }
        ResourceCommand::Attempts { target, page } => {
            let id = find_id(&session.client, &target).await?;
            session.list_at::<AttemptSummary>(&["resources", &id, "attempts"], page).await
        }
        ResourceCommand::Update(arguments) => change::update(session, *arguments).await,
        ResourceCommand::Replace(arguments) => change::replace(session, *arguments).await,
        ResourceCommand::Retry { target, reason, change, wait } => {
            let resource = find(&session.client, &target, Gone::Refused).await?;
            let (version, parameters) = change.resolve(session, &resource).await?;
            let path = ["resources", &resource.id, "retry"];
            let body = Retry { reason, version, parameters };
            let retried = session.client.post(&path, &body).await?;
            show_after(session, retried, Goal::ReadyAfter(resource.attempt.number), &wait).await
        }
        ResourceCommand::ForceDrain { target, reason, yes, wait } => {
            let harm = "Give up what the node is doing for";
            let resource = find_for_harm(session, &target, yes, harm).await?;
            let path = ["resources", &resource.id, "force-drain"];
            let forced: Resource = session.client.post(&path, &ForceDrain { reason }).await?;
            // It was drained to be deleted, or to be replaced by the next attempt.
            let goal = match forced.deletion_id {
                Some(_) => Goal::Deleted,
                None => Goal::ReadyAfter(resource.attempt.number),
            };
            show_after(session, forced, goal, &wait).await
        }
        ResourceCommand::Reenrol { target, reason, ttl } => {
            let ttl_seconds = ttl.map(|ttl| whole_seconds("--ttl", ttl)).transpose()?;
            let resource = find(&session.client, &target, Gone::Refused).await?;
            let path = ["resources", &resource.id, "reenrol"];
            session.post::<IssuedToken>(&path, &Reenrol { reason, ttl_seconds }).await
        }
        ResourceCommand::Enrolment(arguments) => enrolment::show(session, &arguments).await,
        ResourceCommand::ConfirmGone { target, reason } => {
            let resource = find(&session.client, &target, Gone::Refused).await?;
            let path = ["resources", &resource.id, "confirm-gone"];
            session.post::<Resource>(&path, &ConfirmGone { reason }).await
        }
        ResourceCommand::Abandon { target, reason, confirm } => {
            session.terminal.can_type(confirm.as_deref())?;
            // One that is Deleted may still wait for its second proof.
            let resource = find(&session.client, &target, Gone::Allowed).await?;
            let harm = "Its machines may run on and cost; only leak records will say so";
            let confirm = session.terminal.typed(confirm, &resource.handle, harm)?;
            let path = ["resources", &resource.id, "abandon"];
            session.post::<Resource>(&path, &Abandon { reason, confirm }).await
        }
        ResourceCommand::Orphan { target, reason, dry_run, yes } => {
            let harm = "Keep in its cloud what holds the teardown of";
            let resource = find_for_harm(session, &target, yes || dry_run, harm).await?;
            let path = ["resources", &resource.id, "orphan"];
            session.post::<Orphaned>(&path, &Orphan { reason, dry_run }).await
        }
    }
}

async fn create(
    session: &mut Session<'_>,
    body: &DeclareResource,
    wait: &WaitArguments,
) -> Result<(), Error> {
    let resource = match session.client.post(&["resources"], body).await {
        Ok(resource) => resource,
        Err(error) => {
            let given = [
                ("blueprint_not_found", Some(body.blueprint.as_str())),
                ("project_not_found", body.project.as_deref()),
                ("credential_not_found", body.credential.as_deref()),
            ];
            return Err(suggest::name(&session.client, error, &given).await);
        }
    };
    show_after(session, resource, Goal::Ready, wait).await
}

async fn delete(
    session: &mut Session<'_>,
    resource: &Resource,
    query: &[(&str, String)],
    wait: &WaitArguments,
) -> Result<(), Error> {
    let mut deletion: Deletion = session.client.delete(&["resources", &resource.id], query).await?;
    if wait.wait {
        let (client, limit) = (&session.client, wait.timeout);
        wait_for(client, resource, Goal::Deleted, limit, session.terminal).await?;
        deletion = session.client.get(&["deletions", &deletion.id]).await?;
    }
    session.show_details(&deletion);
    Ok(())
}

/// Shows the resource, with `--wait` after it has reached its goal.
pub(super) async fn show_after(
    session: &mut Session<'_>,
    mut resource: Resource,
    goal: Goal,
    wait: &WaitArguments,
) -> Result<(), Error> {
    if wait.wait {
        let (client, limit) = (&session.client, wait.timeout);
        let waited = wait_for(client, &resource, goal, limit, session.terminal).await?;
        resource = waited.unwrap_or(resource);
    }
    session.show_details(&resource);
    Ok(())
}

/// Finds the resource of an irrevocable action, once the user agreed: by the
/// flag, or by an answer to a question that begins with `harm`.
async fn find_for_harm(
    session: &mut Session<'_>,
    target: &TargetArguments,
    agreed: bool,
    harm: &str,
) -> Result<Resource, Error> {
    session.terminal.can_agree(agreed)?;
    let resource = find(&session.client, target, Gone::Refused).await?;
    let question = format!("{harm} `{}` ({})?", resource.handle, resource.id);
    session.terminal.agree(agreed, &question)?;
    Ok(resource)
}
