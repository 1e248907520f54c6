//! `slipway stack strategy`: how new objects of a stack reach its agents.

use std::time::Duration;

use clap::Args;
use reqwest::Method;
use serde_json::{Value, json};
use slipway_core::time::parse_duration;
use slipway_wire::fleet::Stack;

use super::find::FleetTarget;
use super::generator::body_of;
use crate::arguments::whole_seconds;
use crate::error::Error;
use crate::kind::Kind as _;
use crate::output::lines_of;
use crate::session::Session;

#[derive(Debug, Clone, Args)]
pub struct StrategyArguments {
    #[command(flatten)]
    pub target: FleetTarget,
    /// The first agents, which are healthy before any other gets the object; 1 if not given
    #[arg(long, value_name = "N")]
    pub canary: Option<u32>,
    /// One wave for each label of agents, in this order; what none selects comes last
    #[arg(long = "wave", value_name = "LABEL")]
    pub waves: Vec<String>,
    /// Agents in work at the same time; 5 if not given
    #[arg(long, value_name = "N")]
    pub parallel: Option<u32>,
    /// Failed agents that do not pause it; none if not given
    #[arg(long, value_name = "N")]
    pub failures_allowed: Option<u32>,
    /// How long an agent may take to become healthy; 30m if not given
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub healthy_within: Option<Duration>,
    /// Count an agent on which an object is failing as not healthy, also if it was deployed
    #[arg(long)]
    pub wait_for_health: bool,
    /// Offer new objects to all agents at once again
    #[arg(long, conflicts_with_all = [
        "canary", "waves", "parallel", "failures_allowed", "healthy_within", "wait_for_health",
    ])]
    pub remove: bool,
}

impl StrategyArguments {
    fn sets_something(&self) -> bool {
        let Self { canary, waves, parallel, failures_allowed, healthy_within, .. } = self;
        canary.is_some()
            || !waves.is_empty()
            || parallel.is_some()
            || failures_allowed.is_some()
            || healthy_within.is_some()
            || self.wait_for_health
    }

    fn body(&self) -> Result<Value, Error> {
        let within = self.healthy_within.map(|time| whole_seconds("--healthy-within", time));
        Ok(body_of([
            ("canary", self.canary.map(Into::into)),
            ("waves", Some(json!(self.waves))),
            ("parallel", self.parallel.map(Into::into)),
            ("failures_allowed", self.failures_allowed.map(Into::into)),
            ("healthy_within_seconds", within.transpose()?.map(Into::into)),
            ("wait_for_health", Some(json!(self.wait_for_health))),
        ]))
    }
}

pub(super) async fn run(
    session: &mut Session<'_>,
    arguments: StrategyArguments,
) -> Result<(), Error> {
    let body = arguments.body()?;
    let found: Stack = arguments.target.find(&session.client).await?;
    let path = [Stack::PATH, &found.id, "strategy"];
    if arguments.remove {
        return session.client.silent(Method::DELETE, &path).await;
    }
    let strategy: Result<Value, Error> = match arguments.sets_something() {
        true => session.client.put(&path, &body).await,
        false => session.client.get(&path).await,
    };
    match strategy {
        Ok(strategy) => session.show(&strategy, |strategy, _| lines_of(strategy)),
        Err(Error::Problem(problem))
            if problem.status == 404
                && !arguments.sets_something()
                && session.output.is_for_people() =>
        {
            session.terminal.say("no strategy: new objects are offered to all agents at once");
        }
        Err(error) => return Err(error),
    }
    Ok(())
}
