//! Waits for the outcome of a request: a live line on a terminal, a plain line
//! for each change otherwise. It only reads; the server works on whether or not
//! somebody waits.

use std::time::{Duration, Instant};

use slipway_core::broker::phase::Phase;
use slipway_wire::broker::Resource;
use tokio::time::timeout;

use crate::client::Client;
use crate::error::Error;
use crate::terminal::{Terminal, clean};

/// Short compared with the wait, long compared with the cost of a request.
const PACE: Duration = Duration::from_millis(200);

/// A working server answers far sooner; a shorter silence proves nothing.
const SILENCE: Duration = Duration::from_secs(1);

/// The goal of the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    Ready,
    /// Ready with a later attempt than this one, which is being taken down.
    ReadyAfter(i32),
    /// Ready, and no second attempt is there.
    Alone,
    Deleted,
}

/// Waits until the resource reaches its goal, for `limit` at most. It keeps
/// waiting while the server is unreachable: it may be restarting. If the server
/// is still unreachable at the end, that is the outcome, because nobody knows
/// then how far the resource has come.
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
    // Why the last completed request failed, if it did.
    let mut failure = None;
    loop {
        match observe(client, &begun_with.id, limit.saturating_sub(begun.elapsed())).await {
            Observation::Seen(resource) => (last, failure) = (*resource, None),
            Observation::CutShort => {}
            // It was purged meanwhile, which is more than deleted.
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
            // The time comes first: the state may be longer than the line.
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

/// The result of one request.
enum Observation {
    Seen(Box<Resource>),
    Failed(Error),
    /// Too little time was left to conclude anything from silence.
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
    let failed = |reason: Option<&String>| Error::EndedInFailed {
        handle: handle(),
        reason: reason.map_or_else(|| "no reason was given".to_owned(), String::clone),
    };
    let goal = match (goal, &resource.second_attempt) {
        (Goal::ReadyAfter(_), Some(second))
            if second.comes_in_use && second.phase == Phase::Failed.as_str() =>
        {
            return Some(Err(failed(second.failure_reason.as_ref())));
        }
        (Goal::Alone, Some(_)) => return None,
        (Goal::Alone, None) => Goal::Ready,
        (goal, _) => goal,
    };
    let goal = match goal {
        Goal::ReadyAfter(attempt) if resource.attempt.number > attempt => Goal::Ready,
        // The retried attempt is deleted; only the slot must not be.
        Goal::ReadyAfter(_) if resource.deleted_at.is_some() => Goal::Ready,
        goal => goal,
    };
    match (Phase::parse(&resource.phase)?, goal) {
        // Ready with what it was declared as before.
        (Phase::Ready, Goal::Ready) if resource.update_pending_since.is_some() => None,
        (Phase::Ready, Goal::Ready) | (Phase::Deleted, Goal::Deleted) => Some(Ok(())),
        (Phase::Failed, Goal::Ready) => Some(Err(failed(resource.attempt.failure_reason.as_ref()))),
        (phase, Goal::Ready) if phase.is_deletion() => {
            Some(Err(Error::BeingDeleted { handle: handle() }))
        }
        _ => None,
    }
}

fn describe(resource: &Resource, failure: Option<&Error>) -> String {
    let mut text = clean(&resource.phase);
    if resource.update_pending_since.is_some() {
        text.push_str(", update pending");
    }
    if let Some(second) = &resource.second_attempt {
        text = format!("{text}, attempt {} {}", second.number, clean(&second.phase));
    }
    if let Some(blocker) = resource.blockers.first() {
        text = format!("{text} · {}: {}", clean(&blocker.code), clean(&blocker.message));
    }
    if let Some(failure) = failure {
        text = format!("{text} · {}", clean(&failure.to_string()));
    }
    text
}
