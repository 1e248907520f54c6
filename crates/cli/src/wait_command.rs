//! `slipway wait`: until all of several things are in a phase, or gone. What is so already
//! answers at once. Like `--wait` it only reads; events say when, so that waiting for many
//! costs few requests.

use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use slipway_core::broker::phase::Phase;
use tokio::time::timeout;

use crate::arguments::{Output, parse_duration};
use crate::broker::target::{Gone, TargetArguments, find};
use crate::complete;
use crate::error::Error;
use crate::events::{Wake, Wakes};
use crate::exit::Exit;
use crate::fleet::find::{Within, find_id};
use crate::kind::{Cells, Row};
use crate::session::{Session, show_rows_on};
use crate::terminal::clean;

/// Without an event everything is read this often: not every change is an event.
const SWEEP: Duration = Duration::from_secs(5);

/// Between two rounds, so that a burst of events is one round.
const PAUSE: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Args)]
pub struct WaitCommandArguments {
    /// What to wait for, such as resource/web-1 or project/shop; a name alone is a resource
    #[arg(value_name = "KIND/NAME", required = true, add = complete::things())]
    pub things: Vec<String>,
    /// Until when: `phase=Ready` or another phase of resources, or `deleted`
    #[arg(long = "for", value_name = "CONDITION", value_parser = Condition::parse)]
    pub condition: Condition,
    /// How long to wait at most, for instance 90s or 5m
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "5m")]
    pub timeout: Duration,
    /// The project of handles and of names of Fleet (name, id or beginning of the id)
    #[arg(long)]
    pub project: Option<String>,
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway wait --for phase=Ready web-1 web-2 --timeout 10m",
    "slipway wait --for deleted resource/web-1 project/shop",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    Phase(Phase),
    Deleted,
}

impl Condition {
    fn parse(text: &str) -> Result<Self, String> {
        if text == "deleted" {
            return Ok(Self::Deleted);
        }
        let phase = text.strip_prefix("phase=").and_then(Phase::parse);
        phase.map(Self::Phase).ok_or_else(|| {
            let phases: Vec<_> = Phase::ALL.iter().map(|phase| phase.as_str()).collect();
            format!("possible are deleted, and phase= with one of {}", phases.join(", "))
        })
    }
}

/// The kinds that can be waited for, and the first segment of their paths.
const KINDS: [(&str, &str); 12] = [
    ("resource", "resources"),
    ("project", "projects"),
    ("cluster", "clusters"),
    ("cloud", "clouds"),
    ("credential", "credentials"),
    ("blueprint", "blueprints"),
    ("label", "labels"),
    ("generator", "generators"),
    ("stack", "stacks"),
    ("template", "templates"),
    ("agent", "agents"),
    ("workspace", "workspaces"),
];

/// One thing that is waited for.
#[derive(Debug, Clone, Serialize)]
struct Thing {
    kind: &'static str,
    name: String,
    #[serde(skip)]
    path: &'static str,
    /// Empty if it was gone from the beginning.
    id: String,
    state: String,
}

impl Row for Thing {
    fn cells(&self) -> Cells {
        vec![
            ("KIND", self.kind.to_owned()),
            ("NAME", self.name.clone()),
            ("STATE", self.state.clone()),
        ]
    }
}

pub(crate) async fn run(
    session: &mut Session<'_>,
    arguments: WaitCommandArguments,
) -> Result<(), Error> {
    let begun = Instant::now();
    let limit = arguments.timeout;
    let mut things = Vec::new();
    for text in &arguments.things {
        let thing = parse(text, arguments.condition)?;
        if !things
            .iter()
            .any(|known: &Thing| (known.kind, &known.name) == (thing.kind, &thing.name))
        {
            things.push(thing);
        }
    }
    // Opened first, so that no change is missed between reading and waiting.
    let mut wakes = Wakes::open(&session.client).await;
    for thing in &mut things {
        resolve(session, thing, &arguments).await?;
    }
    let mut open: Vec<usize> = (0..things.len()).collect();
    let mut wake = Wake::Everything;
    let mut failure = None;
    loop {
        let mut still_open = Vec::new();
        for index in open {
            let thing = &mut things[index];
            let left = limit.saturating_sub(begun.elapsed());
            let concerned = match &wake {
                Wake::Everything => true,
                Wake::Of(ids) => ids.contains(&thing.id) || thing.kind != "resource",
            };
            if !concerned {
                still_open.push(index);
                continue;
            }
            match timeout(left, read(session, thing)).await {
                Ok(Ok(found)) => {
                    failure = None;
                    let before =
                        std::mem::replace(&mut thing.state, state_of(thing.kind, found.as_ref()));
                    if before != thing.state {
                        let waited = begun.elapsed().as_secs_f64();
                        let (name, state) = (clean(&thing.name), clean(&thing.state));
                        session
                            .terminal
                            .say(&format!("{waited:>6.1}s  {}/{name} {state}", thing.kind));
                    }
                    if !is_met(thing, found.as_ref(), arguments.condition)? {
                        still_open.push(index);
                    }
                }
                Ok(Err(error)) if error.is_temporary() => {
                    failure = Some(error);
                    still_open.push(index);
                }
                Ok(Err(error)) => return Err(error),
                Err(_) => still_open.push(index),
            }
        }
        open = still_open;
        let Some(first) = open.first() else { break };
        let left = limit.saturating_sub(begun.elapsed());
        if left.is_zero() {
            if open.len() > 1 {
                let open = open.iter().map(|index| &things[*index]);
                let open: Vec<_> =
                    open.map(|one| format!("{}/{} ({})", one.kind, one.name, one.state)).collect();
                session.terminal.say(&format!("waited in vain for {}", clean(&open.join(", "))));
            }
            return Err(gave_up(&things[*first], failure, limit));
        }
        tokio::time::sleep(PAUSE.min(left)).await;
        wake = wakes.next(&session.client, SWEEP.min(left)).await;
    }
    let now = session.client.server_time();
    match session.output {
        Output::Name => {
            let names = things.iter().map(|thing| format!("{}/{}", thing.kind, thing.name));
            session.terminal.print(&clean_lines(names));
        }
        output => show_rows_on(session.terminal, output, now, &things, "things"),
    }
    Ok(())
}

fn parse(text: &str, condition: Condition) -> Result<Thing, Error> {
    let (kind, name) = text.split_once('/').unwrap_or(("resource", text));
    let known = KINDS.iter().find(|(one, path)| [*one, *path].contains(&kind));
    let Some((kind, path)) = known.filter(|_| !name.is_empty()) else {
        let kinds: Vec<_> = KINDS.iter().map(|(kind, _)| *kind).collect();
        return Err(Error::Usage(format!(
            "`{text}` is no KIND/NAME; the kinds are {}",
            kinds.join(", ")
        )));
    };
    if *kind != "resource" && condition != Condition::Deleted {
        return Err(Error::Usage(format!(
            "a {kind} has no phase; it can be waited for with --for deleted"
        )));
    }
    let (name, id, state) = (name.to_owned(), String::new(), String::new());
    Ok(Thing { kind, name, path, id, state })
}

/// Finds out which one is meant, once: a new one of the same name is another.
async fn resolve(
    session: &Session<'_>,
    thing: &mut Thing,
    arguments: &WaitCommandArguments,
) -> Result<(), Error> {
    let found = if thing.kind == "resource" {
        let (target, project) = (thing.name.clone(), arguments.project.clone());
        let target = TargetArguments { target, project };
        find(&session.client, &target, Gone::Refused).await.map(|found| found.id)
    } else if let Some(id) = id_by_name(session, thing, arguments).await {
        id
    } else {
        let found = session.client.get::<Value>(&[thing.path, &thing.name]).await;
        found.map(|found| found["id"].as_str().unwrap_or(&thing.name).to_owned())
    };
    match found {
        Ok(id) => thing.id = id,
        Err(error)
            if error.exit() == Exit::NotFound && arguments.condition == Condition::Deleted => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// The id of something of Fleet by its name; `None` for another kind.
async fn id_by_name(
    session: &Session<'_>,
    thing: &Thing,
    arguments: &WaitCommandArguments,
) -> Option<Result<String, Error>> {
    let within = Within { project: arguments.project.clone() };
    find_id(&session.client, thing.kind, &thing.name, &within, Gone::Refused).await
}

/// The document; `None` if there is none any more.
async fn read(session: &Session<'_>, thing: &Thing) -> Result<Option<Value>, Error> {
    if thing.id.is_empty() {
        return Ok(None);
    }
    match session.client.get::<Value>(&[thing.path, &thing.id]).await {
        Err(Error::Problem(problem)) if problem.status == 404 => Ok(None),
        found => found.map(Some),
    }
}

fn clean_lines(lines: impl Iterator<Item = String>) -> String {
    lines.map(|line| clean(&line)).collect::<Vec<_>>().join("\n")
}

fn state_of(kind: &str, found: Option<&Value>) -> String {
    let Some(found) = found else { return "Deleted".to_owned() };
    match found["phase"].as_str() {
        Some(phase) if kind == "resource" => phase.to_owned(),
        _ if !found["deleted_at"].is_null() => "Deleted".to_owned(),
        _ => "present".to_owned(),
    }
}

fn is_met(thing: &Thing, found: Option<&Value>, condition: Condition) -> Result<bool, Error> {
    let state = thing.state.as_str();
    let wanted = match condition {
        Condition::Deleted => return Ok(state == "Deleted"),
        Condition::Phase(wanted) if wanted.as_str() == state => return Ok(true),
        Condition::Phase(wanted) => wanted,
    };
    let phase = Phase::parse(state);
    if phase == Some(Phase::Failed) && !wanted.is_deletion() {
        let reason = found.and_then(|found| found["attempt"]["failure_reason"].as_str());
        return Err(Error::EndedInFailed {
            handle: thing.name.clone(),
            reason: reason.unwrap_or("no reason was given").to_owned(),
        });
    }
    if phase.is_some_and(Phase::is_deletion) && !wanted.is_deletion() {
        return Err(Error::BeingDeleted { handle: thing.name.clone() });
    }
    Ok(false)
}

fn gave_up(first: &Thing, failure: Option<Error>, waited: Duration) -> Error {
    match failure {
        Some(error @ Error::Unreachable { .. }) => error,
        _ => {
            let (handle, phase) = (first.name.clone(), first.state.clone());
            Error::TimedOut { handle, phase, waited }
        }
    }
}
