//! Built-in steps: tenants in PostgreSQL schemas or in SQLite files.
//!
//! A [`Target`] is where tenants live. [`Settings`] describe it, [`open`] opens it, and
//! [`steps`] makes the five callbacks of an [`Executor`](crate::Executor) from it.
//!
//! ```
//! use std::sync::Arc;
//! use slipway_tenants::targets::{self, Assignment, LocalResolver, Settings, TenantNames};
//! use slipway_tenants::{Executor, JobStore, MemoryStore, NewJob, Outcome, StateStore};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = std::env::temp_dir().join(format!("targets-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(folder.join("migrations"))?;
//! # std::fs::write(folder.join("folder"), folder.join("tenants").to_str().expect("a path"))?;
//! # std::fs::write(folder.join("migrations/V1__notes.sql"), "CREATE TABLE note (text TEXT)")?;
//! let settings: Settings = serde_json::from_value(serde_json::json!({
//!     "engine": "sqlite",
//!     "target": { "file": folder.join("folder") }, // a file whose text is the folder of the tenants
//!     "migrations": folder.join("migrations"),
//! }))?;
//! let settings = Arc::new(settings);
//! let target = targets::open(&settings, &LocalResolver).await.expect("the folder is usable");
//!
//! let steps = targets::steps(move |job| {
//!     let (target, settings) = (Arc::clone(&target), Arc::clone(&settings));
//!     async move {
//!         let names = TenantNames::of(&settings, &job.tenant_id)?;
//!         Ok(Assignment { target, settings, names, work: 1 })
//!     }
//! });
//! let store: Arc<dyn JobStore> = Arc::new(MemoryStore::new());
//! let executor = Executor::builder().store(Arc::clone(&store)).steps(steps).build()?;
//! store.upsert(&NewJob::new("create-acme", "acme")).await?;
//! assert_eq!(executor.run("create-acme").await?, Outcome::Ready);
//! assert!(folder.join("tenants/acme.db").is_file());
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(())
//! # }
//! ```

mod settings;

mod folder;
mod names;
mod plan;

mod command;
mod files;
mod password;
mod secret;
mod sink;

mod failure;
mod target;

mod postgres;
mod sqlite;

mod steps;

pub use names::{NameError, TenantNames};
pub use secret::{LocalResolver, Resolve, Secret};
pub use settings::{CommandStep, Engine, Fault, KvReference, Reference, SecretSink, Settings};
pub use steps::{Assignment, steps};
pub use target::{
    Difference, DifferenceKind, Drift, Fence, Journal, Migrated, NoJournal, Repair, Target, Work,
    open,
};
