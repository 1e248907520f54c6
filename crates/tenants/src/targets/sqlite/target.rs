//! The target itself: settings, folder, and where each call goes.

use std::path::PathBuf;

use async_trait::async_trait;

use crate::StepError;
use crate::targets::export::Export;
use crate::targets::names::TenantNames;
use crate::targets::secret::Secret;
use crate::targets::settings::Settings;
use crate::targets::target::{Drift, Fence, Migrated, Repair, Target, Work};

/// A folder whose files are tenants.
#[derive(Debug, Clone)]
pub(crate) struct SqliteTarget {
    pub(super) settings: Settings,
    pub(super) folder: PathBuf,
}

impl SqliteTarget {
    pub(crate) fn new(settings: &Settings, folder: &Secret) -> Result<Self, StepError> {
        let folder = PathBuf::from(folder.expose());
        if !folder.is_absolute() {
            let problem = "the target's text is no folder: write its path from the root on";
            return Err(StepError::permanent(problem));
        }
        Ok(Self { settings: settings.clone(), folder })
    }
}

#[async_trait]
impl Target for SqliteTarget {
    async fn create_schema(&self, work: &Work<'_>) -> Result<(), StepError> {
        Ok(self.make_file(work).await?)
    }

    async fn create_role(&self, _: &Work<'_>) -> Result<(), StepError> {
        Ok(())
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
        Ok(self.move_aside(work).await?)
    }

    async fn reopen(&self, work: &Work<'_>) -> Result<(), StepError> {
        Ok(self.move_back(work).await?)
    }

    async fn destroy(&self, work: &Work<'_>) -> Result<(), StepError> {
        Ok(self.remove_all(work).await?)
    }

    async fn drift(&self, names: &TenantNames, deep: bool) -> Result<Drift, StepError> {
        Ok(self.compare(names, deep).await?)
    }

    async fn export(&self, names: &TenantNames) -> Result<Export, StepError> {
        Ok(self.copy_file(names).await?)
    }

    async fn fence(&self, names: &TenantNames) -> Result<Option<Fence>, StepError> {
        Ok(self.highest_fence(names).await?)
    }
}
