//! The store: how each operation goes through the gateway.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use slipway_durable::claim::{Claim, Demand, Failures, Release};
use slipway_durable::database::{Gateway, OperationError as _, TableName};
use sqlx::Row as _;

use super::rows::{job, stored};
use super::statements::Statements;
use super::{Connection, Db, Row, is_possible, lacks_a_column, schema, upsert, write};
use crate::change::Change;
use crate::failure::Failure;
use crate::job::{Job, Metadata, NewJob};
use crate::sink::EdgeSink;
use crate::store::{ClaimFrom, Clock, Control, Filter, JobStore, PAGE, QUARANTINE, StateStore};
use crate::text::storable_error;
use crate::{DEFAULT_TABLE, Error, State};

/// Jobs in a table of a database. A clone has the same table and connections.
#[derive(Clone)]
pub struct Store {
    database: Arc<Gateway<Db>>,
    pub(super) table: TableName,
    pub(super) sql: Arc<Statements>,
    pub(super) sink: Option<Arc<dyn EdgeSink<Db>>>,
    clock: Option<Clock>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("table", &self.table).finish_non_exhaustive()
    }
}

/// New jobs in one transaction; each holds a lock of its tenant until the end.
const MOST_INSERTED: usize = 256;

/// Runs of an insertion that met another program's.
const INSERTIONS: u32 = 5;

impl Store {
    /// A store behind a gateway that the caller has. Empty means [`DEFAULT_TABLE`].
    pub fn new(database: Arc<Gateway<Db>>, table: &str) -> Result<Self, Error> {
        let table = Self::table_name(table)?;
        let sql = Arc::new(Statements::of(&table));
        Ok(Self { database, table, sql, sink: None, clock: None })
    }

    /// Takes the times of jobs from this clock, and not from the database. Leases are
    /// always the database's.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock: Some(clock), ..self }
    }

    /// Lets this write in every transaction that writes an edge.
    #[must_use]
    pub fn with_sink(self, sink: Arc<dyn EdgeSink<Db>>) -> Self {
        Self { sink: Some(sink), ..self }
    }

    /// Moves every time by which the clock of the database went back: `jump` is how far,
    /// `lease` the longest that a claim lasts.
    pub async fn clock_went_back(&self, jump: Duration, lease: Duration) -> Result<u64, Error> {
        let moved = self.database.statement((self, jump, lease), pull_in).await;
        moved.map_err(|failure| self.error(failure))
    }

    /// The claims of its rows, for the suite of [`slipway_durable::claim`].
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn claim_table(&self) -> &slipway_durable::claim::Table<Db> {
        &self.sql.by_partition
    }

    /// The statements that claim, write changes and decide about new jobs, for a look at their
    /// plans.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn hot_statements(&self) -> [&'static str; 3] {
        [self.sql.by_partition.statements().claim, self.sql.write, self.sql.known]
    }

    pub(super) fn table_name(name: &str) -> Result<TableName, Error> {
        let name = if name.is_empty() { DEFAULT_TABLE } else { name };
        let table = TableName::parse(name).filter(is_possible);
        table.ok_or_else(|| Error::InvalidTableName { name: name.to_owned() })
    }

    /// The time of the settable clock.
    pub(super) fn now(&self) -> Option<i64> {
        self.clock.as_ref().map(|clock| stored(clock()))
    }

    fn error(&self, failure: Failure) -> Error {
        if failure.database_error().is_some_and(lacks_a_column) {
            return Error::NotUpgraded { table: self.table.to_string() };
        }
        failure.into()
    }

    async fn insert(&self, new: &[&NewJob]) -> Result<Vec<Result<Job, Error>>, Failure> {
        for _ in 0..INSERTIONS {
            if let Some(answers) = self.database.write((self, new), upsert::upsert).await? {
                return Ok(answers);
            }
        }
        Err(Error::Unavailable("somebody else inserts jobs of the same tenants".to_owned()).into())
    }

    async fn write_set(&self, set: &[&Change]) -> Result<Vec<Result<Job, Error>>, Failure> {
        match &self.sink {
            Some(_) => self.database.write((self, set), write::write).await,
            None => self.database.hot_statement((self, set), write::write_alone).await,
        }
    }
}

#[async_trait]
impl StateStore for Store {
    async fn get(&self, id: &str) -> Result<Job, Error> {
        let found = self.database.read((self, id), get).await;
        found.map_err(|failure| self.error(failure))
    }

    async fn upsert(&self, job: &NewJob) -> Result<Job, Error> {
        job.check()?;
        let answers = self.insert(&[job]).await.map_err(|failure| self.error(failure))?;
        answers.into_iter().next().unwrap_or_else(|| Err(nothing()))
    }

    async fn transition(
        &self,
        id: &str,
        from: State,
        to: State,
        metadata: Option<&Metadata>,
        last_error: &str,
    ) -> Result<(), Error> {
        let change = Change::transition(id, from, to, metadata, last_error);
        let answers = self.write(&[change]).await;
        answers.into_iter().next().unwrap_or_else(|| Err(nothing())).map(drop)
    }

    async fn create_table(&self) -> Result<(), Error> {
        let created = async {
            if self.database.read(&self.table, schema::is_complete).await? {
                return Ok(());
            }
            self.database.write(self, schema::create).await
        };
        created.await.map_err(|failure: Failure| self.error(failure))
    }
}

#[async_trait]
impl JobStore for Store {
    async fn upsert_many(&self, jobs: &[NewJob]) -> Vec<Result<Job, Error>> {
        let mut answers = Vec::with_capacity(jobs.len());
        for chunk in jobs.chunks(MOST_INSERTED) {
            let checks: Vec<_> = chunk.iter().map(NewJob::check).collect();
            let good = chunk.iter().zip(&checks).filter(|(_, check)| check.is_ok());
            let good: Vec<_> = good.map(|(job, _)| job).collect();
            let mut inserted = match self.insert(&good).await {
                Ok(inserted) => inserted,
                Err(failure) if good.len() > 1 && failure.may_be_of_one_row() => {
                    let mut each = Vec::new();
                    for job in &good {
                        each.push(self.upsert(job).await);
                    }
                    each
                }
                Err(failure) => vec![Err(self.error(failure)); good.len()],
            }
            .into_iter();
            answers.extend(checks.into_iter().map(|check| {
                check.and_then(|()| inserted.next().unwrap_or_else(|| Err(nothing())))
            }));
        }
        answers
    }

    async fn claim(&self, from: ClaimFrom<'_>, demand: Demand<'_>) -> Result<Vec<Job>, Error> {
        let claimed = self.database.hot_statement((self, from, demand), claim).await;
        claimed.map_err(|failure| self.error(failure))
    }

    async fn renew(
        &self,
        worker: &str,
        claims: &[Claim<String>],
        lease: Duration,
    ) -> Result<Vec<String>, Error> {
        let renewed = self.database.statement((self, worker, claims, lease), renew).await;
        renewed.map_err(|failure| self.error(failure))
    }

    async fn write(&self, changes: &[Change]) -> Vec<Result<Job, Error>> {
        let mut answers = vec![Err(nothing()); changes.len()];
        for set in write::sets(changes) {
            let mut good = Vec::new();
            for n in set {
                match changes[n].clone().checked() {
                    Ok(change) => good.push((n, change)),
                    Err(error) => answers[n] = Err(error),
                }
            }
            let all: Vec<&Change> = good.iter().map(|(_, change)| change).collect();
            if all.is_empty() {
                continue;
            }
            match self.write_set(&all).await {
                Ok(written) => {
                    for ((n, _), answer) in good.iter().zip(written) {
                        answers[*n] = answer;
                    }
                }
                Err(failure) if all.len() > 1 && failure.may_be_of_one_row() => {
                    for (n, change) in &good {
                        let alone = self.write_set(&[change]).await;
                        let alone = alone.map(|answers| answers.into_iter().next());
                        answers[*n] = match alone {
                            Ok(answer) => answer.unwrap_or_else(|| Err(nothing())),
                            Err(failure) => Err(self.error(failure)),
                        };
                    }
                }
                Err(failure) => {
                    let error = self.error(failure);
                    for (n, _) in &good {
                        answers[*n] = Err(error.clone());
                    }
                }
            }
        }
        answers
    }

    async fn control(&self, id: &str, control: &Control) -> Result<Job, Error> {
        let (name, reason) = match control {
            Control::Pause { reason } => ("pause", Some(storable_error(reason))),
            Control::Resume => ("resume", None),
            Control::Cancel { reason } => ("cancel", Some(storable_error(reason))),
            Control::Decommission => ("decommission", None),
            Control::Recommission => ("recommission", None),
            Control::ResolveLeaks => ("resolve", None),
        };
        let done = match control {
            Control::Recommission => {
                self.database.write((self, id, name), upsert::recommission).await
            }
            _ => self.database.statement((self, id, name, reason.as_deref()), run_control).await,
        };
        match done.map_err(|failure| self.error(failure))? {
            Some(job) => Ok(job),
            None => {
                let job = self.get(id).await?;
                control.check(&job)?;
                Err(Error::Unavailable(format!("job `{id}` changed at this moment")))
            }
        }
    }

    async fn find(&self, filter: &Filter) -> Result<Vec<Job>, Error> {
        let found = self.database.read((self, filter), find).await;
        found.map_err(|failure| self.error(failure))
    }

    async fn due_partitions(&self) -> Result<Vec<String>, Error> {
        let found = self.database.read(self, due_partitions).await;
        found.map_err(|failure| self.error(failure))
    }
}

/// A statement answered fewer rows than it must; a fault of ours.
fn nothing() -> Error {
    Error::Database("the database answered nothing".to_owned())
}

async fn get(connection: &mut Connection, (store, id): (&Store, &str)) -> Result<Job, Failure> {
    let [full, eight] = store.sql.get;
    let row = match sqlx::query(full).bind(id).fetch_optional(&mut *connection).await {
        Err(error) if lacks_a_column(&error) => {
            sqlx::query(eight).bind(id).fetch_optional(connection).await?
        }
        outcome => outcome?,
    };
    let row = row.ok_or_else(|| Error::JobNotFound { id: id.to_owned() })?;
    Ok(job(&row)?)
}

async fn find(
    connection: &mut Connection,
    (store, filter): (&Store, &Filter),
) -> Result<Vec<Job>, Failure> {
    let limit = if filter.limit == 0 { PAGE } else { filter.limit };
    let ask = |statement| {
        sqlx::query(statement)
            .bind(filter.state.map(State::as_str))
            .bind(filter.tenant_id.as_deref())
            .bind(filter.partition.as_deref())
            .bind(filter.after.as_deref())
            .bind(i32::from(filter.leaked))
            .bind(i64::from(limit))
    };
    let [full, eight] = store.sql.find;
    let rows = match ask(full).fetch_all(&mut *connection).await {
        Err(error) if lacks_a_column(&error) => ask(eight).fetch_all(connection).await?,
        outcome => outcome?,
    };
    Ok(readable(&rows).0)
}

/// The jobs of these rows, and the errors of those that are none. A bad row stops no list
/// and no claim.
fn readable(rows: &[Row]) -> (Vec<Job>, Vec<Error>) {
    let (mut jobs, mut broken) = (Vec::new(), Vec::new());
    for row in rows {
        match job(row) {
            Ok(job) => jobs.push(job),
            Err(error) => {
                tracing::error!(%error, "a job is left alone");
                broken.push(error);
            }
        }
    }
    (jobs, broken)
}

async fn claim(
    connection: &mut Connection,
    (store, from, demand): (&Store, ClaimFrom<'_>, Demand<'_>),
) -> Result<Vec<Job>, Failure> {
    let (table, by) = match from {
        ClaimFrom::Partition(partition) => (&store.sql.by_partition, partition),
        ClaimFrom::Job(id) => (&store.sql.by_id, id),
    };
    let rows = table.claim(&mut *connection, by, demand).await?;
    let (jobs, broken) = readable(&rows);
    let mut releases = Vec::new();
    for error in &broken {
        let Error::Corrupt { id, reason } = error else { continue };
        let row =
            rows.iter().find(|row| row.try_get::<&str, _>("id").is_ok_and(|found| found == id));
        if let Some(claim_token) = row.and_then(|row| row.try_get("claim_token").ok()) {
            releases.push(Release {
                claim: Claim { key: id.clone(), claim_token },
                due_in: Some(QUARANTINE),
                failures: Failures::Keep,
                error: Some(reason),
            });
        }
    }
    table.release(connection, &releases).await?;
    Ok(jobs)
}

async fn renew(
    connection: &mut Connection,
    (store, worker, claims, lease): (&Store, &str, &[Claim<String>], Duration),
) -> Result<Vec<String>, Failure> {
    Ok(store.sql.by_id.renew(connection, worker, claims, lease).await?)
}

async fn pull_in(
    connection: &mut Connection,
    (store, jump, lease): (&Store, Duration, Duration),
) -> Result<u64, Failure> {
    Ok(store.sql.by_id.pull_in(connection, jump, lease).await?)
}

pub(super) async fn run_control(
    connection: &mut Connection,
    (store, id, name, reason): (&Store, &str, &str, Option<&str>),
) -> Result<Option<Job>, Failure> {
    let row = sqlx::query(store.sql.control).bind(id).bind(name).bind(reason);
    Ok(row.fetch_optional(connection).await?.as_ref().map(job).transpose()?)
}

async fn due_partitions(
    connection: &mut Connection,
    store: &Store,
) -> Result<Vec<String>, Failure> {
    let rows = sqlx::query(store.sql.due_partitions).fetch_all(connection).await?;
    Ok(rows.iter().map(|row| row.try_get("partition")).collect::<Result<_, _>>()?)
}
