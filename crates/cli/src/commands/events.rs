//! `slipway event …`: reading events page by page or as they happen, and
//! looking after those who get every one of them.

use std::time::Duration;

use slipway_wire::api::Event;
use tokio::time::sleep;

use super::run::Session;
use crate::arguments::{EventCommand, EventFollowArguments, Output, UnsubscribeArguments};
use crate::client::to_yaml;
use crate::error::Error;
use crate::render;
use crate::sse::Parser;
use crate::terminal::clean;

/// Between two attempts to take a stream up again: doubled with each that
/// fails, from what a restart takes to what a person still finds prompt.
const PAUSE_LEAST: Duration = Duration::from_millis(250);
const PAUSE_MOST: Duration = Duration::from_secs(10);

pub(super) async fn run(session: &mut Session<'_>, command: EventCommand) -> Result<(), Error> {
    match command {
        EventCommand::List(arguments) => {
            let listed = session.client.event_list(arguments.after, arguments.page.limit).await?;
            session.show_list(&listed, render::events);
            Ok(())
        }
        EventCommand::Follow(arguments) => follow(session, &arguments).await,
        EventCommand::Subscriptions => {
            let found = session.client.subscription_list().await?;
            session.show(&found, |found, width| render::subscriptions(found, width));
            Ok(())
        }
        EventCommand::Unsubscribe(arguments) => unsubscribe(session, &arguments).await,
    }
}

async fn unsubscribe(
    session: &mut Session<'_>,
    arguments: &UnsubscribeArguments,
) -> Result<(), Error> {
    if !arguments.yes {
        if !session.terminal.traits().asks {
            return Err(Error::Usage(
                "this wants --yes where nobody can be asked; nothing was done".to_owned(),
            ));
        }
        if !session.terminal.confirm(&format!("Forget subscription `{}`?", arguments.name)) {
            return Err(Error::Declined);
        }
    }
    session.client.subscription_remove(&arguments.name).await?;
    session.terminal.say(&format!("subscription `{}` is forgotten", clean(&arguments.name)));
    Ok(())
}

/// How far a reader is.
struct Progress {
    position: Option<i64>,
    left: Option<u64>,
    pause: Duration,
}

/// Shows events until somebody interrupts it, or enough were seen.
async fn follow(session: &mut Session<'_>, arguments: &EventFollowArguments) -> Result<(), Error> {
    let mut progress =
        Progress { position: arguments.after, left: arguments.limit, pause: PAUSE_LEAST };
    let followed = async {
        loop {
            match follow_once(session, &mut progress).await {
                Ok(true) => return Ok(()),
                // A server ends streams when it stops, and now and then.
                Ok(false) => {}
                Err(error) if error.may_pass() => {
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
        // Whoever cannot be interrupted in order is ended by the signal itself.
        Ok(()) = tokio::signal::ctrl_c() => Ok(()),
    }
}

/// Reads one stream to its end; whether that is the end of all.
async fn follow_once(session: &mut Session<'_>, progress: &mut Progress) -> Result<bool, Error> {
    let mut stream = session.client.event_stream(progress.position).await?;
    let mut parser = Parser::default();
    while let Some(bytes) = session.client.next_piece(&mut stream).await? {
        for message in parser.push(bytes.as_ref()) {
            progress.pause = PAUSE_LEAST;
            if let Some(position) = message.id.as_deref().and_then(|id| id.parse().ok()) {
                progress.position = Some(position);
            }
            // The first message only says where the stream begins.
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
        Output::Table => render::event_line(&event),
        // One a line, for the tool behind the pipe.
        Output::Json => serde_json::to_string(&event).unwrap_or_default(),
        Output::Yaml => format!("---\n{}", to_yaml(&event)),
    };
    session.terminal.print(&line);
    Ok(())
}
