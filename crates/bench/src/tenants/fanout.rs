//! One migration over many tenants: one after the other on one connection, and by a roll-out
//! that a replica in a process of its own carries out. Both in turn over the same tenants, each
//! with a new file. At last a replica is killed in the middle, and another one goes on.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::ensure;
use slipway_app::Context;
use slipway_app::ports::store::{PAGE_MAX, Page};
use slipway_app::rollouts::read;
use slipway_app::seed::{LocalNames, Seed};
use slipway_app::tenants::migrate::{self, Migration};
use slipway_app::tenants::port::TenantFilter;
use slipway_app::tenants::{profiles, provision};
use slipway_core::ids::{RolloutId, TenantId};
use slipway_core::rollouts::record::{MemberState, RolloutState, Strategy};
use slipway_core::tenants::job::JobState;
use slipway_core::tenants::tenant::Tenant;
use slipway_tenants::targets::{self, LocalResolver, NoJournal, TenantNames, Work};
use slipway_testkit::postgres::Postgres;
use sqlx::postgres::{PgPool, PgPoolOptions};

use super::profile::Folders;
use super::worker::{self, opened};
use crate::plane::operator;
use crate::report::Report;

const PROFILE: &str = "fanned";
const PROJECT: &str = "default";
const PREFIX: &str = "f_";
/// Members in work at the same time; the loop over tasks has eight slots.
const PARALLEL: u32 = 64;
const TIMEOUT: Duration = Duration::from_secs(900);
const POLL: Duration = Duration::from_millis(20);

/// A replica in a process of its own, killed at the end.
struct Replica(Child);

impl Replica {
    fn start(database: &str) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let command = command.args([worker::COMMAND, database]).stdin(Stdio::null());
        Ok(Self(command.spawn()?))
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct World {
    context: Context,
    url: String,
    folders: Folders,
    beside: PgPool,
    tenants: usize,
}

pub(super) async fn measure(
    server: &Postgres,
    tenants: usize,
    rounds: usize,
    report: &mut Report,
) -> anyhow::Result<()> {
    let (store, target) = (server.database("store").await, server.database("fanned").await);
    let (context, _) = opened(store.url()).await?;
    let folders = Folders::new(target.url())?;
    folders.add_migration(1)?;
    let beside = PgPoolOptions::new().max_connections(1).connect(target.url()).await?;
    let world = World { context, url: store.url().to_owned(), folders, beside, tenants };
    let replica = Replica::start(&world.url)?;
    world.make().await?;
    let mut version = 1;
    let mut figures = Vec::new();
    for _ in 0..rounds {
        version += 1;
        world.folders.add_migration(version)?;
        let one_by_one = world.one_by_one().await?;
        world.verify(version).await?;
        version += 1;
        world.folders.add_migration(version)?;
        let began = Instant::now();
        let id = world.start().await?;
        world.until(id, tenants).await?;
        let fanned = began.elapsed();
        world.verify(version).await?;
        let ratio = one_by_one.as_secs_f64() / fanned.as_secs_f64();
        println!(
            "  {tenants} tenants one by one in {one_by_one:.2?}, by a roll-out in {fanned:.2?}"
        );
        figures.push((ratio, one_by_one, fanned));
    }
    figures.sort_by(|left, right| left.0.total_cmp(&right.0));
    let (ratio, one_by_one, fanned) = figures[figures.len() / 2];
    let how = format!("{tenants} tenants: {one_by_one:.2?} / {fanned:.2?}");
    report.note("fanout_speedup", ratio, &how);

    version += 1;
    world.folders.add_migration(version)?;
    let began = Instant::now();
    let id = world.start().await?;
    let before = world.until(id, tenants / 3).await?;
    drop(replica);
    let _second = Replica::start(&world.url)?;
    world.until(id, tenants).await?;
    let took = began.elapsed();
    let verified = world.verify(version).await?;
    let how = format!("killed after {before} of {tenants}, complete after {took:.2?}");
    report.note("fanout_resumed_ok", f64::from(u32::try_from(verified)?), &how);
    report.note("fanout_resumed_seconds", took.as_secs_f64(), "with the lease of the dead replica");
    Ok(())
}

impl World {
    async fn make(&self) -> anyhow::Result<()> {
        let names = LocalNames {
            project: PROJECT.to_owned(),
            cluster: "local".to_owned(),
            substrate_uid: "none".to_owned(),
            namespace_prefix: "slipway-project-".to_owned(),
        };
        let seed = Seed::local(&*self.context.entropy, names)?;
        self.context.stores.operations.seed(&seed).await?;
        let settings = self.folders.settings(PREFIX, 8);
        profiles::create(&self.context, &operator(), PROFILE, "", settings, None).await?;
        let began = Instant::now();
        for n in 0..self.tenants {
            let name = format!("t{n:04}");
            let named = (PROJECT, PROFILE, name.as_str());
            provision::provision(&self.context, &operator(), named, None).await?;
        }
        while self.ready().await?.len() < self.tenants {
            ensure!(began.elapsed() < TIMEOUT, "the tenants do not become ready");
            tokio::time::sleep(POLL * 10).await;
        }
        println!("  {} tenants by the service in {:.2?}", self.tenants, began.elapsed());
        Ok(())
    }

    async fn ready(&self) -> anyhow::Result<Vec<Tenant>> {
        let filter = TenantFilter { state: Some(JobState::Ready), ..TenantFilter::default() };
        let mut found = Vec::new();
        let mut page = Page { after: None, limit: PAGE_MAX };
        loop {
            let listed = provision::list(&self.context, &operator(), &filter, page).await?;
            found.extend(listed.items);
            let Some(next) = listed.next else { return Ok(found) };
            page.after = Some(TenantId::new(next));
        }
    }

    /// The plain way: a loop with one connection.
    async fn one_by_one(&self) -> anyhow::Result<Duration> {
        let tenants = self.ready().await?;
        let settings = self.folders.parsed(PREFIX, 1)?;
        let failed = |error| anyhow::anyhow!("{error:?}");
        let target = targets::open(&settings, &LocalResolver).await.map_err(failed)?;
        let mut all = Vec::new();
        for tenant in &tenants {
            let names = TenantNames::of(&settings, &tenant.target_name)?;
            let fence = target.fence(&names).await.map_err(failed)?;
            all.push((names, fence.unwrap_or_default()));
        }
        let began = Instant::now();
        for (names, fence) in &all {
            let work = Work { names, fence: *fence, lost: None, journal: &NoJournal };
            target.migrate(&work).await.map_err(failed)?;
        }
        Ok(began.elapsed())
    }

    async fn start(&self) -> anyhow::Result<RolloutId> {
        let strategy = Strategy { canary: 0, parallel: PARALLEL, ..Strategy::default() };
        let profile = PROFILE.to_owned();
        let input = Migration { profile, strategy, ..Migration::default() };
        Ok(migrate::start(&self.context, &operator(), &input).await?)
    }

    /// Waits until so many members are healthy, or for the end if that is all of them.
    async fn until(&self, id: RolloutId, members: usize) -> anyhow::Result<u64> {
        let began = Instant::now();
        let members = u64::try_from(members)?;
        let is_all = members == u64::try_from(self.tenants)?;
        loop {
            let (rollout, progress) = read::rollout(&self.context, &operator(), id).await?;
            let healthy = progress.of(MemberState::Healthy);
            match rollout.state {
                RolloutState::Running if !is_all && healthy >= members => return Ok(healthy),
                RolloutState::Running => {}
                RolloutState::Done => {
                    ensure!(is_all && healthy == members, "{healthy} of {members} are healthy");
                    return Ok(healthy);
                }
                state => anyhow::bail!("the roll-out is {state}: {:?}", rollout.message),
            }
            ensure!(began.elapsed() < TIMEOUT, "the roll-out does not end: {progress:?}");
            tokio::time::sleep(POLL).await;
        }
    }

    /// The tenants whose database has the file exactly once, by its row and by its effect.
    async fn verify(&self, version: usize) -> anyhow::Result<usize> {
        let settings = self.folders.parsed(PREFIX, 1)?;
        let mut verified = 0;
        for tenant in self.ready().await? {
            let names = TenantNames::of(&settings, &tenant.target_name)?;
            let schema = names.schema();
            let sql = format!(
                "SELECT (SELECT count(*) FROM \"{schema}\".slipway_migrations WHERE kind = 'migration' \
                 AND version = '{version}' AND status = 'done'), \
                 (SELECT count(*) FROM \"{schema}\".part_{version})"
            );
            let query = sqlx::query_as(sqlx::AssertSqlSafe(sql)).persistent(false);
            let found: (i64, i64) = query.fetch_one(&self.beside).await?;
            ensure!(found == (1, 1), "{schema} has {found:?} of version {version}");
            verified += 1;
        }
        ensure!(verified == self.tenants, "{verified} tenants of {}", self.tenants);
        Ok(verified)
    }
}
