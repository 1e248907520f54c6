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
//!         Ok(Assignment { target, settings, names, work: 1, lost: None })
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
//!
//! # What holds
//!
//! - **Nothing existing is taken over.** A schema, role or file that the target's ledger does not
//!   know as this tenant's, or that another job made, is refused by its name. Cleanup removes
//!   what this job recorded and the ledger knows, and nothing else.
//! - **A late worker changes nothing.** The [`Fence`] is written in the transaction of every effect,
//!   a lower one is refused, also after the tenant is gone.
//! - **No password is stored, logged or sent to the server.** It is made here and handed to the
//!   [`SecretSink`]; then the server gets a SCRAM verifier, and only then the role can log in.
//! - **A tenant on PostgreSQL** is a schema `<name>` whose owner is the role `<name>_migrator`, and the
//!   role `<name>_runtime` of the application: it works with rows and sequences, of later tables
//!   too, and changes no structure. `PUBLIC` has no rights there. The provisioner needs
//!   `CREATEROLE` and `CREATE` on the database, and acts as the migrator only inside transactions.
//!   Its own ledger is in the schema `slipway_tenants`.
//! - **A tenant on SQLite** is a file `<name>.db`; closed it is in `closed/`.
//!
//! # Migrations and seeds
//!
//! The folder has files `V<version>__<name>.sql`; versions are numbers between dots, `1.10` comes after
//! `1.9`, gaps are fine. Each file is sent whole and commits with its row in the tenant's table
//! `slipway_migrations`. A file that was changed after it was applied is refused by its name, and so
//! is a new file below the highest applied version, unless `allow_out_of_order` is set. If there is a
//! `flyway_schema_history` and no row of ours, its versions count as applied.
//!
//! A file whose first lines have `-- slipway: no-transaction` runs without one, such as `CREATE INDEX
//! CONCURRENTLY`, which has to be alone in its file. If it fails or the worker dies, its state is
//! unknown: every further migration is refused until a person says what is true by
//! [`Target::repair`].
//!
//! A statement waits `lock_timeout_ms` for a lock, then the file is rolled back and tried again,
//! `lock_attempts` times, then later. Seeds are `*.sql` in the order of their names; each runs once.

mod settings;

mod folder;
mod names;
mod plan;

mod command;
mod export;
mod files;
mod password;
mod secret;
mod sink;

mod failure;
mod run;
mod target;

mod postgres;
mod sqlite;

mod steps;

pub use export::{Export, ExportFormat};
pub use names::{NameError, TenantNames};
pub use secret::{LocalResolver, Resolve, Secret};
pub use settings::{CommandStep, Engine, Fault, KvReference, Reference, SecretSink, Settings};
pub use steps::{Assignment, steps};
pub use target::{
    Difference, DifferenceKind, Drift, Fence, Journal, LostWork, Migrated, NoJournal, Repair,
    Target, Work, open,
};
