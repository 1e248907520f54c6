//! `enrol`: enrolments per second into one project that has many nodes already,
//! by several callers at once, on both databases.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use slipway_core::catalog::project::Project;
use slipway_core::ids::ProjectId;
use slipway_core::nodes::token::{SecretHash, TokenKind, TokenText};
use slipway_core::secret::Secret;

use crate::database::{Database, Kind, Pool, durable_server};
use crate::machine;
use crate::plane::Plane;
use crate::population::{self, State};
use crate::report::Report;
use crate::substrate::{self, Memory};

/// Nodes that enrol in one measurement.
const ENROLMENTS: u32 = 2_000;

/// Callers at a time.
const CALLERS: usize = 16;

/// Fills a project with this many nodes and measures further enrolments.
pub(crate) async fn run(nodes: u32) -> anyhow::Result<()> {
    println!("{}", machine::describe());
    let server = durable_server()?;
    let mut report = Report::default();
    for kind in [Kind::Postgres, Kind::Sqlite] {
        let database = Database::new(kind, &server).await?;
        let substrate = Arc::new(substrate::Instant::new(Memory::Everything));
        let plane = Plane::open("bench", &database, &substrate).await?;
        let pool = database.pool().await?;
        population::make(&pool, nodes, State::Idle).await?;
        population::join_mesh(&pool).await?;
        let tokens = waiting(&plane, &pool).await?;

        let started = Instant::now();
        // A task each, as the server has it: on all cores.
        let enrolling = stream::iter(tokens).map(|token| {
            let plane = plane.clone();
            tokio::spawn(async move { plane.enrol(token).await })
        });
        let answers: Vec<_> = enrolling.buffer_unordered(CALLERS).try_collect().await?;
        answers.into_iter().collect::<anyhow::Result<()>>()?;
        let rate = f64::from(ENROLMENTS) / started.elapsed().as_secs_f64();

        let key = format!("enrolments_per_second_{}", kind.name());
        let how = format!("{ENROLMENTS} into a project of {nodes}, {CALLERS} callers");
        report.note(&key, rate, &how);
    }
    report.finish();
    Ok(())
}

/// Makes resources that wait for a node, and answers their tokens.
async fn waiting(plane: &Plane, pool: &Pool) -> anyhow::Result<Vec<Secret>> {
    let project = plane.context.stores.kind::<Project>().fetch("default", false).await?;
    let project: ProjectId = project.ok_or_else(|| anyhow::anyhow!("no seeded project"))?.id;
    let (mut tokens, mut hashes) = (Vec::new(), String::new());
    for number in 1..=ENROLMENTS {
        let mut random = [0; 32];
        plane.context.entropy.fill(&mut random);
        let token = TokenText::mint("bench", project, TokenKind::Node, &random);
        let hash = SecretHash::of(token.expose().as_bytes());
        let hash = data_encoding::HEXLOWER.encode(hash.as_bytes());
        write!(hashes, "{}({number}, '{hash}')", if number == 1 { "" } else { ", " })?;
        tokens.push(token);
    }
    population::make_waiting(pool, &hashes).await?;
    Ok(tokens)
}
