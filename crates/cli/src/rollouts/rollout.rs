//! `slipway rollout …`: one change brought to many members, and `slipway blueprint upgrade`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use slipway_core::rollouts::record::{MemberState, RolloutState};
use slipway_core::time::parse_duration;
use slipway_wire::rollouts::{
    AbortRollout, PauseRollout, ResumeRollout, Rollout, RolloutMember, RolloutStrategy,
    UpgradeBlueprint,
};

use crate::arguments::{IdArguments, PageArguments, whole_seconds};
use crate::client::Listing;
use crate::error::Error;
use crate::kind::{Cells, Detail, Facts, Kind, Row};
use crate::output::{optional_time, or_dash, time};
use crate::session::Session;
use crate::terminal::clean;

/// How often a wait looks.
const PACE: Duration = Duration::from_millis(500);

/// Columns of a bar.
const WIDTH: u64 = 20;

/// Members in work that a line names, and failed ones that a wait names.
const SHOWN: u32 = 3;
const NAMED: u32 = 50;

#[derive(Debug, Clone, Subcommand)]
pub enum RolloutCommand {
    /// List roll-outs
    List(RolloutListArguments),
    /// Show one roll-out and how far it is
    #[command(visible_alias = "status")]
    Get(IdArguments),
    /// List its members, in the order in which they are changed
    Members {
        /// Name of what its members belong to, id, or beginning of the id
        id: String,
        /// Only members in this state
        #[arg(long, value_parser = PossibleValuesParser::new(MemberState::ALL.iter().map(|state| state.as_str())))]
        state: Option<String>,
        #[command(flatten)]
        page: PageArguments,
    },
    /// Change no other member until it is resumed; those in work come to their end
    Pause {
        /// Name of what its members belong to, id, or beginning of the id
        id: String,
        /// Why; kept in the audit
        #[arg(long)]
        reason: Option<String>,
    },
    /// Go on: members that failed are waited for again
    Resume {
        /// Name of what its members belong to, id, or beginning of the id
        id: String,
        /// Go on without those that failed
        #[arg(long)]
        skip_failed: bool,
    },
    /// End it: members stay as they are, or get back what they had
    Abort {
        /// Name of what its members belong to, id, or beginning of the id
        id: String,
        /// Give every member back what it had, in the other order
        #[arg(long)]
        roll_back: bool,
        /// Why; kept in the audit
        #[arg(long)]
        reason: Option<String>,
    },
    /// End it, and give every member back what it had: the same as abort --roll-back
    Rollback {
        /// Name of what its members belong to, id, or beginning of the id
        id: String,
        /// Why; kept in the audit
        #[arg(long)]
        reason: Option<String>,
    },
}

#[derive(Debug, Clone, Args)]
pub struct RolloutListArguments {
    /// Only those in this state
    #[arg(long, value_parser = PossibleValuesParser::new(RolloutState::ALL.iter().map(|state| state.as_str())))]
    pub state: Option<String>,
    /// Only of this blueprint (slug or id)
    #[arg(long)]
    pub subject: Option<String>,
    #[command(flatten)]
    pub page: PageArguments,
}

impl From<RolloutListArguments> for Listing {
    fn from(list: RolloutListArguments) -> Self {
        Self::from(list.page).with("state", list.state).with("subject", list.subject)
    }
}

/// `slipway blueprint upgrade`.
#[derive(Debug, Clone, Args)]
pub struct UpgradeArguments {
    /// Slug or id of the blueprint
    pub blueprint: String,
    /// The version that its resources get
    #[arg(long, value_name = "VERSION")]
    pub to: String,
    /// Only resources of this project (name or id)
    #[arg(long)]
    pub project: Option<String>,
    /// Only resources with this label, `key` or `key=value`; repeat it for several
    #[arg(short = 'l', long = "label", value_name = "LABEL")]
    pub labels: Vec<String>,
    /// The first members, which are healthy before any other is changed; 1 if not given
    #[arg(long, value_name = "N")]
    pub canary: Option<u32>,
    /// Members in work at the same time; 5 if not given
    #[arg(long, value_name = "N")]
    pub parallel: Option<u32>,
    /// Failed members that do not pause it; none if not given
    #[arg(long, value_name = "N")]
    pub failures_allowed: Option<u32>,
    /// How long a member may take to become healthy; 30m if not given
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub healthy_within: Option<Duration>,
    /// One wave for each label selector, in this order; what none selects comes last
    #[arg(long = "wave", value_name = "LABEL")]
    pub waves: Vec<String>,
    /// Why; kept in the audit
    #[arg(long)]
    pub reason: Option<String>,
    /// Show what it would change, in order, and start nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Wait for its end
    #[arg(long)]
    pub wait: bool,
    /// How long to wait at most
    #[arg(long, default_value = "1h", value_parser = parse_duration, requires = "wait")]
    pub timeout: Duration,
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway rollout list --state running",
    "slipway rollout get server",
    "slipway rollout members server --state failed",
    "slipway rollout pause server --reason incident",
    "slipway rollout resume server",
    "slipway rollout resume server --skip-failed",
    "slipway rollout abort server --roll-back --reason broken",
    "slipway rollout rollback server --reason broken",
];

impl Kind for Rollout {
    const PATH: &'static str = "rollouts";
}

fn ended_of_all(rollout: &Rollout) -> String {
    let open = ["waiting", "changing", "reverting"];
    let open: u64 = open.iter().filter_map(|state| rollout.progress.get(*state)).sum();
    format!("{}/{}", rollout.members.saturating_sub(open), rollout.members)
}

impl Row for Rollout {
    fn cells(&self) -> Cells {
        vec![
            ("ID", or_dash(self.id.as_deref())),
            ("OF", self.subject.clone()),
            ("WHAT", self.title.clone()),
            ("STATE", self.state.clone()),
            ("ENDED", ended_of_all(self)),
            ("AGE", self.requested_at.clone()),
            ("WHY", or_dash(self.message.as_deref())),
        ]
    }

    fn wide(&self) -> Cells {
        vec![("PROJECT", or_dash(self.project.as_deref())), ("BY", self.requested_by.clone())]
    }
}

impl Detail for Rollout {
    const NOUN: &'static str = "rollout";

    fn facts(&self) -> Facts {
        let counts: Vec<_> =
            self.progress.iter().map(|(state, count)| format!("{count} {state}")).collect();
        let RolloutStrategy {
            canary,
            parallel,
            failures_allowed,
            healthy_within_seconds,
            waves,
            ..
        } = &self.strategy;
        let number = |value: &Option<u32>| value.map(|value| value.to_string());
        let first: Vec<_> = self.first.iter().map(|member| member.name.clone()).collect();
        vec![
            ("id", self.id.clone()),
            ("what", Some(self.title.clone())),
            ("state", Some(self.state.clone())),
            ("why", self.message.clone()),
            ("project", self.project.clone().or(self.project_id.clone())),
            ("members", Some(format!("{} ({})", self.members, counts.join(", ")))),
            ("first", Some(first.join(", ")).filter(|names| !names.is_empty())),
            ("canaries", number(canary)),
            ("at a time", number(parallel)),
            ("failures allowed", number(failures_allowed)),
            ("healthy within", healthy_within_seconds.map(|seconds| format!("{seconds} s"))),
            ("waves", Some(waves.join(", ")).filter(|waves| !waves.is_empty())),
            ("requested", Some(time(&self.requested_at))),
            ("by", Some(self.requested_by.clone())),
            ("reason", Some(self.reason.clone())),
            ("ended", optional_time(self.ended_at.as_ref())),
        ]
    }
}

impl Row for RolloutMember {
    fn cells(&self) -> Cells {
        vec![
            ("NAME", self.name.clone()),
            ("WAVE", if self.wave == 0 { "canary".to_owned() } else { self.wave.to_string() }),
            ("STATE", self.state.clone()),
            ("BEFORE", self.before["version"].as_str().unwrap_or("-").to_owned()),
            ("AGE", or_dash(self.changed_at.as_deref())),
            ("WHY", or_dash(self.message.as_deref())),
        ]
    }

    fn wide(&self) -> Cells {
        vec![("ID", self.id.clone())]
    }
}

pub(crate) async fn run(session: &mut Session<'_>, command: RolloutCommand) -> Result<(), Error> {
    match command {
        RolloutCommand::List(list) => session.list::<Rollout>(list).await,
        RolloutCommand::Get(arguments) => session.get::<Rollout>(&arguments.id).await,
        RolloutCommand::Members { id, state, page } => {
            let listing = Listing::from(page).with("state", state);
            let path = [Rollout::PATH, &id, "members"];
            session.list_at::<RolloutMember>(&path, listing).await
        }
        RolloutCommand::Pause { id, reason } => {
            let path = [Rollout::PATH, &id, "pause"];
            session.post::<Rollout>(&path, &PauseRollout { reason }).await
        }
        RolloutCommand::Resume { id, skip_failed } => {
            let path = [Rollout::PATH, &id, "resume"];
            session.post::<Rollout>(&path, &ResumeRollout { skip_failed }).await
        }
        RolloutCommand::Abort { id, roll_back: false, reason } => {
            end(session, &id, "abort", reason).await
        }
        RolloutCommand::Abort { id, roll_back: true, reason }
        | RolloutCommand::Rollback { id, reason } => end(session, &id, "roll-back", reason).await,
    }
}

async fn end(
    session: &mut Session<'_>,
    id: &str,
    verb: &str,
    reason: Option<String>,
) -> Result<(), Error> {
    session.post::<Rollout>(&[Rollout::PATH, id, verb], &AbortRollout { reason }).await
}

pub(crate) async fn upgrade(
    session: &mut Session<'_>,
    arguments: UpgradeArguments,
) -> Result<(), Error> {
    let within = arguments.healthy_within;
    let within = within.map(|time| whole_seconds("--healthy-within", time)).transpose()?;
    let body = UpgradeBlueprint {
        to: arguments.to,
        project: arguments.project,
        labels: arguments.labels,
        strategy: RolloutStrategy {
            canary: arguments.canary,
            parallel: arguments.parallel,
            failures_allowed: arguments.failures_allowed,
            healthy_within_seconds: within,
            waves: arguments.waves,
            wait_for_health: false,
        },
        reason: arguments.reason,
        dry_run: arguments.dry_run,
    };
    let path = ["blueprints", &arguments.blueprint, "upgrade"];
    let started: Rollout = session.client.post(&path, &body).await?;
    finish(session, started, arguments.wait.then_some(arguments.timeout)).await
}

/// Shows a roll-out that began, or waits for its end.
pub(crate) async fn finish(
    session: &mut Session<'_>,
    started: Rollout,
    wait_for: Option<Duration>,
) -> Result<(), Error> {
    let (Some(id), Some(timeout)) = (started.id.clone(), wait_for) else {
        session.show_details(&started);
        return Ok(());
    };
    let ended = wait(session, &id, timeout).await?;
    session.show_details(&ended);
    match ended.state.as_str() {
        "done" => Ok(()),
        _ => Err(Error::RolloutStopped {
            name: ended.subject,
            title: ended.title,
            state: ended.state,
            why: ended.message.unwrap_or_else(|| "somebody ended it".to_owned()),
        }),
    }
}

/// Members of a state by name. A wait goes on without them.
async fn members(session: &Session<'_>, id: &str, state: &str, most: u32) -> Vec<RolloutMember> {
    let wanted = Listing::first(Some(most)).with("state", Some(state));
    let found = session.client.list(&[Rollout::PATH, id, "members"], wanted).await;
    found.map(|listed| listed.items).unwrap_or_default()
}

fn with_canary(member: &RolloutMember) -> String {
    match member.wave {
        0 => format!("{} (canary)", member.name),
        _ => member.name.clone(),
    }
}

/// The state, and how many members have which.
fn counted(rollout: &Rollout) -> String {
    let counts: Vec<_> =
        rollout.progress.iter().map(|(state, count)| format!("{count} {state}")).collect();
    clean(&format!("{}: {}", rollout.state, counts.join(", ")))
}

/// How many members are over, such as `[#####---------------] 25 %`.
fn bar(progress: &BTreeMap<String, u64>) -> String {
    let is_open = |state: &str| ["waiting", "changing", "reverting"].contains(&state);
    let over: u64 =
        progress.iter().filter(|(state, _)| !is_open(state)).map(|(_, count)| count).sum();
    let all = progress.values().sum::<u64>().max(1);
    let done = to_usize(over * WIDTH / all);
    let rest = to_usize(WIDTH) - done;
    format!("[{}{}] {} %", "#".repeat(done), "-".repeat(rest), over * 100 / all)
}

fn to_usize(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Waits until it ends or is paused.
async fn wait(session: &mut Session<'_>, id: &str, limit: Duration) -> Result<Rollout, Error> {
    let begun = Instant::now();
    let (mut shown, mut named) = (String::new(), BTreeSet::new());
    loop {
        let rollout: Rollout = match session.client.get(&[Rollout::PATH, id]).await {
            Ok(rollout) => rollout,
            // It may be restarting.
            Err(error) if error.is_temporary() && begun.elapsed() < limit => {
                tokio::time::sleep(PACE).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        let waited = begun.elapsed();
        let failures = rollout.progress.get("failed").copied().unwrap_or_default();
        if to_usize(failures.min(u64::from(NAMED))) > named.len() {
            let failed = members(session, id, "failed", NAMED).await;
            for member in failed.iter().filter(|member| named.insert(member.id.clone())) {
                let why = member.message.as_deref().unwrap_or("no reason is known");
                let line = clean(&format!("{} failed: {why}", with_canary(member)));
                session.terminal.finish_live();
                session.terminal.say(&format!("{:>6.1}s  {line}", waited.as_secs_f64()));
            }
        }
        let state = counted(&rollout);
        if session.terminal.traits().redraws {
            let changing = members(session, id, "changing", SHOWN).await;
            let names: Vec<_> = changing.iter().map(with_canary).collect();
            let line = format!(
                "{}s  {} {state}  {}",
                waited.as_secs(),
                bar(&rollout.progress),
                names.join(", ")
            );
            session.terminal.redraw(&clean(&line));
        } else if state != shown {
            session.terminal.say(&format!("{:>6.1}s  {state}", waited.as_secs_f64()));
            shown = state;
        }
        if !["running", "rolling_back"].contains(&rollout.state.as_str()) {
            session.terminal.finish_live();
            return Ok(rollout);
        }
        if waited >= limit {
            session.terminal.finish_live();
            return Err(Error::RolloutUnfinished {
                name: rollout.subject,
                title: rollout.title,
                state: rollout.state,
                waited: limit,
            });
        }
        tokio::time::sleep(PACE.min(limit - waited)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_what_is_over() {
        let of = |counts: &[(&str, u64)]| {
            let progress = counts.iter().map(|(state, count)| ((*state).to_owned(), *count));
            bar(&progress.collect())
        };
        assert_eq!(of(&[]), "[--------------------] 0 %");
        let some = [("changing", 3), ("failed", 1), ("healthy", 4), ("waiting", 12)];
        assert_eq!(of(&some), "[#####---------------] 25 %");
        assert_eq!(of(&[("waiting", 1), ("healthy", 999)]), "[###################-] 99 %");
        assert_eq!(of(&[("gone", 1), ("healthy", 2)]), "[####################] 100 %");
    }
}
