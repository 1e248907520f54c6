//! `apply`: new resources from documents against one `POST` after the other, and the same
//! documents again, on both databases. Both sides are requests over HTTP on one kept-alive
//! connection, each with its whole answer; no loop runs beside them.

use std::sync::Arc;
use std::time::Instant;

use anyhow::ensure;
use serde_json::json;
use slipway_app::files::apply::MOST_DOCUMENTS;
use slipway_wire::broker::{DeclareResource, Resource};
use slipway_wire::files::{AppliedDocument, Apply, SubmittedDocument};

use crate::database::{Database, Kind, Pool, durable_server};
use crate::http::Http;
use crate::machine;
use crate::plane::Plane;
use crate::report::Report;
use crate::rollout;
use crate::substrate::{self, Memory};

const BLUEPRINT: &str = "local-node";

pub(crate) async fn run(resources: usize) -> anyhow::Result<()> {
    println!("{}", machine::describe());
    let server = durable_server()?;
    let mut report = Report::default();
    for kind in [Kind::Postgres, Kind::Sqlite] {
        let database = Database::new(kind, &server).await?;
        let substrate = Arc::new(substrate::Instant::new(Memory::Everything));
        let plane = Plane::open("bench", &database, &substrate).await?;
        let http = Http::serve(&plane).await?;
        measure(&http, &database.pool().await?, kind, resources, &mut report).await?;
        rollout::measure(kind, &server, resources, &mut report).await?;
    }
    report.finish();
    Ok(())
}

async fn measure(
    http: &Http,
    pool: &Pool,
    kind: Kind,
    resources: usize,
    report: &mut Report,
) -> anyhow::Result<()> {
    let begun = Instant::now();
    for number in 0..resources {
        let body = DeclareResource {
            handle: format!("posted-{number}"),
            blueprint: BLUEPRINT.to_owned(),
            ..DeclareResource::default()
        };
        http.post::<Resource>("/resources", &body).await?;
    }
    let posted = begun.elapsed();
    let begun = Instant::now();
    let (requests, created) = applied(http, resources).await?;
    let applied_in = begun.elapsed();
    ensure!(created == resources, "{created} of {resources} were created");
    let before = written(pool).await?;
    let begun = Instant::now();
    let (_, created) = applied(http, resources).await?;
    let again = begun.elapsed();
    ensure!(created == 0 && written(pool).await? == before, "the second apply wrote something");
    let how = format!("{posted:.2?} against {applied_in:.2?}");
    let speedup = posted.as_secs_f64() / applied_in.as_secs_f64();
    report.note(&format!("apply_speedup_{}", kind.name()), speedup, &how);
    let per_object = requests as f64 / resources as f64;
    let how = format!("{requests} requests, {again:.2?}, no write");
    report.note(&format!("noop_requests_per_object_{}", kind.name()), per_object, &how);
    Ok(())
}

/// Audit entries and records of who declared what.
async fn written(pool: &Pool) -> anyhow::Result<i64> {
    let audit = pool.count("SELECT count(*) FROM audit_entries").await?;
    Ok(audit + pool.count("SELECT count(*) FROM declared_objects").await?)
}

/// Applies all documents; the requests, and how many objects are new.
async fn applied(http: &Http, resources: usize) -> anyhow::Result<(usize, usize)> {
    let (mut requests, mut created) = (0, 0);
    let numbers: Vec<usize> = (0..resources).collect();
    for batch in numbers.chunks(MOST_DOCUMENTS) {
        let body = Apply {
            source: "bench".to_owned(),
            documents: batch.iter().map(|number| document(*number)).collect(),
            dry_run: false,
            force: false,
        };
        for one in http.post::<Vec<AppliedDocument>>("/apply", &body).await? {
            if let Some(refusal) = one.refusal {
                anyhow::bail!("{}: {}", refusal.code, refusal.message);
            }
            created += usize::from(one.outcome == "created");
        }
        requests += 1;
    }
    Ok((requests, created))
}

fn document(number: usize) -> SubmittedDocument {
    let document = json!({
        "apiVersion": "slipway.dev/v1",
        "kind": "Resource",
        "metadata": { "name": format!("applied-{number}") },
        "spec": { "blueprint": BLUEPRINT },
    });
    SubmittedDocument { origin: "bench.yaml".to_owned(), document, plan: None }
}
