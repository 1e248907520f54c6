//! `slipway tenant …`: databases of customers.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use slipway_core::operations::explanation::ExplainedKind;
use slipway_core::tenants::job::JobState;
use slipway_core::tenants::task::Found;
use slipway_wire::deletion::{Deletion, Restore, RestoreDeletion};
use slipway_wire::rollouts::{Rollout, RolloutStrategy};
use slipway_wire::tenants::{
    MigrateTenants, ProvisionTenant, RefusedTenant, RepairTenant, RepairTenants, RepairedTenants,
    ResumeTenant, RetriedTenants, RetryTenants, Tenant, TenantDifference, TenantDrift, TenantJob,
    TenantJobLine,
};

use crate::arguments::{
    DeletedListArguments, NamedArguments, NamedDeleteArguments, PageArguments, WaitArguments,
    parse_duration, whole_seconds,
};
use crate::client::Listing;
use crate::complete;
use crate::error::Error;
use crate::kind::{Cells, Detail, Facts, Kind, Row};
use crate::operations::explain;
use crate::output::{optional_time, or_dash, time, yes_no};
use crate::rollouts::rollout;
use crate::session::Session;
use crate::tenants::demo::TenantDemoArguments;
use crate::tenants::export;
use crate::terminal::clean;

/// How often a wait asks.
const PACE: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Subcommand)]
pub enum TenantCommand {
    /// Make a tenant; its job begins at once
    Provision {
        /// The name: a DNS label, unique in the project
        name: String,
        /// The tenant profile (name or id)
        #[arg(long)]
        profile: String,
        /// The project (name or id); if not given, that of the context, or `default`
        #[arg(long, add = complete::names("project"))]
        project: Option<String>,
        #[command(flatten)]
        wait: WaitArguments,
    },
    /// List tenants
    List(TenantListArguments),
    /// Show one tenant
    Get(NamedArguments),
    /// List the jobs of a tenant, the oldest first
    Jobs {
        /// Its name, its id or the beginning of it
        #[arg(value_name = "NAME", add = complete::names(""))]
        reference: String,
        #[command(flatten)]
        page: PageArguments,
    },
    /// Show what a job of a tenant did, edge by edge
    History {
        /// Its name, its id or the beginning of it
        #[arg(value_name = "NAME", add = complete::names(""))]
        reference: String,
        /// The id of a job; if not given, its last one
        #[arg(long)]
        job: Option<String>,
    },
    /// Explain where a tenant is, what it waits for, and what to do
    Explain(NamedArguments),
    /// Try a failed tenant again, or all failed ones of a project or profile
    Retry(RetryArguments),
    /// Say what became of a migration whose state is unknown, so that the next one goes on
    Repair(RepairArguments),
    /// Let a tenant go on that waits for a person, for instance after a restored database
    Resume {
        /// Its name, its id or the beginning of it
        #[arg(value_name = "NAME", add = complete::names(""))]
        reference: String,
        /// Why; kept in the audit
        #[arg(long)]
        reason: String,
        /// Remove what its unfinished job made, instead of going on with it
        #[arg(long)]
        clean_up: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Apply the migrations of a profile to its tenants, in waves and within limits
    Migrate(MigrateArguments),
    /// Compare the target of a tenant with its profile; exits with 1 if they differ
    Drift {
        /// Its name, its id or the beginning of it
        #[arg(value_name = "NAME", add = complete::names(""))]
        reference: String,
        /// Also compare columns and indexes with a tenant freshly built from the folder
        #[arg(long)]
        deep: bool,
    },
    /// Copy the data of a tenant into a file, also while it is decommissioned
    ///
    /// The file is an archive for `pg_restore`, or a database of SQLite. It has the data of one
    /// moment; what an application writes later is not in it.
    Export {
        /// Its name, its id or the beginning of it
        #[arg(value_name = "NAME", add = complete::names(""))]
        reference: String,
        /// Where to; only its owner can read it
        #[arg(long, value_name = "FILE")]
        file: PathBuf,
        /// Replace the file if there is one
        #[arg(long)]
        force: bool,
    },
    /// Close a tenant, keep its data for the retention, then destroy it
    #[command(visible_alias = "delete")]
    Decommission {
        #[command(flatten)]
        arguments: NamedDeleteArguments,
        /// Before, copy its data into this file; if that fails, nothing is deleted
        #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
        export: Option<PathBuf>,
    },
    /// Bring a decommissioned tenant back as it was
    Restore {
        /// Its name, its id or the beginning of it
        #[arg(value_name = "NAME", add = complete::names(""))]
        reference: String,
        /// Bring it back under this name
        #[arg(long, value_name = "NEW")]
        rename: Option<String>,
        /// Why; kept in the audit
        #[arg(long)]
        reason: Option<String>,
    },
    /// Run tenants on this machine, check every fact, and leave no process and no file behind
    ///
    /// Five tenants are made, one of them with a seed that fails; a migration reaches the
    /// others; one is decommissioned and restored; then all are purged. Ends with 0 only if all
    /// of it is so, in the databases of the tenants and by the API. The last line is JSON.
    Demo(TenantDemoArguments),
}

#[derive(Debug, Clone, Args)]
pub struct TenantListArguments {
    /// Only of this project (name or id)
    #[arg(long, add = complete::names("project"))]
    pub project: Option<String>,
    /// Only of this tenant profile (name or id)
    #[arg(long)]
    pub profile: Option<String>,
    /// Only those whose last job is in this state
    #[arg(long, value_parser = PossibleValuesParser::new(JobState::ALL.iter().map(|state| state.as_str())))]
    pub state: Option<String>,
    #[command(flatten)]
    pub list: DeletedListArguments,
}

impl From<TenantListArguments> for Listing {
    fn from(arguments: TenantListArguments) -> Self {
        Self::from(arguments.list)
            .with("project", arguments.project)
            .with("profile", arguments.profile)
            .with("state", arguments.state)
    }
}

#[derive(Debug, Clone, Args)]
pub struct RetryArguments {
    /// Its name, its id or the beginning of it
    #[arg(value_name = "NAME", add = complete::names(""))]
    #[arg(required_unless_present_any = ["project", "profile"])]
    pub reference: Option<String>,
    /// All failed ones of this project (name or id)
    #[arg(long, conflicts_with = "reference")]
    pub project: Option<String>,
    /// All failed ones of this tenant profile (name or id)
    #[arg(long, conflicts_with = "reference")]
    pub profile: Option<String>,
    #[command(flatten)]
    pub wait: WaitArguments,
}

#[derive(Debug, Clone, Args)]
pub struct RepairArguments {
    /// Its name, its id or the beginning of it
    #[arg(value_name = "NAME", add = complete::names(""))]
    #[arg(required_unless_present = "profile")]
    pub reference: Option<String>,
    /// All tenants of this profile (name or id) whose migration failed
    #[arg(long, conflicts_with = "reference")]
    pub profile: Option<String>,
    /// Of them, those of this project (name or id)
    #[arg(long, requires = "profile", add = complete::names("project"))]
    pub project: Option<String>,
    /// The version of the migration, such as 7
    #[arg(long, value_name = "VERSION")]
    pub migration: String,
    /// Whether all of the file as it is now was applied, or nothing of it
    #[arg(long, value_parser = PossibleValuesParser::new(Found::ALL.iter().map(|found| found.as_str())))]
    pub found: String,
}

#[derive(Debug, Clone, Args)]
pub struct MigrateArguments {
    /// The tenant profile (name or id)
    pub profile: String,
    /// Only tenants of this project (name or id)
    #[arg(long, add = complete::names("project"))]
    pub project: Option<String>,
    /// The first tenants, which are migrated before any other; 1 if not given
    #[arg(long, value_name = "N")]
    pub canary: Option<u32>,
    /// Tenants in work at the same time; 5 if not given
    #[arg(long, value_name = "N")]
    pub parallel: Option<u32>,
    /// After the canaries, so many come to their end before the next ones begin; all if not given
    #[arg(long, value_name = "N")]
    pub chunk: Option<u32>,
    /// Failed tenants that do not pause it; none if not given
    #[arg(long, value_name = "N")]
    pub failures_allowed: Option<u32>,
    /// How long one tenant may take, such as 90s, 30m or 2h; half an hour if not given
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub healthy_within: Option<Duration>,
    /// Why; kept in the audit
    #[arg(long)]
    pub reason: Option<String>,
    /// Show which tenants it would migrate, in order, and start nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub wait: WaitArguments,
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway tenant provision acme --profile files --project shop --wait",
    "slipway tenant list --project shop --state failed",
    "slipway tenant get acme",
    "slipway tenant jobs acme",
    "slipway tenant history acme",
    "slipway tenant explain acme",
    "slipway tenant retry acme --wait",
    "slipway tenant retry --profile files",
    "slipway tenant repair acme --migration 7 --found not_applied",
    "slipway tenant repair --profile files --migration 7 --found applied",
    "slipway tenant resume acme --reason looked --yes",
    "slipway tenant migrate files --canary 2 --parallel 10 --wait",
    "slipway tenant drift acme --deep",
    "slipway tenant export acme --file acme.dump",
    "slipway tenant decommission acme --grace 24h --reason moved --yes",
    "slipway tenant decommission acme --export acme.dump --yes",
    "slipway tenant restore acme",
    "slipway tenant demo",
    "slipway tenant demo --timeout 120s",
];

impl Kind for Tenant {
    const PATH: &'static str = "tenants";
}

impl Row for Tenant {
    fn cells(&self) -> Cells {
        vec![
            ("NAME", self.name.clone()),
            ("PROJECT", or_dash(self.project.as_deref())),
            ("PROFILE", or_dash(self.profile.as_deref())),
            ("STATE", self.shown_state()),
            ("VERSION", or_dash(self.version.as_deref())),
            ("AGE", self.created_at.clone()),
            ("DELETED", or_dash(self.deleted_at.as_deref())),
        ]
    }

    fn wide(&self) -> Cells {
        vec![("ID", self.id.clone()), ("JOB", self.job_id.clone())]
    }
}

impl Detail for Tenant {
    const NOUN: &'static str = "tenant";

    fn facts(&self) -> Facts {
        vec![
            ("name", Some(self.name.clone())),
            ("id", Some(self.id.clone())),
            ("project", self.project.clone().or(Some(self.project_id.clone()))),
            ("profile", self.profile.clone().or(Some(self.profile_id.clone()))),
            ("state", Some(self.shown_state())),
            ("version", self.version.clone()),
            ("on the target", Some(self.target_name.clone())),
            ("job", Some(self.job_id.clone())),
            ("closed", self.closed.then(|| yes_no(true))),
            ("left behind", (self.leaks > 0).then(|| self.leaks.to_string())),
            ("last error", self.last_error.clone().filter(|_| self.waiting_reason.is_none())),
            ("waits for a person", self.waiting_reason.clone()),
            ("created", Some(time(&self.created_at))),
            ("deleted", optional_time(self.deleted_at.as_ref())),
            ("deletion", self.deletion_id.clone()),
            ("revision", Some(self.revision.to_string())),
        ]
    }

    fn open_deletion(&self) -> Option<&str> {
        self.deletion_id.as_deref().filter(|_| self.deleted_at.is_none())
    }
}

trait ShownState {
    fn shown_state(&self) -> String;
}

impl ShownState for Tenant {
    fn shown_state(&self) -> String {
        match (&self.deleted_at, self.closed) {
            (Some(_), true) => "decommissioned".to_owned(),
            (Some(_), false) => "deleted".to_owned(),
            (None, _) => self.state.clone(),
        }
    }
}

impl Row for TenantJob {
    fn cells(&self) -> Cells {
        vec![
            ("ID", self.id.clone()),
            ("STATE", self.state.clone()),
            ("EDGES", self.attempts.to_string()),
            ("AGE", self.created_at.clone()),
            ("RETRY OF", or_dash(self.retry_of.as_deref())),
            ("ERROR", or_dash(self.last_error.as_deref())),
        ]
    }
}

impl Row for TenantJobLine {
    fn cells(&self) -> Cells {
        vec![
            ("AT", self.at.clone()),
            ("FROM", self.from.clone()),
            ("TO", self.to.clone()),
            ("WORKER", or_dash(self.worker.as_deref())),
            ("ERROR", or_dash(self.error.as_deref())),
        ]
    }
}

impl Row for TenantDifference {
    fn cells(&self) -> Cells {
        vec![
            ("KIND", self.kind.clone()),
            ("OBJECT", self.object.clone()),
            ("EXPECTED", self.expected.clone()),
            ("FOUND", self.found.clone()),
        ]
    }
}

impl Detail for RetriedTenants {
    fn facts(&self) -> Facts {
        of_many("retried", &self.retried, &self.refused, self.has_more)
    }
}

impl Detail for RepairedTenants {
    fn facts(&self) -> Facts {
        of_many("repaired", &self.repaired, &self.refused, self.has_more)
    }
}

/// What was done to many tenants, by name.
fn of_many(done: &'static str, tenants: &[String], refused: &[RefusedTenant], more: bool) -> Facts {
    let refused: Vec<_> =
        refused.iter().map(|one| format!("{}: {}", one.name, one.message)).collect();
    let lines = |lines: &[String]| Some(lines.join("\n")).filter(|text| !text.is_empty());
    vec![
        (done, Some(tenants.len().to_string())),
        ("tenants", lines(tenants)),
        ("refused", lines(&refused)),
        ("more", more.then(|| "run it again".to_owned())),
    ]
}

pub(crate) async fn run(session: &mut Session<'_>, command: TenantCommand) -> Result<(), Error> {
    match command {
        TenantCommand::Provision { name, profile, project, wait } => {
            let project = project.or_else(|| session.client.project().map(str::to_owned));
            let project = project.unwrap_or_else(|| "default".to_owned());
            let body = ProvisionTenant { name, profile };
            let path = ["projects", &project, Tenant::PATH];
            let made: Tenant = session.client.post(&path, &body).await?;
            finish(session, made, wait).await
        }
        TenantCommand::List(arguments) => session.list::<Tenant>(arguments).await,
        TenantCommand::Get(arguments) => session.get::<Tenant>(&arguments.reference).await,
        TenantCommand::Jobs { reference, page } => {
            let path = [Tenant::PATH, &reference, "jobs"];
            session.list_at::<TenantJob>(&path, page).await
        }
        TenantCommand::History { reference, job } => {
            let job = match job {
                Some(job) => job,
                None => with_deleted(session, &reference).await?.job_id,
            };
            let job: TenantJob = session.client.get(&["tenant-jobs", &job]).await?;
            session.show_all(&job.history, "edge");
            Ok(())
        }
        TenantCommand::Explain(arguments) => {
            explain::explain(session, ExplainedKind::Tenant, &arguments.reference).await
        }
        TenantCommand::Retry(RetryArguments { reference: Some(reference), wait, .. }) => {
            let path = [Tenant::PATH, &reference, "retry"];
            let retried: Tenant = session.client.invoke(&path).await?;
            finish(session, retried, wait).await
        }
        TenantCommand::Retry(RetryArguments { project, profile, .. }) => {
            let body = RetryTenants { project, profile };
            session.post::<RetriedTenants>(&[Tenant::PATH, "retry"], &body).await
        }
        TenantCommand::Repair(arguments) => {
            let RepairArguments { reference, profile, project, migration: version, found } =
                arguments;
            match (reference, profile) {
                (_, Some(profile)) => {
                    let body = RepairTenants { profile, project, version, found };
                    session.post::<RepairedTenants>(&[Tenant::PATH, "repair"], &body).await
                }
                (reference, None) => {
                    let reference = reference.unwrap_or_default();
                    let body = RepairTenant { version, found };
                    session.post::<Tenant>(&[Tenant::PATH, &reference, "repair"], &body).await
                }
            }
        }
        TenantCommand::Resume { reference, reason, clean_up, yes } => {
            let tenant = with_deleted(session, &reference).await?;
            let question = match clean_up {
                true => format!("Remove what the unfinished job of `{}` made?", tenant.name),
                false => format!("Go on with `{}`, whatever its target has?", tenant.name),
            };
            session.terminal.agree(yes, &question)?;
            let body = ResumeTenant { reason, clean_up };
            session.post::<Tenant>(&[Tenant::PATH, &tenant.id, "resume"], &body).await
        }
        TenantCommand::Migrate(arguments) => {
            let within = arguments.healthy_within;
            let within = within.map(|time| whole_seconds("--healthy-within", time)).transpose()?;
            let body = MigrateTenants {
                project: arguments.project,
                strategy: RolloutStrategy {
                    canary: arguments.canary,
                    parallel: arguments.parallel,
                    failures_allowed: arguments.failures_allowed,
                    healthy_within_seconds: within,
                    ..RolloutStrategy::default()
                },
                chunk: arguments.chunk,
                reason: arguments.reason,
                dry_run: arguments.dry_run,
            };
            let path = ["tenant-profiles", &arguments.profile, "migrate"];
            let started: Rollout = session.client.post(&path, &body).await?;
            let wait = arguments.wait;
            rollout::finish(session, started, wait.wait.then_some(wait.timeout)).await
        }
        TenantCommand::Drift { reference, deep } => {
            let wanted = Listing::default().with("deep", deep.then_some("true"));
            let path = [Tenant::PATH, reference.as_str(), "drift"];
            let drift: TenantDrift = session.client.get_where(&path, wanted).await?;
            session.show_all(&drift.differences, "difference");
            if drift.differences.is_empty() { Ok(()) } else { Err(Error::Differs) }
        }
        TenantCommand::Export { reference, file, force } => {
            let tenant = with_deleted(session, &reference).await?;
            export::export(session, &tenant, &file, force).await
        }
        TenantCommand::Decommission { arguments, export: None } => {
            session.delete::<Tenant>("the tenant", arguments).await
        }
        TenantCommand::Decommission { arguments, export: Some(file) } => {
            let found = session.client.get(&[Tenant::PATH, &arguments.reference]).await;
            let ignored = arguments.deletion.ignore_not_found;
            let Some(tenant) = session.unless_ignored::<Tenant>(found, ignored)? else {
                return Ok(());
            };
            export::export(session, &tenant, &file, false).await?;
            // The copy is of this tenant, and of what it was then.
            let (named, read) = (("the tenant", &*tenant.name), (&*tenant.id, tenant.revision));
            session.delete_read::<Tenant>(named, read, &arguments.deletion).await
        }
        TenantCommand::Restore { reference, rename, reason } => {
            let tenant = with_deleted(session, &reference).await?;
            let Some(deletion) = tenant.deletion_id else {
                let name = tenant.name;
                return Err(Error::Usage(format!("tenant `{name}` is not decommissioned")));
            };
            let body = RestoreDeletion { reason, rename, ..RestoreDeletion::default() };
            session.post::<Restore>(&[Deletion::PATH, &deletion, "restore"], &body).await
        }
        // It has no session; `run` of the crate starts it.
        TenantCommand::Demo(_) => Ok(()),
    }
}

/// The tenant, decommissioned or not.
async fn with_deleted(session: &Session<'_>, reference: &str) -> Result<Tenant, Error> {
    let wanted = Listing::default().show_deleted(true);
    session.client.get_where(&[Tenant::PATH, reference], wanted).await
}

/// Shows it, after its job is over if that is waited for.
async fn finish(
    session: &mut Session<'_>,
    tenant: Tenant,
    WaitArguments { wait, timeout }: WaitArguments,
) -> Result<(), Error> {
    let shown = if wait { until_over(session, &tenant, timeout).await? } else { tenant };
    session.show_details(&shown);
    Ok(())
}

/// Waits until its job is over; one that failed is an error.
pub(crate) async fn until_over(
    session: &mut Session<'_>,
    tenant: &Tenant,
    timeout: Duration,
) -> Result<Tenant, Error> {
    let begun = Instant::now();
    let mut shown = String::new();
    loop {
        let found = session.client.get::<Tenant>(&[Tenant::PATH, &tenant.id]).await;
        let found = match found {
            Ok(found) => found,
            // It may be restarting.
            Err(error) if error.is_temporary() && begun.elapsed() < timeout => {
                tokio::time::sleep(PACE).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        let (state, waited) = (clean(&found.state), begun.elapsed());
        if session.terminal.traits().redraws {
            session.terminal.redraw(&format!("{}  {}s  {state}", found.name, waited.as_secs()));
        } else if state != shown {
            let line = format!("{:>6.1}s  {} {state}", waited.as_secs_f64(), found.name);
            session.terminal.say(&line);
            shown.clone_from(&state);
        }
        if ["ready", "failed"].contains(&state.as_str()) {
            session.terminal.finish_live();
            if state == "ready" {
                return Ok(found);
            }
            let job: TenantJob = session.client.get(&["tenant-jobs", &found.job_id]).await?;
            let error = job.history.iter().rev().find_map(|line| line.error.clone());
            let reason =
                error.or(job.last_error).unwrap_or_else(|| "no reason is known".to_owned());
            return Err(Error::TenantFailed { name: found.name, reason });
        }
        if waited >= timeout {
            session.terminal.finish_live();
            return Err(Error::TenantUnfinished { name: found.name, state, waited: timeout });
        }
        tokio::time::sleep(PACE).await;
    }
}
