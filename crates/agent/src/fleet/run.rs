//! The loop of an agent: find out who it is, then pass after pass, with heartbeats
//! beside them, until somebody ends it.

use std::path::PathBuf;
use std::time::Duration;

use reqwest::StatusCode;
use slipway_cluster::Access;
use slipway_wire::fleet::Agent as AgentRow;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::backend::{Backend, Owner};
use super::client::{Client, Key, LONGEST_WAIT};
use super::cluster::ClusterBackend;
use super::directory::DirectoryBackend;
use super::error::Error;
use super::pass::{Agent, Stop, Summary, Vitals};
use crate::http::Failure;
use crate::retry_delay::RetryDelay;

/// The least time between two polls, whatever the server answers.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);

/// How long `--once` waits for what is being deleted.
const ONCE_WAITS: Duration = Duration::from_secs(30);

/// How an agent reaches its control plane, and who it is.
#[derive(Debug, Clone)]
pub struct Options {
    pub server: String,
    pub key: Key,
    /// Authorities to trust instead of the system's, a PEM file.
    pub ca_file: Option<PathBuf>,
    /// Each is compared with the row that the key belongs to.
    pub id: Option<String>,
    pub name: Option<String>,
    pub cluster_name: Option<String>,
    pub poll: Duration,
    /// End after one pass, with an error if not everything is as it should be.
    pub once: bool,
    pub target: Target,
}

/// What the agent deploys to.
#[derive(Debug, Clone)]
pub enum Target {
    Directory { path: PathBuf },
    Cluster { access: Access, namespace: Option<String> },
}

/// Runs an agent as the main task of this process, until it receives SIGTERM or SIGINT
/// or, with `once`, until it is done.
pub async fn run(options: Options) -> Result<(), Error> {
    let mut terminate = signal(SignalKind::terminate()).map_err(Error::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Error::Signals)?;
    let told = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    run_until(options, told).await
}

/// The agent without signal handlers.
pub async fn run_until(options: Options, told: impl Future<Output = ()>) -> Result<(), Error> {
    let client = Client::new(&options.server, options.key.clone(), options.ca_file.as_ref())?;
    tokio::select! {
        biased;
        () = told => {
            tracing::info!("the agent ends");
            Ok(())
        }
        ended = live(&options, &client) => ended,
    }
}

async fn live(options: &Options, client: &Client) -> Result<(), Error> {
    match &options.target {
        Target::Directory { path } => serve(options, client, DirectoryBackend::open(path)?).await,
        Target::Cluster { access, namespace } => {
            let backend = ClusterBackend::new(access.clone(), namespace.clone())?;
            serve(options, client, backend).await
        }
    }
}

async fn serve<B: Backend>(options: &Options, client: &Client, backend: B) -> Result<(), Error> {
    let (row, owner) = identify(options, client).await?;
    tracing::info!(
        agent = row.name,
        cluster = row.cluster_name,
        id = row.id,
        target = backend.name(),
        "the agent begins"
    );
    let vitals = Vitals::new(None);
    let receiver = vitals.subscribe();
    let mut agent = Agent::new(client, (row.id.clone(), owner), backend, &vitals);
    if options.once {
        return run_once(&mut agent, client, &row).await;
    }
    tokio::select! {
        never = heartbeats(client, &row.id, options.poll, receiver) => never,
        ended = passes(&mut agent, options.poll, &row) => ended,
    }
}

/// Finds out whose key it is. A server that does not answer is waited for, unless the
/// agent runs once.
async fn identify(options: &Options, client: &Client) -> Result<(AgentRow, Owner), Error> {
    let mut delays = RetryDelay::default();
    let mut log = LogOnce::default();
    loop {
        let failure = match who(options, client).await {
            Ok(found) => return found,
            Err(failure) => failure,
        };
        if options.once {
            return Err(unavailable(&failure));
        }
        log.warn(&hint(&failure));
        sleep(delays.next(failure.retry_after())?).await;
    }
}

async fn who(
    options: &Options,
    client: &Client,
) -> Result<Result<(AgentRow, Owner), Error>, Failure> {
    let known = client.authenticate().await?;
    let Some(id) = known.agent else { return Ok(Err(Error::NotAnAgent)) };
    let row = client.agent(&id).await?;
    for (expected, found) in [
        (&options.id, &row.id),
        (&options.name, &row.name),
        (&options.cluster_name, &row.cluster_name),
    ] {
        if let Some(expected) = expected.as_ref().filter(|expected| *expected != found) {
            let (found, expected) = (found.clone(), expected.clone());
            return Ok(Err(Error::OtherAgent { found, expected }));
        }
    }
    // A server that names no installation has agents whose ids nobody else has.
    let installation = known.installation.unwrap_or_else(|| row.id.clone());
    let owner = Owner { installation, agent: row.id.clone() };
    Ok(Ok((row, owner)))
}

/// Heartbeats at the pace of the polls, also while a pass takes long.
async fn heartbeats(
    client: &Client,
    id: &str,
    poll: Duration,
    vitals: watch::Receiver<Option<super::client::ClusterContact>>,
) -> Result<(), Error> {
    let mut delays = RetryDelay::default();
    let mut log = LogOnce::default();
    loop {
        let contact = *vitals.borrow();
        match client.heartbeat(id, contact).await {
            Ok(()) => {
                delays.reset();
                log.over("heartbeats are taken again");
                sleep(poll).await;
            }
            Err(failure) => {
                log.warn(&format!("the heartbeat was not taken: {}", hint(&failure)));
                sleep(delays.next(failure.retry_after())?.max(poll)).await;
            }
        }
    }
}

async fn passes<B: Backend>(
    agent: &mut Agent<'_, B>,
    poll: Duration,
    row: &AgentRow,
) -> Result<(), Error> {
    let mut delays = RetryDelay::default();
    let mut log = LogOnce::default();
    let mut is_settled = false;
    let mut begun = Instant::now();
    loop {
        // One that was due before and not acted on waits for something else.
        let retry = agent.next_retry().filter(|retry| *retry > begun);
        begun = Instant::now();
        let until = begun + poll.min(LONGEST_WAIT);
        let until = retry.map_or(until, |retry| retry.min(until));
        // The server holds the answer back while nothing changes, if it can.
        let wait = if is_settled { until - begun } else { Duration::ZERO };
        match agent.pass(wait).await {
            Ok(summary) => {
                delays.reset();
                describe(&summary, row, &mut log);
                is_settled = !summary.is_new && !summary.has_acted;
                // The next answer is held back by the server. Only one that was not,
                // although nothing is new, is from a server that cannot.
                let is_held = !wait.is_zero() && is_settled;
                let pause = if is_held { until } else { begun };
                sleep_until(pause.max(Instant::now() + SHORTEST_PAUSE)).await;
            }
            Err(Stop::Fatal(error)) => return Err(error),
            Err(Stop::Backend(reason)) => {
                is_settled = false;
                log.warn(&format!("the pass broke off: {reason}"));
                sleep(delays.next(None)?).await;
            }
            Err(Stop::Server(failure)) => {
                is_settled = false;
                log.warn(&hint(&failure));
                sleep(delays.next(failure.retry_after())?).await;
            }
        }
    }
}

fn describe(summary: &Summary, row: &AgentRow, log: &mut LogOnce) {
    if let Some(status) = &summary.inactive {
        log.warn(&format!(
            "the agent {} is {status}, so it does nothing; it begins when somebody activates it",
            row.name
        ));
    } else if summary.problems.is_empty() {
        log.over("everything is as it should be");
    } else {
        log.warn(&summary.problems.join("; "));
    }
}

/// One heartbeat and as many passes as everything that can be done now takes.
async fn run_once<B: Backend>(
    agent: &mut Agent<'_, B>,
    client: &Client,
    row: &AgentRow,
) -> Result<(), Error> {
    client.heartbeat(&row.id, None).await.map_err(|failure| unavailable(&failure))?;
    let begun = Instant::now();
    loop {
        let summary = match agent.pass(Duration::ZERO).await {
            Ok(summary) => summary,
            Err(Stop::Fatal(error)) => return Err(error),
            Err(Stop::Backend(reason)) => return Err(Error::Unavailable(reason)),
            Err(Stop::Server(failure)) => return Err(unavailable(&failure)),
        };
        if let Some(status) = summary.inactive {
            return Err(Error::Inactive { name: row.name.clone(), status });
        }
        let retry = agent.next_waiting().filter(|_| begun.elapsed() < ONCE_WAITS);
        match retry {
            Some(retry) => sleep_until(retry).await,
            None if summary.is_unproven => {}
            None if summary.problems.is_empty() => return Ok(()),
            None => return Err(Error::Incomplete { problems: summary.problems }),
        }
    }
}

/// The error of an agent that does not wait for its server.
fn unavailable(failure: &Failure) -> Error {
    match failure.refusal() {
        Some(StatusCode::UNAUTHORIZED) => Error::KeyRefused(failure.to_string()),
        _ => Error::Unavailable(failure.to_string()),
    }
}

/// What a person can do about a refusal.
fn hint(failure: &Failure) -> String {
    unavailable(failure).to_string()
}

/// Logs a problem when it begins and when it changes, and its end.
#[derive(Debug, Default)]
struct LogOnce {
    last: Option<String>,
}

impl LogOnce {
    fn warn(&mut self, problem: &str) {
        if self.last.as_deref() != Some(problem) {
            tracing::warn!("{problem}");
            self.last = Some(problem.to_owned());
        }
    }

    fn over(&mut self, relief: &str) {
        if self.last.take().is_some() {
            tracing::info!("{relief}");
        }
    }
}
