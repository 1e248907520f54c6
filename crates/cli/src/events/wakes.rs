//! Tells a command when to read again: the event stream is its alarm clock, and not its
//! source. What it shows it reads from the lists and documents of the API, so an event that
//! is missed costs time and no truth.

use std::time::Duration;

use reqwest::Response;
use slipway_wire::events::Event;
use tokio::time::{sleep, timeout};

use super::follow::{PAUSE_LEAST, PAUSE_MOST};
use super::sse::Parser;
use crate::client::{Client, Listing};

/// What to read again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wake {
    /// Time has passed, or events may have been missed.
    Everything,
    /// Ids of what events are about: of attempts, resources or other things.
    Of(Vec<String>),
}

/// A stream of events that is opened again when it is lost.
#[derive(Debug)]
pub(crate) struct Wakes {
    stream: Option<Response>,
    parser: Parser,
    pause: Duration,
}

impl Wakes {
    /// Opens the stream, so that nothing is missed of what happens from now on. Without one
    /// only time wakes.
    pub(crate) async fn open(client: &Client) -> Self {
        let stream = open(client).await;
        Self { stream, parser: Parser::default(), pause: PAUSE_LEAST }
    }

    /// Waits for an event, for `limit` at most.
    pub(crate) async fn next(&mut self, client: &Client, limit: Duration) -> Wake {
        timeout(limit, self.wait(client)).await.unwrap_or(Wake::Everything)
    }

    async fn wait(&mut self, client: &Client) -> Wake {
        loop {
            let Some(stream) = &mut self.stream else {
                sleep(self.pause).await;
                self.pause = (self.pause * 2).min(PAUSE_MOST);
                self.parser = Parser::default();
                self.stream = open(client).await;
                if self.stream.is_none() {
                    continue;
                }
                return Wake::Everything;
            };
            match client.next_piece(stream).await {
                Ok(Some(bytes)) => {
                    self.pause = PAUSE_LEAST;
                    let messages = self.parser.push(bytes.as_ref());
                    let data = messages.into_iter().filter_map(|message| message.data);
                    let events = data.filter_map(|data| serde_json::from_str::<Event>(&data).ok());
                    let ids: Vec<_> = events
                        .flat_map(|event| [Some(event.aggregate_id), event.resource_id])
                        .flatten()
                        .collect();
                    if !ids.is_empty() {
                        return Wake::Of(ids);
                    }
                }
                // A server ends streams at shutdown and after their time limit.
                Ok(None) | Err(_) => self.stream = None,
            }
        }
    }
}

async fn open(client: &Client) -> Option<Response> {
    client.stream(&["events", "stream"], Listing::default()).await.ok()
}
