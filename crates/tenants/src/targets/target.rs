//! What a target does for a tenant.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::export::Export;
use super::names::TenantNames;
use super::postgres::PostgresTarget;
use super::secret::Resolve;
use super::settings::{Engine, Settings};
use super::sqlite::SqliteTarget;
use crate::{StepContext, StepError};

/// The number of a piece of work on a tenant, and the claim under which it is done.
///
/// The target's ledger keeps the highest one. It is written in the transaction of every
/// effect, and a lower one is refused: so a worker that was paused beyond its lease changes
/// nothing once another has begun. A control plane whose database was restored from a backup
/// says which numbers it lost ([`LostWork`]), so that it does not undo what was done under them.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Fence {
    pub work: i64,
    pub token: i64,
}

/// Numbers of work that were given out from a database which was replaced by an older backup of
/// itself. Whoever uses it now does not know what was done under them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostWork {
    /// The last number that is known.
    pub after: i64,
    /// The first number that was given out after the restore.
    pub before: i64,
}

impl LostWork {
    /// Whether the work that the ledger has is not known any more.
    #[must_use]
    pub fn has(self, work: i64) -> bool {
        self.after < work && work < self.before
    }
}

/// One call on a target.
#[derive(Debug, Clone, Copy)]
pub struct Work<'a> {
    pub names: &'a TenantNames,
    pub fence: Fence,
    /// A ledger with one of these numbers refuses the call, although they are lower.
    pub lost: Option<LostWork>,
    /// Where objects are recorded before they are made.
    pub journal: &'a dyn Journal,
}

/// Records what is made, so that exactly that can be removed again.
#[async_trait]
pub trait Journal: fmt::Debug + Send + Sync {
    /// Whether the object was recorded and not removed since. One that exists and is not
    /// recorded was made by somebody else, and is left alone.
    fn has(&self, object: &str) -> bool;

    /// Called before an object is made and after it was found not to exist. Returns when the
    /// record is durable.
    async fn making(&self, object: &str) -> Result<(), StepError>;

    /// Called when an object is proven gone.
    async fn removed(&self, object: &str) -> Result<(), StepError>;
}

#[async_trait]
impl Journal for StepContext {
    fn has(&self, object: &str) -> bool {
        self.made().iter().any(|made| made == object)
    }

    async fn making(&self, object: &str) -> Result<(), StepError> {
        Self::making(self, object).await.map_err(of_store)
    }

    async fn removed(&self, object: &str) -> Result<(), StepError> {
        Self::removed(self, object).await.map_err(of_store)
    }
}

/// For work that makes nothing, or whose objects are recorded elsewhere.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoJournal;

#[async_trait]
impl Journal for NoJournal {
    fn has(&self, _: &str) -> bool {
        false
    }

    async fn making(&self, _: &str) -> Result<(), StepError> {
        Ok(())
    }

    async fn removed(&self, _: &str) -> Result<(), StepError> {
        Ok(())
    }
}

/// A store of jobs that is not available now does not doom the tenant.
fn of_store(error: crate::Error) -> StepError {
    if error.is_temporary() { StepError::transient(error) } else { StepError::permanent(error) }
}

/// What [`Target::migrate`] did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Migrated {
    /// The versions that this call applied, in their order.
    pub applied: Vec<String>,
    /// The versions that Flyway had applied before, if this call took its history over.
    pub adopted: Vec<String>,
    /// The highest applied version.
    pub version: Option<String>,
}

/// How a tenant differs from what it should be.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Drift {
    pub differences: Vec<Difference>,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Difference {
    pub kind: DifferenceKind,
    /// What it is about: a file, a role, a table, an index.
    pub object: String,
    pub expected: String,
    pub found: String,
}

/// What a [`Difference`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceKind {
    /// The ledger against the folders of migrations and seeds.
    Ledger,
    /// The schema, the file or a role itself.
    Object,
    Owner,
    Grant,
    /// Columns and indexes, against a tenant freshly built from the folder.
    Structure,
}

/// What a person found out about a migration whose state is unknown, or whose file was changed
/// on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repair {
    /// All of the file as it is now was applied.
    Applied,
    /// Nothing of it was applied; the next migration runs it.
    NotApplied,
}

/// Where tenants live. Each call is idempotent: repeated after a crash at any moment it ends
/// with the same tenant.
#[async_trait]
pub trait Target: fmt::Debug + Send + Sync {
    /// Makes the schema and its owner, or the file. Something that exists already and that the
    /// ledger does not know as this tenant's is refused.
    async fn create_schema(&self, work: &Work<'_>) -> Result<(), StepError>;

    /// Makes the role of the application, with its grants, and gives both roles a password.
    /// A file has no roles.
    async fn create_role(&self, work: &Work<'_>) -> Result<(), StepError>;

    /// Applies every migration that the folder has and the ledger has not.
    async fn migrate(&self, work: &Work<'_>) -> Result<Migrated, StepError>;

    /// Runs every seed that the ledger has not.
    async fn seed(&self, work: &Work<'_>) -> Result<(), StepError>;

    /// Enters into the ledger what a person found out about one version.
    async fn repair(&self, work: &Work<'_>, version: &str, repair: Repair)
    -> Result<(), StepError>;

    /// Removes one object that a job recorded, if it is this tenant's.
    async fn remove(&self, work: &Work<'_>, object: &str) -> Result<(), StepError>;

    /// Makes the tenant unusable and keeps its data: nobody can log in and sessions are ended;
    /// a file is moved aside.
    async fn close(&self, work: &Work<'_>) -> Result<(), StepError>;

    /// Undoes [`Target::close`].
    async fn reopen(&self, work: &Work<'_>) -> Result<(), StepError>;

    /// Removes everything, in order, and proves it gone.
    async fn destroy(&self, work: &Work<'_>) -> Result<(), StepError>;

    /// Compares the tenant with the folders and with the model; `deep` also with a tenant that
    /// is built for it and removed again.
    async fn drift(&self, names: &TenantNames, deep: bool) -> Result<Drift, StepError>;

    /// A copy of the tenant's data as it is now, open or closed. Reading it changes nothing.
    async fn export(&self, names: &TenantNames) -> Result<Export, StepError>;

    /// The highest fence that the target has seen for this tenant.
    async fn fence(&self, names: &TenantNames) -> Result<Option<Fence>, StepError>;
}

/// How the columns and indexes of a tenant differ from those of a fresh one.
pub(crate) fn structures(
    fresh: &BTreeMap<String, String>,
    tenant: &BTreeMap<String, String>,
) -> Vec<Difference> {
    let none = "not there".to_owned();
    let objects: BTreeSet<_> = fresh.keys().chain(tenant.keys()).collect();
    let differs = objects.into_iter().filter(|object| fresh.get(*object) != tenant.get(*object));
    let difference = |object: &String| Difference {
        kind: DifferenceKind::Structure,
        object: object.clone(),
        expected: fresh.get(object).unwrap_or(&none).clone(),
        found: tenant.get(object).unwrap_or(&none).clone(),
    };
    differs.map(difference).collect()
}

/// Opens the target that settings describe. Connections are made when they are needed.
pub async fn open(
    settings: &Settings,
    resolve: &dyn Resolve,
) -> Result<Arc<dyn Target>, StepError> {
    if let Some(fault) = settings.check().first() {
        return Err(StepError::permanent(fault));
    }
    let text = resolve.resolve(&settings.target).await?;
    match settings.engine {
        Engine::Postgres => Ok(Arc::new(PostgresTarget::new(settings, &text)?)),
        Engine::Sqlite => Ok(Arc::new(SqliteTarget::new(settings, &text)?)),
    }
}
