//! `slipway logs`: what the node agent of a resource wrote, where its engine keeps it.

use std::time::Duration;

use clap::Args;
use slipway_wire::broker::Logs;

use super::target::{TargetArguments, find_id};
use crate::client::Listing;
use crate::error::Error;
use crate::output::render;
use crate::session::Session;
use crate::terminal::clean;

/// Between two questions for more.
const PACE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Args)]
pub struct LogsArguments {
    #[command(flatten)]
    pub target: TargetArguments,
    /// Go on with what comes, until interrupted
    #[arg(short, long)]
    pub follow: bool,
    /// So many lines at its end, 5000 at most
    #[arg(long, value_name = "COUNT", default_value_t = 200)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=5000))]
    pub tail: u32,
}

pub(crate) const EXAMPLES: &[&str] =
    &["slipway logs web-1 --tail 50", "slipway logs web-1 --follow"];

pub(crate) async fn run(session: &mut Session<'_>, arguments: LogsArguments) -> Result<(), Error> {
    let id = find_id(&session.client, &arguments.target).await?;
    let path = ["resources", &id, "logs"];
    let tail = Listing::default().with("tail", Some(arguments.tail.to_string()));
    let mut found: Logs = session.client.get_where(&path, tail).await?;
    if found.truncated {
        session.terminal.say("earlier lines are left out");
    }
    if found.text.is_empty() && !arguments.follow {
        session.terminal.say("its node has written nothing, or is gone");
    }
    show(session, &found);
    let followed = async {
        while arguments.follow && !session.terminal.is_closed() {
            // What is left of a long output follows at once.
            if !found.truncated || found.text.is_empty() {
                tokio::time::sleep(PACE).await;
            }
            let from = Listing::default().with("offset", Some(found.next_offset.to_string()));
            match session.client.get_where::<Logs>(&path, from).await {
                Ok(more) => found = more,
                Err(error) if error.is_temporary() => {
                    found.text.clear();
                    let shown = clean(&error.to_string());
                    session.terminal.say(&format!("{shown}; trying again"));
                }
                Err(error) => return Err(error),
            }
            show(session, &found);
        }
        Ok(())
    };
    tokio::select! {
        ended = followed => ended,
        // Without a handler the signal itself ends the process.
        Ok(()) = tokio::signal::ctrl_c() => Ok(()),
    }
}

fn show(session: &mut Session<'_>, found: &Logs) {
    if found.text.is_empty() && session.output.is_for_people() {
        return;
    }
    let text = render(found, session.output, |found| {
        found.text.lines().map(clean).collect::<Vec<_>>().join("\n")
    });
    session.terminal.print(&text);
}
