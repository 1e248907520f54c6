//! Runs migrations and seeds: the order of things, the same for both engines.
//!
//! *Expected flow:* read the tenant's ledger, plan, then one transaction for each file: the
//! fence, the file, its row, commit.
//!
//! *Guarantees:* a file and its row are there both or not at all. After a lost connection nothing
//! is guessed: the next try reads the ledger first.
//!
//! *Caveats:* a file without a transaction has its row before it begins. If it does not end, its
//! state is unknown until a person repairs the version.

use std::time::Duration;

use async_trait::async_trait;
use slipway_durable::Backoff;

use super::failure::Failure;
use super::folder::{Migration, Script, Version};
use super::plan::{self, Applied, FlywayRow};
use super::settings::Settings;
use super::target::{Migrated, Repair};
use crate::{StepError, random};

/// What a row of a tenant's ledger is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Migration,
    Seed,
}

impl Kind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Migration => "migration",
            Self::Seed => "seed",
        }
    }
}

/// Whether a file that has a row has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Running,
    Done,
}

impl Status {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
        }
    }
}

/// The database of one tenant, for one piece of work on it.
#[async_trait]
pub(crate) trait TenantDatabase: Send {
    /// Begins a transaction with the fence in it, as the owner of the tenant's objects.
    async fn begin(&mut self) -> Result<(), Failure>;
    async fn commit(&mut self) -> Result<(), Failure>;

    /// Runs a file as it is, inside the transaction that was begun. One that ends the
    /// transaction or gives the owner's role up is refused.
    async fn run_inside(&mut self, script: &Script) -> Result<(), Failure>;

    /// Runs a file as it is, as the owner, in no transaction.
    async fn run_outside(&mut self, script: &Script) -> Result<(), Failure>;

    /// The rows of the tenant's ledger.
    async fn rows(&mut self, kind: Kind) -> Result<Vec<Applied>, Failure>;
    async fn insert(&mut self, kind: Kind, row: &Applied, status: Status) -> Result<(), Failure>;
    async fn delete(&mut self, version: &str) -> Result<(), Failure>;

    /// The history of Flyway, if it has one here.
    async fn flyway(&mut self) -> Result<Option<Vec<FlywayRow>>, Failure>;
}

/// What the tries of one call found out.
#[derive(Debug, Default)]
pub(crate) struct Run {
    /// What was owed at the first try. Whether that one applied a part of it or not, all of it
    /// is applied when the last one succeeds.
    owed: Option<Vec<String>>,
    adopted: Vec<String>,
    highest: Option<String>,
}

impl Run {
    pub(crate) fn migrated(self) -> Migrated {
        let applied = self.owed.unwrap_or_default();
        Migrated { applied, adopted: self.adopted, version: self.highest }
    }
}

/// Between two tries for a lock: long enough for the traffic that waited meanwhile.
const BACKOFF: Backoff = Backoff { base: Duration::from_millis(100), max: Duration::from_secs(5) };

/// How often a call is tried again, on a fresh connection, while what stands in its way may
/// pass.
#[derive(Debug)]
pub(crate) struct Attempts {
    made: u32,
    most: u32,
}

impl Attempts {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self { made: 0, most: settings.lock_attempts }
    }

    /// Waits before the next one, or answers the failure.
    pub(crate) async fn again(&mut self, failure: Failure) -> Result<(), Failure> {
        self.made += 1;
        if self.made >= self.most || !failure.is_passing() {
            return Err(failure);
        }
        tracing::debug!(attempt = self.made, "a file is tried again");
        tokio::time::sleep(BACKOFF.delay(self.made, random::jitter())).await;
        Ok(())
    }
}

/// Applies every migration that is owed.
pub(crate) async fn migrate(
    tenant: &mut dyn TenantDatabase,
    folder: &[Migration],
    allow_out_of_order: bool,
    run: &mut Run,
) -> Result<(), Failure> {
    tenant.begin().await?;
    let mut ledger = tenant.rows(Kind::Migration).await?;
    if ledger.is_empty()
        && let Some(history) = tenant.flyway().await?
    {
        ledger = plan::adopted(&history, folder).map_err(Failure::permanent)?;
        for row in &ledger {
            tenant.insert(Kind::Migration, row, Status::Done).await?;
        }
        run.adopted = ledger.iter().map(|row| row.version.clone()).collect();
    }
    tenant.commit().await?;
    let owed = plan::owed(folder, &ledger, allow_out_of_order).map_err(Failure::permanent)?;
    let versions = owed.iter().map(|migration| migration.version.to_string());
    run.owed.get_or_insert_with(|| versions.collect());
    for Migration { version, script } in owed {
        let row = Applied::of(version.to_string(), script);
        if script.is_transactional {
            run_whole(tenant, Kind::Migration, &row, script).await?;
        } else {
            run_loose(tenant, &row, script).await?;
        }
        ledger.push(row);
    }
    let highest = ledger.iter().filter_map(|row| Version::parse(&row.version)).max();
    run.highest = highest.map(|version| version.to_string());
    Ok(())
}

/// Runs every seed that is owed.
pub(crate) async fn seed(
    tenant: &mut dyn TenantDatabase,
    folder: &[Script],
) -> Result<(), Failure> {
    tenant.begin().await?;
    let rows = tenant.rows(Kind::Seed).await?;
    tenant.commit().await?;
    for script in plan::owed_seeds(folder, &rows) {
        let row = Applied::of(script.file.clone(), script);
        run_whole(tenant, Kind::Seed, &row, script).await?;
    }
    Ok(())
}

/// Enters what a person found out about a version.
pub(crate) async fn repair(
    tenant: &mut dyn TenantDatabase,
    folder: &[Migration],
    version: &str,
    repair: Repair,
) -> Result<(), Failure> {
    tenant.begin().await?;
    let ledger = tenant.rows(Kind::Migration).await?;
    let version = plan::known_version(&ledger, version).map_err(Failure::permanent)?;
    let row = plan::repaired(folder, &ledger, version, repair).map_err(Failure::permanent)?;
    tenant.delete(version).await?;
    if let Some(row) = row {
        tenant.insert(Kind::Migration, &row, Status::Done).await?;
    }
    tenant.commit().await
}

/// A file and its row in one transaction.
async fn run_whole(
    tenant: &mut dyn TenantDatabase,
    kind: Kind,
    row: &Applied,
    script: &Script,
) -> Result<(), Failure> {
    tenant.begin().await?;
    tenant.run_inside(script).await?;
    tenant.insert(kind, row, Status::Done).await?;
    tenant.commit().await
}

/// A file without a transaction: its row says that it began, then that it ended.
async fn run_loose(
    tenant: &mut dyn TenantDatabase,
    row: &Applied,
    script: &Script,
) -> Result<(), Failure> {
    tenant.begin().await?;
    tenant.insert(Kind::Migration, row, Status::Running).await?;
    tenant.commit().await?;
    if let Err(failure) = tenant.run_outside(script).await {
        let reason = StepError::from(failure).message;
        return Err(Failure::permanent(format!(
            "state unknown: {reason}; {} ran without a transaction and may have done a part: \
             look at the tenant, then repair version {} as applied or as not applied",
            script.file, row.version
        )));
    }
    tenant.begin().await?;
    tenant.delete(&row.version).await?;
    tenant.insert(Kind::Migration, row, Status::Done).await?;
    tenant.commit().await
}

/// The refusal of a file that did not leave its transaction open.
pub(crate) fn ended_transaction(script: &Script) -> Failure {
    Failure::permanent(format!(
        "{} ends its transaction by itself: take COMMIT and ROLLBACK out of it, or mark it with \
         `-- slipway: no-transaction`; look at what it has done already",
        script.file
    ))
}
