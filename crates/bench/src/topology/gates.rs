//! Decisions about servers, twenty callers at once, each beside as many deletions of plain
//! resources. Both begin a teardown and commit it; a server passes the gates first, with its
//! workspace and its group locked.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use slipway_app::Context;
use slipway_app::broker::delete;
use slipway_app::deletion::request::DeleteOptions;
use slipway_app::topology::servers;
use slipway_core::access::audit::Actor;
use slipway_core::access::role::Role;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::deletion::door::{Ask, Doored};
use slipway_core::ids::{DeletionId, GroupId, ResourceId};
use slipway_core::precondition::Expected;
use slipway_core::text::Reason;
use slipway_core::topology::gates::Door;
use slipway_core::topology::inventory::Inventory;
use slipway_core::topology::scale::{self, Asked, OfServer};
use slipway_testkit::postgres::Postgres;
use tokio::task::JoinSet;

use super::Size;
use super::population::{self, Population};
use crate::database::{Database, Kind, Pool};
use crate::plane::{Plane, operator};
use crate::report::Report;
use crate::substrate::{self, Memory};

const CALLERS: usize = 20;

/// What a caller does about one resource.
#[derive(Debug, Clone, Copy)]
enum Act {
    /// Deletes a plain resource by its use-case.
    Delete(ResourceId),
    /// Decides whether a server goes, with an inventory at hand.
    Decide(ResourceId),
    /// The whole use-case: it reads the inventory and wakes the loop, too.
    ScaleDown(GroupId, ResourceId),
}

/// The times of one side.
#[derive(Debug, Default)]
struct Times(Vec<Duration>);

impl Times {
    fn quantile(&self, share: f64) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let place = (sorted.len() as f64 * share).ceil() as usize;
        sorted.get(place.saturating_sub(1)).copied().unwrap_or_default()
    }

    fn p50(&self) -> Duration {
        self.quantile(0.5)
    }

    fn p99(&self) -> Duration {
        self.quantile(0.99)
    }

    fn described(&self) -> String {
        format!("{:.1?} (median {:.1?})", self.p99(), self.p50())
    }
}

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
    let rounds = size.rounds + 1;
    let plain = u32::try_from((CALLERS + 1) * size.decisions * rounds)?;
    let mut population = population::make(&plane, &pool, plain).await?;

    let [mut deleted, mut decided, mut one_group, mut used, mut alone, mut deleted_alone] =
        [const { Times(Vec::new()) }; 6];
    // The first round fills caches and plans, and does not count.
    for round in 0..rounds {
        let deletions = deletions(&mut population, CALLERS, size.decisions);
        let decisions = spread(&mut population, size.decisions, |_, id| Act::Decide(id));
        // In turn, so that neither is always the first.
        let mut sides = [(&mut deleted, deletions), (&mut decided, decisions)];
        if round % 2 == 1 {
            sides.reverse();
        }
        let in_one = in_one_group(&mut population, CALLERS, size.extra);
        let whole = spread(&mut population, size.extra, Act::ScaleDown);
        let lone = in_one_group(&mut population, 1, size.decisions);
        let lone_deletions = self::deletions(&mut population, 1, size.decisions);
        let others = [
            (&mut one_group, in_one),
            (&mut used, whole),
            (&mut alone, lone),
            (&mut deleted_alone, lone_deletions),
        ];
        for (times, callers) in sides.into_iter().chain(others) {
            if kind == Kind::Postgres {
                pool.run("CHECKPOINT".to_owned()).await?;
            }
            let taken = at_once(&plane.context, callers).await?;
            if round > 0 {
                times.0.extend(taken);
            }
        }
    }
    check(&pool, size).await?;

    let name = kind.name();
    let ratio = |of: &Times, to: &Times| of.p99().as_secs_f64() / to.p99().as_secs_f64();
    let against = |of: &Times| format!("p99 {} against {}", of.described(), deleted.described());
    let key = format!("gate_vs_delete_{name}");
    report.note(&key, ratio(&decided, &deleted), &against(&decided));
    let how = format!("{} decisions, {CALLERS} callers at once", decided.0.len());
    report.note(&format!("gate_p99_ms_{name}"), decided.p99().as_secs_f64() * 1e3, &how);
    let key = format!("gate_one_group_vs_delete_{name}");
    report.note(&key, ratio(&one_group, &deleted), &against(&one_group));
    let key = format!("scale_down_vs_delete_{name}");
    report.note(&key, ratio(&used, &deleted), &against(&used));
    let medians = alone.p50().as_secs_f64() / deleted_alone.p50().as_secs_f64();
    let how =
        format!("medians {:.2?} against {:.2?}, one caller", alone.p50(), deleted_alone.p50());
    report.note(&format!("gate_vs_delete_alone_{name}"), medians, &how);
    Ok(())
}

/// So many plain resources for each caller.
fn deletions(population: &mut Population, callers: usize, each: usize) -> Vec<Vec<Act>> {
    let mut take = || population.plain.pop().map(Act::Delete);
    (0..callers).map(|_| (0..each).filter_map(|_| take()).collect()).collect()
}

/// So many servers for each caller, and a group of its own for each.
fn spread(
    population: &mut Population,
    each: usize,
    act: impl Fn(GroupId, ResourceId) -> Act,
) -> Vec<Vec<Act>> {
    let of = population.groups.iter_mut().take(CALLERS);
    of.map(|workers| {
        let rest = workers.servers.len().saturating_sub(each);
        workers.servers.split_off(rest).into_iter().map(|id| act(workers.group, id)).collect()
    })
    .collect()
}

/// So many servers of one group of 1,000 for each caller.
fn in_one_group(population: &mut Population, callers: usize, each: usize) -> Vec<Vec<Act>> {
    let Some(workers) = population.groups.first_mut() else { return Vec::new() };
    let rest = workers.servers.len().saturating_sub(each * callers);
    let taken = workers.servers.split_off(rest);
    taken.chunks(each).map(|own| own.iter().map(|id| Act::Decide(*id)).collect()).collect()
}

/// Lets every caller do what is its own, one after the other, all callers at once. Answers the
/// time of each.
async fn at_once(context: &Context, callers: Vec<Vec<Act>>) -> anyhow::Result<Vec<Duration>> {
    let mut tasks = JoinSet::new();
    for own in callers {
        let context = context.clone();
        // A task each, as the server has it: on all cores.
        tasks.spawn(async move {
            let mut times = Vec::with_capacity(own.len());
            for act in own {
                let begun = Instant::now();
                Box::pin(carry_out(&context, act)).await?;
                times.push(begun.elapsed());
            }
            anyhow::Ok(times)
        });
    }
    let mut times = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        times.extend(ended??);
    }
    Ok(times)
}

async fn carry_out(context: &Context, act: Act) -> anyhow::Result<()> {
    let options = DeleteOptions::default();
    match act {
        Act::Delete(id) => {
            delete::delete(context, &operator(), id, options).await?;
        }
        Act::Decide(id) => decide(context, id).await?,
        Act::ScaleDown(group, id) => {
            servers::scale_down(context, &operator(), (group, id), options).await?;
        }
    }
    Ok(())
}

/// The decision of a scale-down with its transaction, as the use-case has it. The provider's list
/// is at hand and agrees with the rows.
async fn decide(context: &Context, id: ResourceId) -> anyhow::Result<()> {
    let ask = Ask {
        deletion_id: DeletionId::new(context.entropy.uuid()),
        reason: Reason::parse("the benchmark takes it")?,
        expected: Expected::Any,
        grace: None,
        cascade: false,
        keep: false,
        break_glass: false,
        plan: None,
    };
    let age = Duration::ZERO;
    let inventory = Inventory::Compared { age, unknown: Vec::new(), missing: Vec::new() };
    let actor = Actor::new("bench");
    let mut begun = false;
    let mut rule = |snapshot: &Doored<OfServer<ResourceSnapshot>>| {
        let door = Door::ScaleDown;
        let asked = Asked { door, caller: Role::Operator, inventory: &inventory, ask: &ask };
        let requested = scale::leave(&snapshot.of, &snapshot.door, &asked, &actor)?;
        begun = !requested.commit.is_empty();
        Ok(requested.commit)
    };
    let input = ask.input(context.settings.deletion);
    context.stores.topology.server_decide_deletion(id, input, &mut rule).await?;
    context.wakes.wake();
    ensure!(begun, "server {id} does not go");
    Ok(())
}

/// Every decision has begun a deletion, and every server that goes is wanted no more.
async fn check(pool: &Pool, size: Size) -> anyhow::Result<()> {
    let rounds = size.rounds + 1;
    let alone = size.decisions;
    let at_once = CALLERS * (size.decisions + 2 * size.extra);
    let servers = i64::try_from(rounds * (at_once + alone))?;
    let begun =
        "SELECT count(*) FROM resources WHERE group_id IS NOT NULL AND deletion_id IS NOT NULL";
    let begun = pool.count(begun).await?;
    ensure!(begun == servers, "{begun} servers go, not {servers}");
    let wanted = "SELECT CAST(sum(wanted) AS BIGINT) FROM workspace_groups";
    let wanted = pool.count(wanted).await?;
    ensure!(wanted == 10_000 - servers, "{wanted} servers are wanted");
    let plain = i64::try_from(rounds * (CALLERS * size.decisions + alone))?;
    let deleted =
        "SELECT count(*) FROM resources WHERE group_id IS NULL AND deletion_id IS NOT NULL";
    let deleted = pool.count(deleted).await?;
    ensure!(deleted == plain, "{deleted} plain resources go, not {plain}");
    Ok(())
}
