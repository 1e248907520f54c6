//! `slipway freeze`, `unfreeze`, `resume`, `status` and `withheld`: the mode of
//! the whole installation, and the actions that it withholds.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use slipway_core::fleet::progress::SILENT_AFTER;
use slipway_core::text::counted;
use slipway_wire::fleet::FleetAgentRecord;
use slipway_wire::operations::{
    ClusterStatus, Control, InstallationStatus, LoopStatus, PutFreeze, Replica, Resume,
    WithheldAction,
};

use crate::arguments::{PageArguments, parse_duration, whole_seconds};
use crate::error::Error;
use crate::kind::{Cells, Detail, Facts, Row};
use crate::output::{time, yes_no};
use crate::session::Session;

/// Replicas acknowledge the mode every two seconds.
const PACE: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Args)]
pub struct FreezeArguments {
    /// Why; kept in the audit and shown with every resource that waits
    #[arg(long)]
    pub reason: String,
    /// When it ends by itself, 7d at most
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration, default_value = "1h")]
    pub length: Duration,
    /// Wait until no action that began before is under way on any replica
    #[arg(long)]
    pub wait: bool,
    /// How long to wait
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "2m", requires = "wait")]
    pub timeout: Duration,
}

#[derive(Debug, Clone, Args)]
pub struct ReasonArguments {
    /// Why; kept in the audit
    #[arg(long)]
    pub reason: String,
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway freeze --for 2h --reason maintenance --wait",
    "slipway unfreeze --reason maintenance-is-over",
    "slipway resume --reason reviewed-withheld-actions",
    "slipway status",
    "slipway status -o json",
    "slipway withheld",
];

impl Detail for Control {
    fn facts(&self) -> Facts {
        let (freeze, observing) = (self.freeze.as_ref(), self.observing.as_ref());
        let replicas: Vec<_> = self.replicas.iter().map(replica).collect();
        vec![
            ("mode", Some(self.mode.clone())),
            ("frozen until", freeze.map(|freeze| time(&freeze.until))),
            ("frozen by", freeze.map(|freeze| freeze.by.clone())),
            ("frozen because", freeze.map(|freeze| freeze.reason.clone())),
            ("observing since", observing.map(|observing| time(&observing.since))),
            ("observing because", observing.map(|observing| observing.reason.clone())),
            ("settled", Some(yes_no(self.settled))),
            ("replicas", Some(replicas.join(", "))),
            ("public url", self.public_url.clone()),
            ("installation", Some(self.installation_id.clone())),
            ("revision", Some(self.revision.to_string())),
        ]
    }
}

fn replica(replica: &Replica) -> String {
    let state = match (replica.lapsed, replica.obeys) {
        (true, _) => "silent",
        (false, true) => "obeys",
        (false, false) => "finishing",
    };
    format!("{} {state}", replica.worker)
}

impl Row for WithheldAction {
    fn cells(&self) -> Cells {
        vec![
            ("ACTION", self.action.clone()),
            ("HANDLE", self.handle.clone()),
            ("PROJECT", self.project.clone()),
            ("PHASE", self.phase.clone()),
            ("AGE", self.since.clone()),
            ("REASON", self.message.clone()),
        ]
    }

    fn wide(&self) -> Cells {
        vec![("ID", self.resource_id.clone())]
    }
}

pub(crate) async fn freeze(
    session: &mut Session<'_>,
    arguments: FreezeArguments,
) -> Result<(), Error> {
    let for_seconds = Some(whole_seconds("--for", arguments.length)?);
    let body = PutFreeze { reason: arguments.reason, for_seconds };
    let mut control: Control = session.client.put(&["control", "freeze"], &body).await?;
    if arguments.wait {
        control = settled(session, control, arguments.timeout).await?;
    }
    session.show_details(&control);
    Ok(())
}

async fn settled(
    session: &mut Session<'_>,
    mut control: Control,
    limit: Duration,
) -> Result<Control, Error> {
    let begun = Instant::now();
    let mut shown = usize::MAX;
    while !control.settled {
        let waiting =
            control.replicas.iter().filter(|replica| !replica.obeys && !replica.lapsed).count();
        if waiting != shown {
            session
                .terminal
                .say(&format!("waiting for {waiting} of the replicas to finish their actions"));
            shown = waiting;
        }
        if begun.elapsed() >= limit {
            return Err(Error::Unsettled { waiting, waited: limit });
        }
        tokio::time::sleep(PACE).await;
        control = session.client.get(&["control"]).await?;
    }
    Ok(control)
}

pub(crate) async fn unfreeze(
    session: &mut Session<'_>,
    ReasonArguments { reason }: ReasonArguments,
) -> Result<(), Error> {
    let path = ["control", "freeze"];
    let control: Control = session.client.delete(&path, &[("reason", reason)]).await?;
    session.show_details(&control);
    Ok(())
}

pub(crate) async fn resume(
    session: &mut Session<'_>,
    ReasonArguments { reason }: ReasonArguments,
) -> Result<(), Error> {
    session.post::<Control>(&["control", "resume"], &Resume { reason }).await
}

/// The mode, and the rest for callers who may see the installation.
#[derive(Debug, Serialize)]
struct Overview {
    #[serde(flatten)]
    control: Control,
    #[serde(flatten)]
    installation: Option<InstallationStatus>,
    /// Fleet's agents, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    agents: Option<AgentCounts>,
}

/// How many agents of Fleet there are, and how many need somebody.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct AgentCounts {
    total: usize,
    inactive: usize,
    silent: usize,
    /// Agents that were not yet told what they should have.
    behind: usize,
    unhealthy: usize,
}

impl AgentCounts {
    fn of(agents: &[FleetAgentRecord]) -> Option<Self> {
        let count =
            |fits: fn(&FleetAgentRecord) -> bool| agents.iter().filter(|agent| fits(agent)).count();
        let silent = |agent: &FleetAgentRecord| {
            let limit = i64::try_from(SILENT_AFTER.as_secs()).unwrap_or(i64::MAX);
            agent.status == "ACTIVE" && agent.heartbeat_age_seconds.is_none_or(|age| age > limit)
        };
        (!agents.is_empty()).then(|| Self {
            total: agents.len(),
            inactive: count(|agent| agent.status == "INACTIVE"),
            silent: count(silent),
            behind: count(|agent| agent.pending_object_count > 0),
            unhealthy: count(|agent| agent.health_failing + agent.health_degraded > 0),
        })
    }

    fn in_short(&self) -> String {
        let Self { total, inactive, silent, behind, unhealthy } = self;
        let counts = [
            (inactive, "inactive"),
            (silent, "silent"),
            (behind, "behind"),
            (unhealthy, "unhealthy"),
        ];
        let counts = counts.iter().filter(|(count, _)| **count > 0);
        let counts: Vec<_> = counts.map(|(count, word)| format!("{count} {word}")).collect();
        match counts.is_empty() {
            true => total.to_string(),
            false => format!("{total}, of them {}", counts.join(", ")),
        }
    }
}

impl Detail for Overview {
    fn facts(&self) -> Facts {
        let mut facts = self.control.facts();
        facts.push(("agents", self.agents.as_ref().map(AgentCounts::in_short)));
        let Some(status) = &self.installation else { return facts };
        let of =
            |counts: &BTreeMap<String, u64>, name: &str| counts.get(name).copied().unwrap_or(0);
        let listed = |counts: &BTreeMap<String, u64>| {
            let found = counts.iter().filter(|(_, count)| **count > 0);
            let found: Vec<_> = found.map(|(name, count)| format!("{count} {name}")).collect();
            Some(if found.is_empty() { "none".to_owned() } else { found.join(", ") })
        };
        let silent = of(&status.nodes, "unreachable");
        let registered: u64 = status.nodes.values().sum();
        let clusters: Vec<_> = status.clusters.iter().map(cluster).collect();
        let lag = |name: &str| {
            let of = status.clusters.iter().find(|one| name == format!("resources/{}", one.name));
            of.and_then(|cluster| cluster.lag_seconds)
        };
        let loops: Vec<_> =
            status.loops.iter().map(|found| loop_in_short(found, lag(&found.name))).collect();
        facts.extend([
            ("attempts", listed(&status.phases)),
            ("blocked", listed(&status.blockers)),
            ("nodes", Some(format!("{registered} registered, {silent} silent"))),
            ("leaks", listed(&status.leaks)),
            ("brakes on", Some(status.brakes.join(", ")).filter(|keys| !keys.is_empty())),
            ("files not applied", not_applied(status)),
            ("scheduled deletions", scheduled(status)),
            ("clusters", Some(clusters.join("; "))),
            ("loops here", Some(loops.join("; "))),
        ]);
        facts
    }
}

/// `2; next: project shop at 2026-01-31 12:00:00Z`, if there are any.
/// How much of which source; `slipway source faults` has the reasons.
fn not_applied(status: &InstallationStatus) -> Option<String> {
    let of = |(source, count): (&String, &u64)| format!("{count} of source {source}");
    let found: Vec<_> = status.file_faults.iter().map(of).collect();
    Some(found.join(", ")).filter(|found| !found.is_empty())
}

fn scheduled(status: &InstallationStatus) -> Option<String> {
    let next = status.next_deletion.as_ref().map(|next| {
        let at = next.scheduled_for.as_deref().map(time).unwrap_or_default();
        format!("; next: {} {} at {at}", next.kind, next.name)
    });
    (status.scheduled_deletions > 0)
        .then(|| format!("{}{}", status.scheduled_deletions, next.unwrap_or_default()))
}

fn cluster(found: &ClusterStatus) -> String {
    match (&found.problem, found.lag_seconds) {
        (Some(problem), _) => format!("{} ({problem})", found.name),
        (None, Some(lag)) => format!("{} (due work waits for {lag} s)", found.name),
        (None, None) => format!("{} ok", found.name),
    }
}

fn loop_in_short(found: &LoopStatus, lag: Option<u64>) -> String {
    match (&found.last_error, lag) {
        (_, Some(lag)) => format!("{} {lag} s behind", found.name),
        (_, None) if found.activations == 0 => format!("{} not run yet", found.name),
        (Some(error), None) => format!("{} fails: {error}", found.name),
        (None, None) if found.failed > 0 => {
            format!("{} ok, {} failed earlier", found.name, found.failed)
        }
        (None, None) => format!("{} ok", found.name),
    }
}

pub(crate) async fn status(session: &mut Session<'_>) -> Result<(), Error> {
    let control: Control = session.client.get(&["control"]).await?;
    let installation = match session.client.get(&["status"]).await {
        Ok(status) => Some(status),
        // A key of one project, or an older server.
        Err(Error::Problem(problem)) if [403, 404].contains(&problem.status) => None,
        Err(error) => return Err(error),
    };
    // Whoever may not see them, and an older server, has none.
    let agents = session.client.get::<Vec<FleetAgentRecord>>(&["fleet"]).await;
    let agents = AgentCounts::of(&agents.unwrap_or_default());
    session.show_details(&Overview { control, installation, agents });
    Ok(())
}

pub(crate) async fn withheld(session: &mut Session<'_>, page: PageArguments) -> Result<(), Error> {
    let listed = session.client.list::<WithheldAction>(&["control", "withheld"], page).await?;
    session.show_list(&listed, "withheld actions");
    if listed.open > 0 {
        session.terminal.say(&format!(
            "not observed yet: {}; try again in a moment",
            counted(listed.open, "resource")
        ));
    }
    Ok(())
}
