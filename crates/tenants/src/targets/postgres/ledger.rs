//! The target's ledger: whose a schema is, what of it exists, and the highest fence.
//!
//! It lives in a schema of the provisioner's own, which no role of a tenant can enter. The row of
//! a tenant stays when the tenant is gone, so that a late worker is still refused, until another
//! tenant has the name.

use super::connections::Session;
use super::{literal, quoted};
use crate::targets::failure::{Failure, belongs_to, fenced};
use crate::targets::names::{self, LEDGER_SCHEMA, TenantNames};
use crate::targets::sink::Role;
use crate::targets::target::{Fence, Work};

/// The row of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// The owner of the name.
    tenant: String,
    work: i64,
    token: i64,
    pub(super) has_schema: bool,
    pub(super) has_migrator: bool,
    pub(super) has_runtime: bool,
    /// The sink has its password.
    pub(super) migrator_ready: bool,
    pub(super) runtime_ready: bool,
    pub(super) is_closed: bool,
}

from_row!(Entry {
    tenant,
    work,
    token,
    has_schema,
    has_migrator,
    has_runtime,
    migrator_ready,
    runtime_ready,
    is_closed
});

impl Entry {
    pub(super) fn is_of(&self, names: &TenantNames) -> bool {
        self.tenant == names.owner()
    }

    /// What of the tenant the ledger knows as its own.
    pub(super) fn made(&self) -> Existing {
        let Self { has_schema, has_migrator, has_runtime, .. } = *self;
        Existing { schema: has_schema, migrator: has_migrator, runtime: has_runtime }
    }

    pub(super) fn fence(&self) -> Fence {
        Fence { work: self.work, token: self.token }
    }

    pub(super) fn is_ready(&self, role: Role) -> bool {
        match role {
            Role::Migrator => self.migrator_ready,
            Role::Runtime => self.runtime_ready,
        }
    }

    /// Refuses work on a tenant that is closed or not there.
    pub(super) fn must_be_open(&self, names: &TenantNames) -> Result<(), Failure> {
        let (tenant, schema) = (names.tenant(), names.schema());
        if self.is_closed {
            let problem = format!("tenant {tenant} is closed: reopen it, or destroy it first");
            return Err(Failure::permanent(problem));
        }
        if !self.has_schema {
            let problem = format!("tenant {tenant} has no schema {schema}: create it first");
            return Err(Failure::permanent(problem));
        }
        Ok(())
    }
}

/// What of a tenant exists, whoever made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Existing {
    pub(super) schema: bool,
    pub(super) migrator: bool,
    pub(super) runtime: bool,
}

from_row!(Existing { schema, migrator, runtime });

impl Existing {
    /// What is in both.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            schema: self.schema && other.schema,
            migrator: self.migrator && other.migrator,
            runtime: self.runtime && other.runtime,
        }
    }

    /// The objects by their names.
    pub(super) fn objects(self, names: &TenantNames) -> Vec<String> {
        let [migrator, schema, runtime] = objects(names);
        let all = [(self.migrator, migrator), (self.schema, schema), (self.runtime, runtime)];
        all.into_iter().filter(|(exists, _)| *exists).map(|(_, object)| object).collect()
    }

    /// The roles by their names.
    pub(super) fn roles(self, names: &TenantNames) -> Vec<String> {
        let roles = [(self.migrator, names.migrator()), (self.runtime, names.runtime())];
        roles.into_iter().filter(|(exists, _)| *exists).map(|(_, role)| role).collect()
    }
}

/// The objects of a tenant, in the order in which they are made.
fn objects(names: &TenantNames) -> [String; 3] {
    [names::role(&names.migrator()), names::schema(names.schema()), names::role(&names.runtime())]
}

const COLUMNS: &str = "tenant, work, token, has_schema, has_migrator, has_runtime, \
                       migrator_ready, runtime_ready, is_closed";

/// Makes the ledger if there is none. Two that do so at the same time wait for each other.
pub(super) async fn prepare(session: &mut Session<'_>) -> Result<(), Failure> {
    let there = "SELECT to_regclass('slipway_tenants.ledger') IS NOT NULL";
    if session.value(sqlx::query_as(there)).await? {
        return Ok(());
    }
    let lock = lock("ledger");
    let create = format!(
        "BEGIN; {lock};
         CREATE SCHEMA IF NOT EXISTS {LEDGER_SCHEMA};
         REVOKE ALL ON SCHEMA {LEDGER_SCHEMA} FROM PUBLIC;
         CREATE TABLE IF NOT EXISTS {LEDGER_SCHEMA}.ledger (
             schema_name text PRIMARY KEY,
             tenant text NOT NULL,
             work bigint NOT NULL,
             token bigint NOT NULL,
             has_schema boolean NOT NULL DEFAULT false,
             has_migrator boolean NOT NULL DEFAULT false,
             has_runtime boolean NOT NULL DEFAULT false,
             migrator_ready boolean NOT NULL DEFAULT false,
             runtime_ready boolean NOT NULL DEFAULT false,
             is_closed boolean NOT NULL DEFAULT false,
             changed_at timestamptz NOT NULL DEFAULT clock_timestamp());
         COMMIT"
    );
    session.run(create).await
}

/// Serialises everything that changes one tenant, until the end of the transaction; also
/// what runs outside a transaction, see [`hold`].
fn lock(name: &str) -> String {
    format!("SELECT pg_advisory_xact_lock({})", key(name))
}

fn key(name: &str) -> String {
    format!("hashtextextended({}, 0)", literal(&format!("slipway-tenants {name}")))
}

/// Takes the lock of a tenant for the session, that is until it is closed or
/// [`free`]d.
pub(super) async fn hold(session: &mut Session<'_>, names: &TenantNames) -> Result<(), Failure> {
    session.run(format!("SELECT pg_advisory_lock({})", key(names.schema()))).await
}

pub(super) async fn free(session: &mut Session<'_>, names: &TenantNames) -> Result<(), Failure> {
    session.run(format!("SELECT pg_advisory_unlock({})", key(names.schema()))).await
}

/// The row as it is.
pub(super) async fn read(
    session: &mut Session<'_>,
    names: &TenantNames,
) -> Result<Option<Entry>, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM {LEDGER_SCHEMA}.ledger WHERE schema_name = $1");
    let query = sqlx::query_as(sqlx::AssertSqlSafe(sql)).bind(names.schema());
    session.first(query).await
}

pub(super) async fn existing(
    session: &mut Session<'_>,
    names: &TenantNames,
) -> Result<Existing, Failure> {
    const EXISTING: &str = "SELECT \
         EXISTS (SELECT FROM pg_namespace WHERE nspname = $1) AS schema, \
         EXISTS (SELECT FROM pg_roles WHERE rolname = $2) AS migrator, \
         EXISTS (SELECT FROM pg_roles WHERE rolname = $3) AS runtime";
    let query = sqlx::query_as(EXISTING).bind(names.schema());
    let row = session.first(query.bind(names.migrator()).bind(names.runtime())).await?;
    Ok(row.ok_or(sqlx::Error::RowNotFound)?)
}

/// Begins a transaction that only reads.
pub(super) async fn begin_locked(
    session: &mut Session<'_>,
    names: &TenantNames,
) -> Result<(), Failure> {
    session.run(format!("BEGIN; {}", lock(names.schema()))).await
}

/// Begins a transaction, writes the fence of this work into the ledger and locks the row. A
/// lower fence is refused, and so is another tenant while anything of the first one exists.
pub(super) async fn begin(session: &mut Session<'_>, work: &Work<'_>) -> Result<Entry, Failure> {
    let entered = enter(session, work).await?;
    entered.map_err(|owner| belongs_to(work.names, &owner))
}

/// The same for work that ends a tenant. If another one has the name, nothing of this one exists,
/// since the other was refused as long as anything did: then it answers `None`, with no
/// transaction.
pub(super) async fn begin_end(
    session: &mut Session<'_>,
    work: &Work<'_>,
) -> Result<Option<Entry>, Failure> {
    match enter(session, work).await? {
        Ok(entry) => Ok(Some(entry)),
        Err(owner) if work.names.is_unclear(&owner) => Err(belongs_to(work.names, &owner)),
        Err(_) => session.commit().await.map(|()| None),
    }
}

/// See [`begin`]; answers whose the name is if it is another tenant's.
async fn enter(
    session: &mut Session<'_>,
    work: &Work<'_>,
) -> Result<Result<Entry, String>, Failure> {
    let Work { names, fence, lost, .. } = *work;
    begin_locked(session, names).await?;
    let write = format!(
        "INSERT INTO {LEDGER_SCHEMA}.ledger AS l (schema_name, tenant, work, token) \
         VALUES ($1, $2, $3, $4) ON CONFLICT (schema_name) DO UPDATE \
         SET tenant = excluded.tenant, work = excluded.work, token = excluded.token, \
             is_closed = l.is_closed AND l.tenant = excluded.tenant, \
             changed_at = clock_timestamp() \
         WHERE CASE WHEN l.tenant = excluded.tenant \
             THEN (l.work, l.token) <= (excluded.work, excluded.token) \
                 AND (l.work > $5 AND l.work < $6) IS NOT TRUE \
             ELSE NOT (l.has_schema OR l.has_migrator OR l.has_runtime) END \
         RETURNING {COLUMNS}"
    );
    let query = sqlx::query_as(sqlx::AssertSqlSafe(write)).bind(names.schema());
    let query = query.bind(names.owner()).bind(fence.work).bind(fence.token);
    let query = query.bind(lost.map(|lost| lost.after)).bind(lost.map(|lost| lost.before));
    let written: Option<Entry> = session.first(query).await?;
    if let Some(entry) = written {
        return Ok(Ok(entry));
    }
    match read(session, names).await? {
        Some(entry) if !entry.is_of(names) => Ok(Err(entry.tenant)),
        found => Err(fenced(found.map(|entry| entry.fence()), work)),
    }
}

/// Whether the fence is still ours, at the end of a transaction in which foreign statements
/// ran.
pub(super) async fn verify(session: &mut Session<'_>, work: &Work<'_>) -> Result<(), Failure> {
    let found = read(session, work.names).await?.map(|entry| entry.fence());
    if found == Some(work.fence) { Ok(()) } else { Err(fenced(found, work)) }
}

/// Changes the row, inside a transaction that [`begin`] began.
pub(super) async fn set(
    session: &mut Session<'_>,
    names: &TenantNames,
    assignments: &'static str,
) -> Result<(), Failure> {
    let name = literal(names.schema());
    let update =
        format!("UPDATE {LEDGER_SCHEMA}.ledger SET {assignments} WHERE schema_name = {name}");
    session.run(update).await
}

/// Temporary tenants that a drift report left behind when it was killed.
pub(super) async fn forgotten(session: &mut Session<'_>) -> Result<Vec<String>, Failure> {
    const FORGOTTEN: &str = "SELECT schema_name FROM slipway_tenants.ledger \
         WHERE starts_with(schema_name, 'slipway_drift_') \
         AND changed_at < clock_timestamp() - interval '1 hour' LIMIT 100";
    let rows = session.rows::<(String,)>(sqlx::query_as(FORGOTTEN)).await?;
    Ok(rows.into_iter().map(|(schema,)| schema).collect())
}

/// Removes the row of a temporary tenant, for which there are no late workers.
pub(super) async fn forget(session: &mut Session<'_>, names: &TenantNames) -> Result<(), Failure> {
    let name = literal(names.schema());
    session.run(format!("DELETE FROM {LEDGER_SCHEMA}.ledger WHERE schema_name = {name}")).await
}

/// Lets the provisioner act as a role until [`give_back`]. PostgreSQL 16 and later hand a
/// CREATEROLE user its roles with ADMIN, but without SET; before, it was no member at all.
pub(super) async fn borrow(session: &mut Session<'_>, role: &str) -> Result<(), Failure> {
    let (version, is_superuser) = session.facts().await?;
    if is_superuser {
        return Ok(());
    }
    let options = if version >= 160_000 { " WITH INHERIT FALSE, SET TRUE" } else { "" };
    session.run(format!("GRANT {} TO CURRENT_USER{options}", quoted(role))).await
}

/// Undoes [`borrow`]. The ADMIN option of PostgreSQL 16 stays: the server granted it, not we.
pub(super) async fn give_back(session: &mut Session<'_>, role: &str) -> Result<(), Failure> {
    if session.facts().await?.1 {
        return Ok(());
    }
    session.run(format!("REVOKE {} FROM CURRENT_USER", quoted(role))).await
}
