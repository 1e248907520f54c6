//! Waits until a workspace has all its servers, or until its teardown is done. It only reads;
//! the server works on whether or not somebody waits.

use std::time::{Duration, Instant};

use slipway_wire::deletion::Deletion;
use slipway_wire::topology::{Server, Workspace};

use super::workspace::{counted, is_complete};
use crate::client::Listing;
use crate::error::Error;
use crate::exit::Exit;
use crate::kind::Kind as _;
use crate::session::Session;
use crate::terminal::clean;

/// Each time costs two requests, and a teardown takes minutes.
const PACE: Duration = Duration::from_millis(500);

/// Waits until the deletion of a workspace is done; one that was cancelled is an error.
pub(crate) async fn until_done(
    session: &mut Session<'_>,
    deletion: &Deletion,
    limit: Duration,
) -> Result<Deletion, Error> {
    let begun = Instant::now();
    let name = clean(deletion.target.as_ref().unwrap_or(&deletion.target_id));
    let what = format!("the teardown of `{name}`");
    let mut shown = String::new();
    loop {
        let found = session.client.get::<Deletion>(&[Deletion::PATH, &deletion.id]).await;
        let found = match found {
            Ok(found) => found,
            // It may be restarting.
            Err(error) if error.is_temporary() && begun.elapsed() < limit => {
                tokio::time::sleep(PACE).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        let state = match servers_left(session, &found.target_id).await {
            0 => clean(&found.state),
            1 => format!("{}, 1 server left", clean(&found.state)),
            left => format!("{}, {left} servers left", clean(&found.state)),
        };
        let waited = begun.elapsed();
        progress(session, &name, &state, waited, &mut shown);
        match found.state.as_str() {
            "done" | "purging" | "purged" => {
                session.terminal.finish_live();
                return Ok(found);
            }
            "cancelled" | "restored" => {
                session.terminal.finish_live();
                return Err(Error::Ended { what, state: found.state });
            }
            _ => {}
        }
        if waited >= limit {
            session.terminal.finish_live();
            let see = format!("explain deletion {}", found.id);
            return Err(Error::Unfinished { what, state, waited: limit, see });
        }
        tokio::time::sleep(PACE).await;
    }
}

/// The same of a workspace by its id, however it came to be deleted. One that is gone already
/// is done.
pub(crate) async fn until_gone(
    session: &mut Session<'_>,
    id: &str,
    limit: Duration,
) -> Result<(), Error> {
    let deletion = match session.client.get::<Workspace>(&[Workspace::PATH, id]).await {
        Ok(found) => found.deletion_id.filter(|_| found.deleted_at.is_none()),
        Err(error) if error.exit() == Exit::NotFound => None,
        Err(error) => return Err(error),
    };
    let Some(deletion) = deletion else { return Ok(()) };
    let deletion: Deletion = session.client.get(&[Deletion::PATH, &deletion]).await?;
    until_done(session, &deletion, limit).await.map(drop)
}

/// Waits until every group has all its servers, and all of them are Ready.
pub(crate) async fn until_ready(
    session: &mut Session<'_>,
    workspace: &Workspace,
    limit: Duration,
) -> Result<(), Error> {
    let begun = Instant::now();
    let name = clean(&workspace.name);
    let mut shown = String::new();
    loop {
        let found = session.client.get::<Workspace>(&[Workspace::PATH, &workspace.id]).await;
        let found = match found {
            Ok(found) => found,
            // It may be restarting.
            Err(error) if error.is_temporary() && begun.elapsed() < limit => {
                tokio::time::sleep(PACE).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        let blocker = found.blockers.first();
        let blocker = blocker.map(|one| format!(" · {}: {}", one.code, one.message));
        let state = clean(&format!("{}{}", counted(&found), blocker.unwrap_or_default()));
        let waited = begun.elapsed();
        progress(session, &name, &state, waited, &mut shown);
        if is_complete(&found) {
            session.terminal.finish_live();
            return Ok(());
        }
        if found.deletion_id.is_some() {
            session.terminal.finish_live();
            return Err(Error::BeingDeleted { handle: name });
        }
        if waited >= limit {
            session.terminal.finish_live();
            let (what, see) = (format!("workspace `{name}`"), format!("workspace get {name}"));
            return Err(Error::Unfinished { what, state: counted(&found), waited: limit, see });
        }
        tokio::time::sleep(PACE).await;
    }
}

/// How many servers a workspace still has; a wait goes on without the number.
async fn servers_left(session: &Session<'_>, workspace: &str) -> usize {
    let wanted = Listing::default().with("workspace", Some(workspace));
    let found = session.client.list::<Server>(&["servers"], wanted).await;
    found.map_or(0, |found| found.items.len())
}

/// A live line on a terminal, a plain line for each change otherwise.
fn progress(
    session: &mut Session<'_>,
    name: &str,
    state: &str,
    waited: Duration,
    shown: &mut String,
) {
    if session.terminal.traits().redraws {
        session.terminal.redraw(&format!("{name}  {}s  {state}", waited.as_secs()));
    } else if state != shown.as_str() {
        session.terminal.say(&format!("{:>6.1}s  {name} {state}", waited.as_secs_f64()));
        state.clone_into(shown);
    }
}
