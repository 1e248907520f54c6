//! Waiting for the outcome of what was asked: a live line on a terminal, a
//! plain line for each change otherwise. It only reads; the server goes on with
//! or without somebody waiting.

use std::time::{Duration, Instant};

use slipway_core::phase::Phase;
use slipway_wire::api::Resource;
use tokio::time::timeout;

use crate::client::Client;
use crate::error::Error;
use crate::terminal::{Terminal, clean};

/// Short against what is waited for, long against what a request costs.
const PACE: Duration = Duration::from_millis(200);

/// A server that works answers far sooner; less proves nothing.
const SILENCE: Duration = Duration::from_secs(1);

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    Ready,
    /// Ready with a later attempt than this one, which is on its way out.
    ReadyAfter(i32),
    Deleted,
}

/// Waits until the resource is there, for `limit` at the longest. A server
/// that cannot be reached for a while is waited for too: it may be restarting.
/// If it could not be reached to the end, that is the outcome, because then
/// nobody knows how far the resource has come.
pub(crate) async fn wait_for(
    client: &Client,
    begun_with: &Resource,
    goal: Goal,
    limit: Duration,
    terminal: &mut Terminal,
) -> Result<Option<Resource>, Error> {
    let begun = Instant::now();
    let mut last = begun_with.clone();
    let mut shown = String::new();
    // Why the last request that ended brought nothing.
    let mut failure = None;
    loop {
        match observe(client, &begun_with.id, limit.saturating_sub(begun.elapsed())).await {
            Observation::Seen(resource) => (last, failure) = (*resource, None),
            Observation::CutShort => {}
            // Purged meanwhile, which is more than was asked for.
            Observation::Failed(Error::Problem(problem))
                if problem.status == 404 && goal == Goal::Deleted =>
            {
                return Ok(None);
            }
            Observation::Failed(error) if error.is_temporary() => failure = Some(error),
            Observation::Failed(error) => return Err(error),
        }
        let state = describe(&last, failure.as_ref());
        let waited = begun.elapsed();
        if terminal.traits().redraws {
            // The time before the state, which may be longer than the line.
            terminal.redraw(&format!("{}  {}s  {state}", last.handle, waited.as_secs()));
        } else if state != shown {
            terminal.say(&format!("{:>6.1}s  {} {state}", waited.as_secs_f64(), last.handle));
            shown = state;
        }
        if failure.is_none()
            && let Some(outcome) = outcome(&last, goal)
        {
            terminal.finish_live();
            return outcome.map(|()| Some(last));
        }
        if waited >= limit {
            terminal.finish_live();
            return Err(match failure {
                Some(error @ Error::Unreachable { .. }) => error,
                _ => Error::TimedOut { handle: last.handle, phase: last.phase, waited: limit },
            });
        }
        tokio::time::sleep(PACE.min(limit - waited)).await;
    }
}

/// What one request came to.
enum Observation {
    Seen(Box<Resource>),
    Failed(Error),
    /// There was not enough time left to conclude anything from silence.
    CutShort,
}

async fn observe(client: &Client, id: &str, left: Duration) -> Observation {
    match timeout(left, client.get(&["resources", id])).await {
        Ok(Ok(resource)) => Observation::Seen(Box::new(resource)),
        Ok(Err(error)) => Observation::Failed(error),
        Err(_) if left < SILENCE => Observation::CutShort,
        Err(_) => Observation::Failed(client.silent_for(left)),
    }
}

fn outcome(resource: &Resource, goal: Goal) -> Option<Result<(), Error>> {
    let handle = || resource.handle.clone();
    let goal = match goal {
        Goal::ReadyAfter(attempt) if resource.attempt.number > attempt => Goal::Ready,
        // The attempt that is retried goes; only the slot must not.
        Goal::ReadyAfter(_) if resource.deleted_at.is_some() => Goal::Ready,
        goal => goal,
    };
    match (Phase::parse(&resource.phase)?, goal) {
        (Phase::Ready, Goal::Ready) | (Phase::Deleted, Goal::Deleted) => Some(Ok(())),
        (Phase::Failed, Goal::Ready) => Some(Err(Error::EndedInFailed {
            handle: handle(),
            reason: resource
                .attempt
                .failure_reason
                .clone()
                .unwrap_or_else(|| "no reason was given".to_owned()),
        })),
        (phase, Goal::Ready) if phase.is_deletion() => {
            Some(Err(Error::BeingDeleted { handle: handle() }))
        }
        _ => None,
    }
}

fn describe(resource: &Resource, failure: Option<&Error>) -> String {
    let mut text = clean(&resource.phase);
    if let Some(blocker) = resource.blockers.first() {
        text = format!("{text} · {}: {}", clean(&blocker.code), clean(&blocker.message));
    }
    if let Some(failure) = failure {
        text = format!("{text} · {}", clean(&failure.to_string()));
    }
    text
}
