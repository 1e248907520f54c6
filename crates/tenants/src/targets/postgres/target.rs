//! The target itself: settings, sessions, and where each call goes.

use async_trait::async_trait;
use tokio::sync::OnceCell;

use super::connections::{Connections, Session};
use super::ledger;
use crate::StepError;
use crate::targets::export::Export;
use crate::targets::failure::Failure;
use crate::targets::names::TenantNames;
use crate::targets::secret::Secret;
use crate::targets::settings::Settings;
use crate::targets::sink::Sink;
use crate::targets::target::{Drift, Fence, Migrated, Repair, Target, Work};

/// A database whose schemas are tenants.
#[derive(Debug)]
pub(crate) struct PostgresTarget {
    pub(super) settings: Settings,
    /// For programs of PostgreSQL.
    pub(super) dsn: Secret,
    connections: Connections,
    pub(super) sink: Option<Sink>,
    prepared: OnceCell<()>,
}

impl PostgresTarget {
    pub(crate) fn new(settings: &Settings, dsn: &Secret) -> Result<Self, StepError> {
        let connections = Connections::new(dsn, settings)?;
        let sink = settings.secrets.clone().map(|sink| Sink::new(sink, connections.server()));
        let (settings, dsn) = (settings.clone(), dsn.clone());
        Ok(Self { settings, dsn, connections, sink, prepared: OnceCell::new() })
    }

    /// A session on a database that has a ledger.
    pub(super) async fn session(&self) -> Result<Session<'_>, Failure> {
        let mut session = self.connections.session().await?;
        self.prepared.get_or_try_init(|| ledger::prepare(&mut session)).await?;
        Ok(session)
    }
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

    async fn export(&self, names: &TenantNames) -> Result<Export, StepError> {
        Ok(self.dump(names).await?)
    }

    async fn fence(&self, names: &TenantNames) -> Result<Option<Fence>, StepError> {
        Ok(self.highest_fence(names).await?)
    }
}
