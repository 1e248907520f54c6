//! Many agents that poll one server: the shipped program with all of its loops, in a process of
//! its own. The agents are in this process, each with its own key, and share a label with every
//! stack.
//!
//! Every poll opens a connection: the server closes one that is idle for 10 s, which is how
//! often an agent asks.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};
use slipway_testkit::control_plane::{Config, ControlPlane};
use slipway_testkit::postgres::Postgres;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::population::{self, LABEL, STACKS};
use crate::database::{Database, Kind};
use crate::http;
use crate::machine;
use crate::report::Report;

const AGENTS: u32 = 500;
/// How often an agent asks.
const INTERVAL: Duration = Duration::from_secs(10);
/// How long agents poll that do not name what they have.
const WITHOUT_TAG: Duration = Duration::from_secs(10);
/// Requests at a time while the agents are made and have their first poll.
const AT_ONCE: usize = 4;
/// For the server to start.
const START: Duration = Duration::from_secs(60);
/// For one answer: longer than the longest that is plausible on a busy machine.
const ANSWER: Duration = Duration::from_secs(60);

/// An agent of the bench.
#[derive(Debug)]
struct Agent {
    id: String,
    key: String,
    /// What the server called its last offer.
    tag: String,
}

/// A server with stacks and agents that have them.
struct Fleet<'a> {
    plane: ControlPlane,
    agents: Arc<Vec<Agent>>,
    server: Option<&'a Postgres>,
    _folder: tempfile::TempDir,
}

/// What a run of polls cost.
struct Cost {
    polls: usize,
    p50: Duration,
    p99: Duration,
    /// Of one core, in percent: the server's, and PostgreSQL's.
    server: f64,
    database: Option<f64>,
}

pub(super) async fn measure(
    kind: Kind,
    server: &Postgres,
    polling: Duration,
    report: &mut Report,
) -> anyhow::Result<()> {
    let database = Database::new(kind, server).await?;
    let begun = Instant::now();
    let fleet = Fleet::start(kind, &database, server).await?;
    println!("{AGENTS} agents have {STACKS} stacks each after {:.1?}", begun.elapsed());
    let suffix = match kind {
        Kind::Postgres => "",
        Kind::Sqlite => "_sqlite",
    };
    for (name, knows_tag, polling) in
        [("poll", true, polling), ("poll_without_tag", false, WITHOUT_TAG)]
    {
        let cost = fleet.poll(polling, knows_tag).await?;
        let Cost { polls, p50, p99, .. } = cost;
        let how = format!("{polls} polls of {AGENTS} agents, median {p50:.2?}");
        let milliseconds = p99.as_secs_f64() * 1e3;
        report.note(&format!("{name}_p99_ms{suffix}"), milliseconds, &how);
        let how = match cost.database {
            Some(database) => format!("of one core; PostgreSQL {database:.1}"),
            None => "of one core, with the database".to_owned(),
        };
        report.note(&format!("{name}_core_percent{suffix}"), cost.server, &how);
    }
    Ok(())
}

impl<'a> Fleet<'a> {
    async fn start(
        kind: Kind,
        database: &Database,
        server: &'a Postgres,
    ) -> anyhow::Result<Fleet<'a>> {
        let folder = tempfile::tempdir()?;
        let mut config = Config::new(&program()?, folder.path(), http::KEY)?;
        config.database_url = Some(database.url());
        // More than the set-up asks with one key.
        config.set(&["--rate-limit", "100000", "--rate-burst", "100000"]);
        let mut plane = ControlPlane::new(config);
        plane.start(START).await?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, plane.config.port));
        let admin = |path: &str, body: Value| post(address, path.to_owned(), body);
        let made = admin("/generators", json!({ "name": "bench" })).await?;
        let generator = text(&made["generator"]["id"])?;
        population::submit(&database.pool().await?, Uuid::parse_str(&generator)?).await?;
        let agents = stream::iter(0..AGENTS).map(|number| {
            let body = json!({
                "name": format!("agent-{number}"),
                "cluster_name": "bench",
                "generator_ids": [generator],
            });
            async move {
                let made = admin("/agents", body).await?;
                let (id, key) = (text(&made["agent"]["id"])?, text(&made["initial_pak"])?);
                let path = format!("/agents/{id}/labels");
                admin(&path, json!({ "agent_id": id, "label": LABEL })).await?;
                // The first poll has everything, and writes what the agent holds.
                let mut agent = Agent { id, key, tag: String::new() };
                let answer = agent.first_poll(address).await?;
                let objects: Vec<BTreeMap<String, Value>> = serde_json::from_slice(&answer.body)?;
                ensure!(objects.len() == STACKS as usize, "{} objects", objects.len());
                agent.tag = answer.tag.context("an offer has a tag")?;
                Ok(agent)
            }
        });
        let agents: Vec<Agent> = agents.buffer_unordered(AT_ONCE).try_collect().await?;
        // What autovacuum does after so many new rows.
        crate::population::analyse(&database.pool().await?).await?;
        let server = (kind == Kind::Postgres).then_some(server);
        Ok(Fleet { plane, agents: Arc::new(agents), server, _folder: folder })
    }

    /// Lets all agents poll at their interval, spread evenly over it.
    async fn poll(&self, polling: Duration, knows_tag: bool) -> anyhow::Result<Cost> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.plane.config.port));
        let begun = tokio::time::Instant::now();
        let before = self.processor_time()?;
        let mut tasks = JoinSet::new();
        for number in 0..AGENTS {
            let agents = Arc::clone(&self.agents);
            let mut at = begun + INTERVAL * number / AGENTS;
            tasks.spawn(async move {
                let agent = &agents[number as usize];
                let mut took = Vec::new();
                while at < begun + polling {
                    tokio::time::sleep_until(at).await;
                    let asked = Instant::now();
                    let answer = agent.poll(address, knows_tag).await?;
                    took.push(asked.elapsed());
                    let expected = if knows_tag { 304 } else { 200 };
                    ensure!(answer.status == expected, "a poll is answered {}", answer.status);
                    at += INTERVAL;
                }
                Ok(took)
            });
        }
        let mut took = Vec::new();
        while let Some(ended) = tasks.join_next().await {
            took.append(&mut ended??);
        }
        let seconds = begun.elapsed().max(polling).as_secs_f64();
        let after = self.processor_time()?;
        let percent = |before: f64, after: f64| (after - before) / seconds * 100.0;
        took.sort_unstable();
        Ok(Cost {
            polls: took.len(),
            p50: took[took.len() / 2],
            p99: took[took.len() * 99 / 100],
            server: percent(before.0, after.0),
            database: before.1.zip(after.1).map(|(before, after)| percent(before, after)),
        })
    }

    /// Of the server and of PostgreSQL so far, in seconds.
    fn processor_time(&self) -> anyhow::Result<(f64, Option<f64>)> {
        let own = machine::cpu_seconds_of(self.plane.pid()?)?;
        let folder = self.server.and_then(Postgres::folder);
        let database = folder.map(|folder| machine::server_cpu_seconds(&folder.join("data")));
        Ok((own, database.transpose()?))
    }
}

/// The shipped program, which `cargo xtask bench fleet` builds beside this one.
fn program() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?.with_file_name("slipway");
    let missing =
        "the program `slipway` is not beside the benchmark; run `cargo xtask bench fleet`";
    ensure!(program.is_file(), missing);
    Ok(program)
}

fn text(value: &Value) -> anyhow::Result<String> {
    Ok(value.as_str().with_context(|| format!("{value} is no text"))?.to_owned())
}

/// An answer of the server.
struct Answer {
    status: u16,
    tag: Option<String>,
    body: Vec<u8>,
}

impl Agent {
    /// Asks again while the server is too busy, as an agent does.
    async fn first_poll(&self, address: SocketAddr) -> anyhow::Result<Answer> {
        const TRIES: usize = 20;
        let mut tried = 1;
        loop {
            let answer = self.poll(address, false).await?;
            if answer.status == 200 {
                return Ok(answer);
            }
            let text = String::from_utf8_lossy(&answer.body);
            let is_busy = answer.status == 503 && tried < TRIES;
            ensure!(is_busy, "the first poll is answered {}: {text}", answer.status);
            tokio::time::sleep(Duration::from_secs(1)).await;
            tried += 1;
        }
    }

    async fn poll(&self, address: SocketAddr, knows_tag: bool) -> anyhow::Result<Answer> {
        let Self { id, key, tag } = self;
        let known = if knows_tag { format!("If-None-Match: {tag}\r\n") } else { String::new() };
        let head = format!("GET /api/v1/agents/{id}/target-state HTTP/1.1\r\n{known}");
        request(address, &head, key, &[]).await
    }
}

/// A request of the admin, which has to succeed.
async fn post(address: SocketAddr, path: String, body: Value) -> anyhow::Result<Value> {
    let head = format!("POST /api/v1{path} HTTP/1.1\r\nContent-Type: application/json\r\n");
    let answer = request(address, &head, http::KEY, body.to_string().as_bytes()).await?;
    let text = String::from_utf8_lossy(&answer.body);
    ensure!((200..300).contains(&answer.status), "{path}: {} {text}", answer.status);
    Ok(serde_json::from_slice(&answer.body)?)
}

/// One request on a connection of its own, which ends with the answer.
async fn request(
    address: SocketAddr,
    head: &str,
    key: &str,
    body: &[u8],
) -> anyhow::Result<Answer> {
    let length = body.len();
    let request = format!(
        "{head}Host: {address}\r\nAuthorization: Bearer {key}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    let answer = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        stream.write_all(&[request.as_bytes(), body].concat()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = tokio::time::timeout(ANSWER, answer).await.context("no answer")??;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").context("no whole header")?;
    let header = std::str::from_utf8(&answer[..end])?;
    let status = header.split(' ').nth(1).context("no status")?.parse()?;
    let field = |wanted: &str| {
        header.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case(wanted).then(|| value.trim().to_owned())
        })
    };
    let body = answer[end + 4..].to_vec();
    let whole = field("content-length").is_none_or(|length| {
        status == 304 || length.parse().is_ok_and(|length: usize| length == body.len())
    });
    ensure!(whole, "the answer was cut off after {} bytes", body.len());
    Ok(Answer { status, tag: field("etag"), body })
}
