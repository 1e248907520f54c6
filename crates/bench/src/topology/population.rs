//! 10,000 servers in eight workspaces, all Ready with their nodes. The workspaces are applied by
//! the use-case; their servers are rows inserted by SQL, because declaring is not measured.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use slipway_app::topology::{apply, workspaces};
use slipway_core::ids::{GroupId, ProvisionedResourceId, ResourceId};
use slipway_core::topology::declared::Declared;

use crate::database::Pool;
use crate::plane::{Plane, operator};
use crate::population::{self, State};

/// A group: its name, its role and the number of its servers.
type Shape = (&'static str, &'static str, u32);

/// 2,000 servers. A pool of 1,000 equal workers is the largest that is common in one cluster.
const LARGE: [Shape; 6] = [
    ("control-plane", "ControlPlane", 5),
    ("lb", "LoadBalancer", 5),
    ("general", "Worker", 1_000),
    ("memory", "Worker", 500),
    ("storage", "Worker", 390),
    ("gpu", "Worker", 100),
];
/// 1,000 servers.
const MEDIUM: [Shape; 6] = [
    ("control-plane", "ControlPlane", 3),
    ("lb", "LoadBalancer", 2),
    ("general", "Worker", 500),
    ("memory", "Worker", 200),
    ("storage", "Worker", 195),
    ("gpu", "Worker", 100),
];
const WORKSPACES: [(&str, &[Shape]); 8] = [
    ("large-1", &LARGE),
    ("large-2", &LARGE),
    ("medium-1", &MEDIUM),
    ("medium-2", &MEDIUM),
    ("medium-3", &MEDIUM),
    ("medium-4", &MEDIUM),
    ("medium-5", &MEDIUM),
    ("medium-6", &MEDIUM),
];
const SERVERS: u32 = 10_000;

/// A group of workers, with those of its servers that nobody has taken yet.
#[derive(Debug)]
pub(super) struct Workers {
    pub(super) group: GroupId,
    pub(super) servers: Vec<ResourceId>,
}

/// What is measured.
#[derive(Debug)]
pub(super) struct Population {
    /// The groups of workers, in turn one of each workspace, the largest of each first.
    pub(super) groups: Vec<Workers>,
    /// Resources that no workspace owns.
    pub(super) plain: Vec<ResourceId>,
}

/// Fills the installation with the servers, and so many plain resources beside them.
pub(super) async fn make(plane: &Plane, pool: &Pool, plain: u32) -> anyhow::Result<Population> {
    population::make(pool, SERVERS + plain, State::Ready).await?;
    let mut workers = Vec::new();
    let mut next = 1;
    for (place, (workspace, shapes)) in WORKSPACES.into_iter().enumerate() {
        let declared: Declared = serde_json::from_value(declared(workspace, shapes))?;
        let (context, caller) = (&plane.context, operator());
        apply::apply(context, &caller, "default", workspace, &declared, (None, None)).await?;
        let id = workspaces::find(context, &caller, workspace).await?;
        let groups = context.stores.topology.workspace_groups(&[id]).await?;
        for (rank, (name, role, count)) in shapes.iter().enumerate() {
            let group = groups.iter().find(|group| group.spec.name.as_str() == *name);
            let group = group.context("the group was applied")?.id;
            let numbers = next..next + count;
            next += count;
            let (first, last) = (numbers.start, numbers.end - 1);
            pool.run(format!(
                "UPDATE resources SET workspace_id = {}, group_id = {}, server_role = '{role}', \
                 handle = '{workspace}-{name}-' || substr(handle, 7), labels = '{{\"workspace\":\
                 \"{workspace}\",\"group\":\"{name}\",\"role\":\"{role}\"}}' \
                 WHERE id BETWEEN {} AND {}",
                population::literal(pool, id.as_uuid()),
                population::literal(pool, group.as_uuid()),
                population::literal(pool, population::resource(first)),
                population::literal(pool, population::resource(last)),
            ))
            .await?;
            for number in numbers.clone() {
                let attempt = ProvisionedResourceId::new(population::attempt(number));
                plane.substrate.list(group, format!("bench-{number}"), attempt);
            }
            if *role == "Worker" {
                let servers = numbers.map(|number| ResourceId::new(population::resource(number)));
                workers.push((rank, place, Workers { group, servers: servers.collect() }));
            }
        }
    }
    ensure!(next == SERVERS + 1, "{} servers are in groups", next - 1);
    let found = pool.count("SELECT count(*) FROM resources WHERE group_id IS NOT NULL").await?;
    ensure!(found == i64::from(SERVERS), "{found} rows are servers");
    if matches!(pool, Pool::Postgres(_)) {
        // Every row has an old version, which would otherwise be read again and again.
        pool.run("VACUUM".to_owned()).await?;
    }
    population::analyse(pool).await?;
    plane.context.inventories.connect(plane.engines(), Duration::from_secs(10));
    workers.sort_by_key(|(rank, place, _)| (*rank, *place));
    let plain = SERVERS + 1..=SERVERS + plain;
    Ok(Population {
        groups: workers.into_iter().map(|(_, _, workers)| workers).collect(),
        plain: plain.map(|number| ResourceId::new(population::resource(number))).collect(),
    })
}

/// A group may shrink to two fifths, so that the gate has many servers to count.
fn declared(workspace: &str, shapes: &[Shape]) -> Value {
    let group = |(name, role, count): &Shape| {
        json!({
            "name": name, "role": role, "count": count, "blueprint": "local-node",
            "scale": {
                "min": count * 2 / 5, "max": count * 2,
                "template": { "hostname_pattern": format!("{workspace}-{name}-{{n}}") },
            },
        })
    };
    json!({ "groups": shapes.iter().map(group).collect::<Vec<_>>() })
}
