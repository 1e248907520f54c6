//! The idle poll of an agent with all stacks, beside the peer's way of answering it. Both are
//! counted in the log of PostgreSQL: ours as a request over HTTP, authentication included.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use slipway_app::access::authenticate;
use slipway_app::fleet::{agents, offers, tags};
use slipway_core::ids::AgentId;
use slipway_core::secret::Secret;
use slipway_testkit::postgres::Postgres;

use super::document::Document;
use super::population::{LABEL, STACKS};
use super::{Ours, median};
use crate::database::{Kind, Pool};
use crate::http::Http;
use crate::plane::Plane;
use crate::report::Report;

/// Polls of ours for each one of the peer's.
const POLLS: usize = 10;

/// An agent that has deployed everything.
struct Idle {
    id: AgentId,
    key: Secret,
    tag: String,
}

pub(super) async fn measure(
    plane: &Plane,
    server: &Postgres,
    ours: &Ours,
    document: &Document,
    kind: Kind,
    rounds: usize,
    report: &mut Report,
) -> anyhow::Result<()> {
    let agent = Idle::new(ours).await?;
    let (mut own, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..=rounds {
        for _ in 0..POLLS {
            let took = agent.poll(ours).await?;
            if round > 0 {
                own.push(took);
            }
        }
        let begun = Instant::now();
        document.poll().await?;
        if round > 0 {
            theirs.push(begun.elapsed());
        }
    }
    let (own, theirs) = (median(own), median(theirs));
    let suffix = match kind {
        Kind::Postgres => "",
        Kind::Sqlite => "_sqlite",
    };
    let how = format!("{theirs:.1?} against {own:.2?}, {STACKS} stacks");
    let speedup = theirs.as_secs_f64() / own.as_secs_f64();
    report.note(&format!("idle_poll_speedup{suffix}"), speedup, &how);
    if kind == Kind::Postgres {
        let http = Http::serve(plane).await?;
        let statements = Statements::begin(server, &ours.pool, &http, &agent).await?;
        let own = statements
            .count(&ours.pool, async || {
                let path = format!("/agents/{}/target-state", agent.id);
                let status = http.get(&path, agent.key.expose(), &agent.tag).await?;
                ensure!(status == 304, "an idle poll is answered {status}");
                Ok(())
            })
            .await?;
        let theirs = statements
            .count(&document.pool, async || {
                document.poll().await?;
                Ok(())
            })
            .await?;
        statements.end(&ours.pool).await?;
        let how = format!("over HTTP, its key included; the peer's way {theirs}");
        report.note("idle_poll_statements", own as f64, &how);
    }
    Ok(())
}

impl Idle {
    async fn new(ours: &Ours) -> anyhow::Result<Self> {
        let Ours { context, admin, generator, .. } = ours;
        let input = agents::CreateAgent {
            name: "idle".to_owned(),
            cluster_name: "bench".to_owned(),
            generators: [*generator].into(),
            ..agents::CreateAgent::default()
        };
        let (id, key) = agents::create(context, admin, input, None).await?;
        tags::add_label(context, admin, id.into(), LABEL).await?;
        let offer = offers::offer(context, admin, id).await?;
        let objects = offer.objects(context).await?.len();
        ensure!(objects == STACKS as usize, "{objects} objects are offered");
        // What autovacuum does after so many new rows.
        crate::population::analyse(&ours.pool).await?;
        Ok(Self { id, key, tag: offer.tag() })
    }

    /// What the guard and the handler of a poll do.
    async fn poll(&self, ours: &Ours) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        let caller = authenticate::api_key(&ours.context, self.key.expose(), "bench").await?;
        let tag = offers::offer(&ours.context, &caller, self.id).await?.tag();
        let took = begun.elapsed();
        ensure!(tag == self.tag, "nothing changed");
        Ok(took)
    }
}

/// Counts statements in the log of the server, while nothing else asks it.
struct Statements<'a> {
    log: &'a Path,
}

impl<'a> Statements<'a> {
    async fn begin(
        server: &'a Postgres,
        pool: &Pool,
        http: &Http,
        agent: &Idle,
    ) -> anyhow::Result<Statements<'a>> {
        const TIMEOUT: Duration = Duration::from_secs(20);
        pool.run("ALTER SYSTEM SET log_statement = 'all'".to_owned()).await?;
        pool.run("ALTER SYSTEM SET log_parameter_max_length = 0".to_owned()).await?;
        pool.run("SELECT pg_reload_conf()".to_owned()).await?;
        let folder = server.folder().context("the server is not ours")?;
        let statements = Self { log: folder };
        // Sessions notice the setting with their next statement, ours too.
        let begun = Instant::now();
        let logged = async || {
            let path = format!("/agents/{}/target-state", agent.id);
            http.get(&path, agent.key.expose(), &agent.tag).await?;
            anyhow::Ok(statements.text()?.contains("FROM control c"))
        };
        while !logged().await? {
            ensure!(begun.elapsed() < TIMEOUT, "the server does not log statements");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(statements)
    }

    fn text(&self) -> anyhow::Result<String> {
        let text = std::fs::read(self.log.join("log"))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// The statements that the server ran meanwhile, without those of this function.
    async fn count(
        &self,
        pool: &Pool,
        work: impl AsyncFnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<usize> {
        const FROM: &str = "SELECT 'the count begins'";
        const TO: &str = "SELECT 'the count ends'";
        pool.run(FROM.to_owned()).await?;
        work().await?;
        pool.run(TO.to_owned()).await?;
        let text = self.text()?;
        let begin = text.rfind(FROM).context("the begin of the count")?;
        let statements = text[begin..].lines().skip(1).take_while(|line| !line.contains(TO));
        let is_statement =
            |line: &&str| line.contains("LOG:  statement: ") || line.contains("LOG:  execute ");
        Ok(statements.filter(is_statement).count())
    }

    async fn end(self, pool: &Pool) -> anyhow::Result<()> {
        pool.run("ALTER SYSTEM RESET log_statement".to_owned()).await?;
        pool.run("SELECT pg_reload_conf()".to_owned()).await
    }
}
