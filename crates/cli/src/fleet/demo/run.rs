//! Runs the demo of Fleet: puts up the sites, runs the story, and clears them up however
//! that ended.

use serde_json::json;

use super::arguments::FleetDemoArguments;
use super::sites::{NAMES, Site};
use super::story::{self, Outcome};
use crate::arguments::Output;
use crate::demo::{Fact, Screen, Setting, Stage};
use crate::error::Error;
use crate::renderers::Renderers;
use crate::terminal::Terminal;

pub(crate) async fn run(
    arguments: &FleetDemoArguments,
    output: Output,
    renderers: Renderers,
    terminal: &mut Terminal,
) -> Result<(), Error> {
    if let Some(path) = &arguments.kubeconfig {
        std::fs::metadata(path).map_err(|error| {
            Error::Usage(format!("cannot read --kubeconfig {}: {error}", path.display()))
        })?;
    }
    let mut screen = Screen::new(terminal, output == Output::Json);
    let mut stage = Stage::open(Setting::default(), "sqlite", &mut screen)?;
    let (name, directory) = (stage.name().to_owned(), stage.directory().to_owned());
    let mut sites = NAMES.map(|name| Site::folder(name, &directory));
    if let Some(kubeconfig) = &arguments.kubeconfig {
        let [.., last] = &mut sites;
        *last = Site::folder(last.name, &directory).on_cluster(kubeconfig, renderers);
    }
    let kinds = sites.each_ref().map(Site::kind);
    let told = stage.play(arguments.timeout, &mut screen, async |client, screen| {
        story::tell(client, &name, &mut sites, screen).await
    });
    let told = told.await;
    end(&mut sites, told.is_ok(), &mut screen).await;
    let summary = |outcome: Outcome, facts: usize, duration: std::time::Duration| {
        json!({
            "agents": kinds,
            "delivered": outcome.delivered,
            "rolled_out": outcome.rolled_out,
            "removed_at_once": outcome.removed_at_once,
            "removed_later": outcome.removed_later,
            "restored": outcome.restored,
            "removed_again": outcome.removed_again,
            "facts": facts,
            "duration_ms": u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            "database": "sqlite",
        })
    };
    stage.close(told, &mut screen, summary).await
}

/// Stops the agents and removes what they keep on a cluster.
async fn end(sites: &mut [Site], is_told: bool, screen: &mut Screen<'_>) {
    let mut stopped = 0;
    for site in sites.iter_mut() {
        stopped += usize::from(site.stop().await);
    }
    if !is_told {
        for site in sites.iter() {
            screen.heading(&format!("The last lines of the log of {}", site.name));
            site.log_tail().iter().for_each(|line| screen.line(&format!("  {line}")));
        }
    }
    let mut left: Result<usize, Error> = Ok(0);
    for site in sites.iter() {
        let cleared = site.clear().await;
        left = left.and_then(|left| Ok(left + cleared?));
    }
    if let Err(error) = &left {
        screen.line(&format!("what the agent made on the cluster may be there still: {error}"));
    }
    if is_told {
        let all = sites.len();
        screen.check(Fact::equal("every agent ended when it was asked to (SIGTERM)", all, stopped));
        let seen = left.map_or_else(|error| error.to_string(), |left| left.to_string());
        if sites.iter().any(|site| site.kind() == "cluster") {
            screen.check(Fact::equal("no object of the demo is left on the cluster", 0, seen));
        }
    }
}
