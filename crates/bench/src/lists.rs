//! `lists`: the time of filtered lists of resources, relative to the first page of all,
//! on both databases. A list that walks its resources grows with their number; one that
//! comes from an index does not.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use slipway_app::broker::port::{Blocked, ResourceFilter};
use slipway_app::ports::store::Page;
use slipway_core::blocker::BlockerCode;
use slipway_core::catalog::label::LabelSelector;
use slipway_core::ids::ProvisionedResourceId;

use crate::database::{Database, Kind, durable_server};
use crate::machine;
use crate::plane::Plane;
use crate::population::{self, State};
use crate::report::{LIST, Report};
use crate::substrate::{self, Memory};

const PAGE: u32 = 50;

/// Each time is the median of this many lists, after a few to warm up.
const ROUNDS: usize = 41;

/// Every list, with the number of resources on its first page.
fn cases(resources: u32, blocked: u32) -> anyhow::Result<Vec<(&'static str, ResourceFilter, u32)>> {
    let label = |text: &str| -> anyhow::Result<ResourceFilter> {
        let labels = vec![LabelSelector::parse(text)?];
        Ok(ResourceFilter { labels, ..ResourceFilter::default() })
    };
    let phase =
        |phase: &str| ResourceFilter { phase: Some(phase.to_owned()), ..ResourceFilter::default() };
    let by = |blocked| ResourceFilter { blocked: Some(blocked), ..ResourceFilter::default() };
    let handle = Some(format!("bench-{}", resources - 1));
    Ok(vec![
        ("handle", ResourceFilter { handle, ..ResourceFilter::default() }, 1),
        ("phase_of_all", phase("Pending"), PAGE),
        ("phase_of_none", phase("Failed"), 0),
        ("label_of_all", label("app=bench")?, PAGE),
        ("label_of_none", label("app=nothing")?, 0),
        ("label_key_of_none", label("nothing")?, 0),
        ("blocked", by(Blocked::ByAny), blocked),
        ("blocked_by_code", by(Blocked::By(BlockerCode::RowInvalid)), blocked),
    ])
}

pub(crate) async fn run(resources: u32) -> anyhow::Result<()> {
    println!("{}", machine::describe());
    let server = durable_server()?;
    let mut report = Report::default();
    for kind in [Kind::Postgres, Kind::Sqlite] {
        let database = Database::new(kind, &server).await?;
        let substrate = Arc::new(substrate::Instant::new(Memory::Everything));
        let plane = Plane::open("bench", &database, &substrate).await?;
        let pool = database.pool().await?;
        population::make(&pool, resources, State::Pending).await?;
        pool.run("UPDATE resources SET labels = '{\"app\":\"bench\"}'".to_owned()).await?;
        population::analyse(&pool).await?;
        measure(&plane, kind, resources, false, &mut report).await?;

        let subject = ProvisionedResourceId::KIND;
        let code = BlockerCode::RowInvalid.as_str();
        pool.run(format!(
            "INSERT INTO blockers (subject_kind, subject_id, code, owner, message, evidence) \
             SELECT '{subject}', id, '{code}', 'operator', 'bench', '{{}}' \
             FROM provisioned_resources"
        ))
        .await?;
        population::analyse(&pool).await?;
        measure(&plane, kind, resources, true, &mut report).await?;
    }
    report.finish();
    Ok(())
}

async fn measure(
    plane: &Plane,
    kind: Kind,
    resources: u32,
    blocked: bool,
    report: &mut Report,
) -> anyhow::Result<()> {
    let first_page = time(plane, &ResourceFilter::default(), PAGE).await?;
    let on_page = if blocked { PAGE } else { 0 };
    for (name, filter, found) in cases(resources, on_page)? {
        let is_blocked = name.starts_with("blocked");
        if blocked && !is_blocked {
            continue;
        }
        let taken = time(plane, &filter, found).await?;
        let which = match (is_blocked, blocked) {
            (true, true) => "_all",
            (true, false) => "_none",
            (false, _) => "",
        };
        let how = format!(
            "{resources} resources, {found} listed in {taken:.2?}, the first page in {first_page:.2?}"
        );
        let ratio = taken.as_secs_f64() / first_page.as_secs_f64();
        report.note(&format!("{LIST}{name}{which}_{}", kind.name()), ratio, &how);
    }
    Ok(())
}

/// The median time of one list, which must have this many resources on its first page.
async fn time(plane: &Plane, filter: &ResourceFilter, found: u32) -> anyhow::Result<Duration> {
    let mut times = Vec::new();
    for round in 0..ROUNDS + 5 {
        let started = Instant::now();
        let page = Page { after: None, limit: PAGE };
        let listed = plane.context.stores.broker.resource_list(filter, page).await?;
        if round >= 5 {
            times.push(started.elapsed());
        }
        ensure!(listed.len() == usize::try_from(found)?, "{} listed, not {found}", listed.len());
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}
