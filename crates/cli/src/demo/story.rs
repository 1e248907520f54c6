//! The demo on this machine, step by step.

use std::collections::BTreeMap;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;
use slipway_core::broker::phase::Phase;
use slipway_wire::broker::{DeclareResource, Resource};
use slipway_wire::nodes::ForceDrain;
use tokio::time::{Instant, sleep};

use super::agents::{AgentProcess, Agents};
use super::facts;
use super::plane::DRAIN_DEADLINE;
use super::records::{self, Outcome};
use super::screen::{Fact, Screen};
use super::watch::{DrainWatch, Slot, Watch};
use crate::client::Client;
use crate::error::Error;

const BUSY: &str = "demo-busy";
const FROZEN: &str = "demo-frozen";
const PLAIN: &str = "demo-plain";

/// Longer than the deadline of a drain, so that the demo passes it.
const WORK: Duration = Duration::from_secs(4);
/// The least work that must be left when the deletion is requested: the
/// deadline of a drain, and as much again until its passing is observed.
const WORK_LEFT: Duration = Duration::from_secs(2);
const FORCE_REASON: &str = "demo: the agent of this node was frozen on purpose";
/// For what follows almost at once: a process that ends.
const CONVERGE_LIMIT: Duration = Duration::from_secs(5);
const PACE: Duration = Duration::from_millis(50);

pub(super) async fn tell(
    client: &Client,
    agents: &Agents,
    project: &str,
    screen: &mut Screen<'_>,
) -> Result<Outcome, Error> {
    let mut watch = Watch::new(client.clone(), agents.clone());
    let work = declare(project, &mut watch, screen).await?;
    delete_while_busy_and_frozen(agents, &mut watch, screen).await?;
    force(client, agents, &mut watch, screen).await?;
    if !watch.all_are(Phase::Deleted) {
        screen.heading("The others leave in their own time");
        watch.until(screen, |watch| watch.all_are(Phase::Deleted)).await?;
    }
    check_ends(&watch, agents, work, screen).await?;
    let ends = [(BUSY, "acknowledged"), (FROZEN, "forced"), (PLAIN, "acknowledged")];
    records::check(client, &watch, &ends, screen).await
}

/// Brings all three to Ready; returns how long the busy one works.
async fn declare(
    project: &str,
    watch: &mut Watch,
    screen: &mut Screen<'_>,
) -> Result<Duration, Error> {
    screen.heading("Three nodes are declared");
    for name in [FROZEN, PLAIN] {
        declare_one(project, name, None, watch, screen).await?;
    }
    // The busy one last: its work begins when it enrols, whether or not the
    // others are ready.
    let mut work = WORK;
    loop {
        declare_one(project, BUSY, Some(work), watch, screen).await?;
        watch.until(screen, |watch| watch.all_are(Phase::Ready)).await?;
        let busy = watch.slot(BUSY)?;
        let left = facts::work_left(&busy.seen, work);
        if left.is_none_or(|left| left >= WORK_LEFT) {
            return Ok(work);
        }
        let longer = work * 2;
        screen.now(
            BUSY,
            &format!(
                "this machine is slow: its {work:?} of work are almost done; again, {longer:?}"
            ),
        );
        watch.delete(&busy.id, "demo: its work was too short").await?;
        watch.until(screen, |watch| watch.slot(BUSY).is_ok_and(|s| s.is(Phase::Deleted))).await?;
        watch.forget(BUSY);
        work = longer;
    }
}

async fn declare_one(
    project: &str,
    name: &'static str,
    work: Option<Duration>,
    watch: &mut Watch,
    screen: &mut Screen<'_>,
) -> Result<(), Error> {
    let mut parameters = BTreeMap::new();
    if let Some(work) = work {
        parameters.insert("busy_seconds".to_owned(), json!(work.as_secs()));
    }
    let body = DeclareResource {
        project: Some(project.to_owned()),
        handle: name.to_owned(),
        blueprint: "local-node".to_owned(),
        parameters,
        ..DeclareResource::default()
    };
    watch.declare(name, &body, screen).await
}

async fn delete_while_busy_and_frozen(
    agents: &Agents,
    watch: &mut Watch,
    screen: &mut Screen<'_>,
) -> Result<(), Error> {
    for slot in &watch.slots {
        screen.check(Fact::equal(format!("{} is Ready", slot.name), "Ready", &slot.seen.state));
        let running = converge(|| agents.of(&slot.xr_name), |running| running.len() == 1).await;
        screen.check(Fact::equal(
            format!("exactly one agent process runs for {}", slot.name),
            1,
            running.len(),
        ));
    }
    screen.heading("One is busy, one is frozen, and all three are deleted");
    let frozen = watch.slot(FROZEN)?;
    for agent in agents.of(&frozen.xr_name) {
        agents.signal(&agent, Signal::STOP).map_err(|error| {
            Error::Demo(format!("cannot freeze the agent of {FROZEN}: {error}"))
        })?;
    }
    screen.now(FROZEN, "its agent is stopped (SIGSTOP)");
    // The frozen one first, so that it is frozen no longer than necessary.
    for name in [FROZEN, BUSY, PLAIN] {
        let slot = watch.slot(name)?;
        watch.delete(&slot.id, "demo: not needed any more").await?;
    }
    let blocked = |slot: &Slot| slot.seen.blockers.iter().any(|b| b.code == "node_not_draining");
    watch.until(screen, |watch| watch.slot(FROZEN).is_ok_and(blocked)).await
}

async fn force(
    client: &Client,
    agents: &Agents,
    watch: &mut Watch,
    screen: &mut Screen<'_>,
) -> Result<(), Error> {
    let frozen = watch.slot(FROZEN)?;
    let found = facts::blocker(FROZEN, &frozen.id, &frozen.seen, DRAIN_DEADLINE);
    found.into_iter().for_each(|fact| screen.check(fact));
    screen.check(Fact::equal(
        format!("{FROZEN} still holds, however long its deadline is past"),
        Phase::Deregistering,
        &frozen.seen.state,
    ));
    let alive = agents.of(&frozen.xr_name);
    screen.check(Fact::equal(
        format!("the process of {FROZEN} is still there, and stopped"),
        "1 stopped",
        describe(&alive),
    ));

    screen.heading("A person decides not to wait for it");
    screen.now(FROZEN, &format!("force-drain: {FORCE_REASON}"));
    let body = ForceDrain { reason: FORCE_REASON.to_owned() };
    let path = ["resources", &frozen.id, "force-drain"];
    let _: Resource = client.post(&path, &body).await?;
    watch.until(screen, |watch| watch.slot(FROZEN).is_ok_and(|slot| slot.is(Phase::Deleted))).await
}

/// Checks how each of them ended, and that no process is left.
async fn check_ends(
    watch: &Watch,
    agents: &Agents,
    work: Duration,
    screen: &mut Screen<'_>,
) -> Result<(), Error> {
    screen.heading("What was done");
    let busy = watch.slot(BUSY)?;
    screen.check(facts::finished_its_work(BUSY, busy.seen.node.as_ref(), work));
    let DrainWatch { looks, polls_without_process } = busy.drain;
    if looks == 0 {
        // Not a failed fact: the drain was never observed, and the records show
        // that the node finished its work.
        screen.now(BUSY, "this machine is slow: no poll fell into its drain");
    } else {
        screen.check(Fact::equal(
            format!("the process of {BUSY} lived for as long as it was draining"),
            format!("missing at 0 of {looks} polls"),
            format!("missing at {polls_without_process} of {looks} polls"),
        ));
    }
    let left = converge(|| agents.all(), Vec::is_empty).await;
    screen.check(Fact::equal("no agent process is left", "none", describe(&left)));
    Ok(())
}

/// Observes until the result is as wanted, or the limit passes.
async fn converge<T>(observe: impl Fn() -> T, wanted: impl Fn(&T) -> bool) -> T {
    let begun = Instant::now();
    loop {
        let seen = observe();
        if wanted(&seen) || begun.elapsed() > CONVERGE_LIMIT {
            return seen;
        }
        sleep(PACE).await;
    }
}

fn describe(agents: &[AgentProcess]) -> String {
    let stopped = agents.iter().filter(|agent| agent.stopped).count();
    match (agents.len(), stopped) {
        (0, _) => "none".to_owned(),
        (all, stopped) if all == stopped => format!("{all} stopped"),
        (all, stopped) => format!("{all}, {stopped} of them stopped"),
    }
}
