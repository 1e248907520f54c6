//! `apply`: new resources from documents against one declaration after the other, and the
//! same documents again, on both databases. Neither side counts HTTP: a `POST` is measured as
//! its use-case and the read of its answer, which favours it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use anyhow::ensure;
use serde_json::json;
use slipway_app::Context;
use slipway_app::broker::declare::{Declare, declare};
use slipway_app::broker::read;
use slipway_app::files::apply::{self, Draft, MOST_DOCUMENTS, Options, Verdict};
use slipway_app::files::kind::Document;
use slipway_core::files::document::{Address, DocumentKind};

use crate::database::{Database, Kind, Pool, durable_server};
use crate::machine;
use crate::plane::{Plane, operator};
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
        measure(&plane.context, &database.pool().await?, kind, resources, &mut report).await?;
        rollout::measure(kind, &server, resources, &mut report).await?;
    }
    report.finish();
    Ok(())
}

async fn measure(
    context: &Context,
    pool: &Pool,
    kind: Kind,
    resources: usize,
    report: &mut Report,
) -> anyhow::Result<()> {
    let begun = Instant::now();
    for number in 0..resources {
        let input = Declare {
            handle: format!("posted-{number}"),
            blueprint: BLUEPRINT.to_owned(),
            ..Declare::default()
        };
        let id = declare(context, &operator(), input).await?;
        read::resource(context, &operator(), id).await?;
    }
    let posted = begun.elapsed();
    let begun = Instant::now();
    let (requests, created) = applied(context, resources).await?;
    let applied_in = begun.elapsed();
    ensure!(created == resources, "{created} of {resources} were created");
    let before = written(pool).await?;
    let begun = Instant::now();
    let (_, created) = applied(context, resources).await?;
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
async fn applied(context: &Context, resources: usize) -> anyhow::Result<(usize, usize)> {
    let options = Options { source: "bench".to_owned(), dry_run: false, force: false };
    let (mut requests, mut created) = (0, 0);
    let numbers: Vec<usize> = (0..resources).collect();
    for batch in numbers.chunks(MOST_DOCUMENTS) {
        let drafts = batch.iter().map(|number| draft(*number)).collect();
        let applied = apply::apply(context, &operator(), &options, drafts).await?;
        for one in &applied {
            if let Verdict::Refused(refusal) = &one.verdict {
                anyhow::bail!("{refusal}");
            }
            created += usize::from(matches!(one.verdict, Verdict::Created));
        }
        requests += 1;
    }
    Ok((requests, created))
}

fn draft(number: usize) -> Draft {
    let address =
        Address::new(DocumentKind::Resource, format!("applied-{number}")).of_project("default");
    let spec = json!({ "blueprint": BLUEPRINT });
    let document = Document {
        address: address.clone(),
        labels: BTreeMap::new(),
        spec: spec.as_object().cloned().unwrap_or_default(),
        versions: Vec::new(),
        origin: "bench.yaml".to_owned(),
    };
    Draft { address: Some(address), document: Ok(document) }
}
