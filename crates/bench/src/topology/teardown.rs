//! The teardown of a workspace against taking its servers down one after the other, by the
//! shipped loops on a substrate that acts at once. Both begin with every server Ready and end
//! when the last one is gone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use slipway_app::deletion::request::DeleteOptions;
use slipway_app::topology::{apply, servers, workspaces};
use slipway_controller::resources::Batching;
use slipway_core::ids::WorkspaceId;
use slipway_core::topology::declared::Declared;
use slipway_testkit::postgres::Postgres;

use super::Size;
use crate::database::{Database, Kind, Pool};
use crate::plane::{Plane, SWEEP, operator};
use crate::report::Report;
use crate::rollout::publish;
use crate::substrate::{self, Memory};

/// Load balancers of the workspace; the other servers are workers that depend on them. Control
/// planes are never scaled down, so the other side could not take any.
const LOAD_BALANCERS: u32 = 4;
const VERSION: &str = "standalone-1";
const TIMEOUT: Duration = Duration::from_secs(300);

pub(super) async fn measure(
    kind: Kind,
    server: &Postgres,
    size: Size,
    report: &mut Report,
) -> anyhow::Result<()> {
    let database = Database::new(kind, server).await?;
    let substrate = Arc::new(substrate::Instant::new(Memory::Everything));
    let plane = Plane::open("bench", &database, &substrate).await?;
    let pool = database.pool().await?;
    publish(&plane, VERSION).await?;
    plane.context.inventories.connect(plane.engines(), Duration::from_secs(10));
    let running = plane.start(Batching::default(), SWEEP).with_workspaces(&plane);
    let mut rounds = Vec::new();
    for round in 0..size.teardowns {
        let name = format!("singly-{round}");
        let id = make(&plane, &pool, &name, size.servers).await?;
        let singly = one_after_the_other(&plane, &pool, id).await?;
        let name = format!("together-{round}");
        let id = make(&plane, &pool, &name, size.servers).await?;
        rounds.push((singly, together(&plane, &pool, id, &name).await?));
    }
    running.stop().await?;
    let speedup =
        |(singly, together): (Duration, Duration)| singly.as_secs_f64() / together.as_secs_f64();
    rounds.sort_by(|one, other| speedup(*one).total_cmp(&speedup(*other)));
    let middle = rounds[rounds.len() / 2];
    let (singly, together) = middle;
    let how = format!(
        "{} servers in {together:.2?}, one after the other in {singly:.2?}; worst round {:.1}",
        size.servers,
        speedup(rounds[0])
    );
    report.note(&format!("teardown_speedup_{}", kind.name()), speedup(middle), &how);
    Ok(())
}

/// A workspace whose servers are all Ready.
async fn make(plane: &Plane, pool: &Pool, name: &str, servers: u32) -> anyhow::Result<WorkspaceId> {
    let groups = json!({ "groups": [
        group(name, "lb", "LoadBalancer", LOAD_BALANCERS, &[]),
        group(name, "workers", "Worker", servers - LOAD_BALANCERS, &["lb"]),
    ] });
    let declared: Declared = serde_json::from_value(groups)?;
    let (context, caller) = (&plane.context, operator());
    apply::apply(context, &caller, "default", name, &declared, (None, None)).await?;
    let ready = "SELECT count(*) FROM provisioned_resources a JOIN resources r \
         ON r.id = a.resource_id WHERE r.deleted_at IS NULL AND a.status = 'Ready'";
    until(pool, ready, servers).await.context("they do not become Ready")?;
    Ok(workspaces::find(context, &caller, name).await?)
}

fn group(workspace: &str, name: &str, role: &str, count: u32, on: &[&str]) -> Value {
    json!({
        "name": name, "role": role, "count": count, "depends_on": on,
        "blueprint": "local-node", "version": VERSION,
        "scale": {
            "min": 0, "max": count,
            "template": { "hostname_pattern": format!("{workspace}-{name}-{{n}}") },
        },
    })
}

const THERE: &str =
    "SELECT count(*) FROM resources WHERE workspace_id IS NOT NULL AND deleted_at IS NULL";

/// Takes the whole workspace down.
async fn together(
    plane: &Plane,
    pool: &Pool,
    id: WorkspaceId,
    name: &str,
) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let options = DeleteOptions { grace: Some(Duration::ZERO), ..DeleteOptions::default() };
    workspaces::teardown(&plane.context, &operator(), id, name, options).await?;
    until(pool, THERE, 0).await.context("the teardown does not end")?;
    Ok(begun.elapsed())
}

/// Scales one server down, waits until it is gone, and takes the next: in the order of a
/// teardown.
async fn one_after_the_other(
    plane: &Plane,
    pool: &Pool,
    id: WorkspaceId,
) -> anyhow::Result<Duration> {
    let context = &plane.context;
    let observed = context.stores.topology.workspace_observed(id).await?;
    let observed = observed.context("the workspace is there")?;
    let mut groups: Vec<_> = observed.groups.iter().collect();
    groups.sort_by_key(|group| group.spec.role.teardown_rank());
    let mut left = u32::try_from(observed.servers.len())?;
    let begun = Instant::now();
    for group in groups {
        for server in observed.of(group) {
            let options = DeleteOptions { grace: Some(Duration::ZERO), ..DeleteOptions::default() };
            servers::scale_down(context, &operator(), (group.id, server.id), options).await?;
            left -= 1;
            until(pool, THERE, left).await.context("a server does not go")?;
        }
    }
    ensure!(left == 0, "{left} servers are left");
    Ok(begun.elapsed())
}

/// Waits until this query counts so many.
async fn until(pool: &Pool, query: &'static str, wanted: u32) -> anyhow::Result<()> {
    let begun = Instant::now();
    while pool.count(query).await? != i64::from(wanted) {
        ensure!(begun.elapsed() < TIMEOUT, "not {wanted} within {TIMEOUT:?}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}
