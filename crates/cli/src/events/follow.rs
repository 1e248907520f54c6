//! `slipway event follow`: events as they happen; lost connections are resumed.

use std::time::Duration;

use clap::Args;
use slipway_wire::events::Event;
use tokio::time::sleep;

use super::sse::Parser;
use crate::arguments::Output;
use crate::client::Listing;
use crate::error::Error;
use crate::output::{render, time, to_yaml};
use crate::session::Session;
use crate::terminal::clean;

#[derive(Debug, Clone, Args)]
pub struct FollowArguments {
    /// Begin after this position, 0 for the first event; from now on if not given
    #[arg(long, value_name = "POSITION", value_parser = clap::value_parser!(i64).range(0..))]
    pub after: Option<i64>,
    /// End after so many events
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
}

/// Pause between two attempts to resume a stream. It doubles with each failure,
/// from the time of a restart to what a person still finds prompt.
pub(super) const PAUSE_LEAST: Duration = Duration::from_millis(250);
pub(super) const PAUSE_MOST: Duration = Duration::from_secs(10);

/// How far the reader has come.
struct Progress {
    position: Option<i64>,
    left: Option<u64>,
    pause: Duration,
}

/// Shows events until interrupted, or until the limit is reached.
pub(super) async fn follow(
    session: &mut Session<'_>,
    arguments: &FollowArguments,
) -> Result<(), Error> {
    let mut progress =
        Progress { position: arguments.after, left: arguments.limit, pause: PAUSE_LEAST };
    let followed = async {
        loop {
            match follow_once(session, &mut progress).await {
                Ok(true) => return Ok(()),
                // A server ends streams at shutdown and after their time limit.
                Ok(false) => {}
                Err(error) if error.is_temporary() => {
                    let shown = clean(&error.to_string());
                    session.terminal.say(&format!("{shown}; trying again"));
                }
                Err(error) => return Err(error),
            }
            sleep(progress.pause).await;
            progress.pause = (progress.pause * 2).min(PAUSE_MOST);
        }
    };
    tokio::select! {
        ended = followed => ended,
        // Without a handler the signal itself ends the process.
        Ok(()) = tokio::signal::ctrl_c() => Ok(()),
    }
}

/// Reads one stream to its end; answers whether the limit is reached.
async fn follow_once(session: &mut Session<'_>, progress: &mut Progress) -> Result<bool, Error> {
    let after = progress.position.map(|position| position.to_string());
    let after = Listing::default().with("after", after);
    let mut stream = session.client.stream(&["events", "stream"], after).await?;
    let mut parser = Parser::default();
    while let Some(bytes) = session.client.next_piece(&mut stream).await? {
        for message in parser.push(bytes.as_ref()) {
            progress.pause = PAUSE_LEAST;
            if let Some(position) = message.id.as_deref().and_then(|id| id.parse().ok()) {
                progress.position = Some(position);
            }
            // The first message only has the position where the stream begins.
            let Some(data) = message.data else { continue };
            show(session, &data)?;
            if let Some(left) = &mut progress.left {
                *left -= 1;
            }
            if progress.left == Some(0) || session.terminal.is_closed() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn show(session: &mut Session<'_>, data: &str) -> Result<(), Error> {
    let event: Event =
        serde_json::from_str(data).map_err(|error| session.client.unreadable(error.to_string()))?;
    let line = match session.output {
        Output::Table | Output::Wide | Output::Name => event_line(&event),
        // One event per line, for tools in a pipe.
        Output::Json => serde_json::to_string(&event).unwrap_or_default(),
        Output::Yaml => format!("---\n{}", to_yaml(&event)),
        Output::JsonPath(_) => render(&event, session.output, event_line),
    };
    session.terminal.print(&line);
    Ok(())
}

/// One event as one line; an endless list has no columns to align.
fn event_line(event: &Event) -> String {
    let Event { position, event_type, aggregate_id, .. } = event;
    let at = time(&event.occurred_at);
    let handle = event.handle.as_ref().unwrap_or(aggregate_id);
    clean(&format!("{position:>6}  {at}  {event_type}  {handle}"))
}
