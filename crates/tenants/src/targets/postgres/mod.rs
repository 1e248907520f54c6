//! Tenants in schemas of a PostgreSQL database, version 15 or later.
//!
//! The provisioner needs `LOGIN CREATEROLE` and `CREATE` on the database; it need not be a
//! superuser. [`connections`] has its sessions, [`ledger`] what belongs to whom and the fence,
//! [`schema`] makes a tenant, [`migrate`] changes it, [`remove`] ends it, [`drift`] compares it.

/// Reads a struct from the columns that are named like its fields.
macro_rules! from_row {
    ($type:ident { $($field:ident),* }) => {
        impl<'r> sqlx::FromRow<'r, sqlx::postgres::PgRow> for $type {
            fn from_row(row: &'r sqlx::postgres::PgRow) -> Result<Self, sqlx::Error> {
                use sqlx::Row as _;
                Ok(Self { $($field: row.try_get(stringify!($field))?),* })
            }
        }
    };
}

mod connections;
mod drift;
mod ledger;
mod migrate;
mod remove;
mod schema;

use async_trait::async_trait;
use tokio::sync::OnceCell;

use super::failure::Failure;
use super::names::TenantNames;
use super::secret::Secret;
use super::settings::Settings;
use super::sink::Sink;
use super::target::{Drift, Fence, Migrated, Repair, Target, Work};
use crate::StepError;
use connections::{Connections, Session};

/// A database whose schemas are tenants.
#[derive(Debug)]
pub(crate) struct PostgresTarget {
    settings: Settings,
    connections: Connections,
    sink: Option<Sink>,
    prepared: OnceCell<()>,
}

impl PostgresTarget {
    pub(crate) fn new(settings: &Settings, dsn: &Secret) -> Result<Self, StepError> {
        let connections = Connections::new(dsn, settings)?;
        let sink = settings.secrets.clone().map(|sink| Sink::new(sink, connections.server()));
        Ok(Self { settings: settings.clone(), connections, sink, prepared: OnceCell::new() })
    }

    /// A session on a database that has a ledger.
    async fn session(&self) -> Result<Session<'_>, Failure> {
        let mut session = self.connections.session().await?;
        self.prepared.get_or_try_init(|| ledger::prepare(&mut session)).await?;
        Ok(session)
    }
}

/// An identifier. Names have letters, digits and underscores only; the quotes keep their case
/// and make words of SQL usable.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[async_trait]
impl Target for PostgresTarget {
    async fn create_schema(&self, work: &Work<'_>) -> Result<(), StepError> {
        Ok(self.make_schema(work).await?)
    }

    async fn create_role(&self, work: &Work<'_>) -> Result<(), StepError> {
        Ok(self.make_role(work).await?)
    }

    async fn migrate(&self, work: &Work<'_>) -> Result<Migrated, StepError> {
        Ok(self.apply_migrations(work).await?)
    }

    async fn seed(&self, work: &Work<'_>) -> Result<(), StepError> {
        Ok(self.apply_seeds(work).await?)
    }

    async fn repair(
        &self,
        work: &Work<'_>,
        version: &str,
        repair: Repair,
    ) -> Result<(), StepError> {
        Ok(self.enter_repair(work, version, repair).await?)
    }

    async fn remove(&self, work: &Work<'_>, object: &str) -> Result<(), StepError> {
        Ok(self.remove_object(work, object).await?)
    }

    async fn close(&self, work: &Work<'_>) -> Result<(), StepError> {
        Ok(self.lock_out(work).await?)
    }

    async fn reopen(&self, work: &Work<'_>) -> Result<(), StepError> {
        Ok(self.let_in(work).await?)
    }

    async fn destroy(&self, work: &Work<'_>) -> Result<(), StepError> {
        Ok(self.drop_all(work).await?)
    }

    async fn drift(&self, names: &TenantNames, deep: bool) -> Result<Drift, StepError> {
        Ok(self.compare(names, deep).await?)
    }

    async fn fence(&self, names: &TenantNames) -> Result<Option<Fence>, StepError> {
        Ok(self.highest_fence(names).await?)
    }
}
