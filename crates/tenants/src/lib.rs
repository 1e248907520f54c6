//! A durable executor of per-tenant provisioning jobs.
//!
//! A *job* makes one tenant: it walks `pending → schema_created → role_created → migrated →
//! seeded → ready`, and from each of the first five `→ cleanup → failed` if a step fails.
//! You bring five *steps*; the executor claims jobs, runs the step of each state, and stores
//! every *edge* before the next step starts. Whatever dies, another worker goes on from the
//! stored state.
//!
//! ```
//! use std::sync::Arc;
//! use slipway_tenants::{Executor, JobStore, NewJob, Outcome, SqliteStore, StateStore, StepError, Steps};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = std::env::temp_dir().join(format!("tenants-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! let store = SqliteStore::open(&folder.join("jobs.db"), "provisioning_jobs").await?;
//! store.create_table().await?;
//! let store: Arc<dyn JobStore> = Arc::new(store);
//!
//! let steps = Steps::new()
//!     .create_schema(|context| async move {
//!         // Durable before the object exists: cleanup removes what is recorded.
//!         context.making(format!("schema {}", context.job().tenant_id)).await?;
//!         // CREATE SCHEMA …
//!         Ok(())
//!     })
//!     .create_role(|_| async { Ok(()) })
//!     .migrate(|context| async move {
//!         context.set("version", "V7")?; // found again after a crash
//!         context.checkpoint().await?;
//!         Ok(())
//!     })
//!     .seed(|context| async move {
//!         match context.job().step_attempts {
//!             0 => Err(StepError::transient("the server restarts")), // tried again later
//!             _ => Ok(()),
//!         }
//!     })
//!     .cleanup(|context| async move {
//!         for object in context.made() { /* DROP …, the newest first */ context.removed(&object).await?; }
//!         Ok(())
//!     });
//!
//! let executor = Executor::builder().store(Arc::clone(&store)).steps(steps).build()?;
//! store.upsert(&NewJob::new("create-acme", "acme")).await?;
//! assert_eq!(executor.run("create-acme").await?, Outcome::Ready);
//! assert_eq!(store.get("create-acme").await?.metadata["version"], "V7");
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(())
//! # }
//! ```
//!
//! # What holds
//!
//! - **At least once per step, exactly once per edge.** A step may be called again after a
//!   crash, so it is idempotent. An edge is written under the claim of one worker; a worker
//!   whose lease ended writes nothing ([`Error::ClaimLost`]), and a commit whose answer got
//!   lost is found written.
//! - **A tenant is never provisioned twice.** The same id is the same job, and never another
//!   tenant's ([`Error::TenantMismatch`]). A second job is refused while one is unfinished
//!   ([`Error::TenantBusy`]), while the tenant is ready ([`Error::TenantReady`], until
//!   [`Control::Decommission`]), and while a failed one left something behind
//!   ([`Error::TenantLeaks`]). A restored tenant is ready again ([`Control::Recommission`]) only
//!   if no other job took its name meanwhile.
//! - **An error destroys nothing by chance.** A [`StepError::transient`] parks the job with
//!   backoff; any other error is tried once and leads to cleanup. Cleanup is given what this
//!   job recorded before it made it, has three tries, and leaves a leak record of the rest.
//!   A database that is away or full makes a job wait. An edge that it refuses for good, such
//!   as by its sink, parks the job until somebody resumes it.
//! - **Nothing is tried for ever.** A step in which worker after worker dies counts as failed
//!   ([`Options::lost_claims`]); a pause that does not answer is a no.
//! - **No secret is stored.** [`Metadata`] refuses what looks like one; errors are redacted and
//!   bounded.
//! - **The table stays open to others.** Its eight documented columns keep their names and types,
//!   all others have defaults: a row by plain SQL is due at once, and a plain transition
//!   ([`StateStore::transition`]) works on every job that no worker has. A table with the eight
//!   columns alone can be read, and [`StateStore::create_table`] upgrades it.
//!
//! # Where things are
//!
//! [`Executor`] and [`Options`]; [`Steps`], [`StepContext`] and [`Pause`]; the stores
//! [`PostgresStore`], [`SqliteStore`] and [`MemoryStore`], the traits [`StateStore`] and
//! [`JobStore`] for others, with the suite in `testing` (feature `testing`); [`EdgeSink`] for what
//! is written with an edge; [`retry_failed`] and [`Control`] for people.
#![expect(clippy::duplicate_mod, reason = "shared/ is compiled once for each database, on purpose")]

mod state;

mod change;
mod error;
mod job;
mod text;

mod cancel;
mod context;
mod drive;
mod executor;
mod options;
mod random;
mod steps;
mod writer;

mod failure;
mod memory;
mod postgres;
mod sink;
mod sqlite;
mod store;

pub mod targets;

#[cfg(feature = "testing")]
pub mod testing;

pub use cancel::Cancel;
pub use change::{Change, Due};
pub use context::StepContext;
pub use error::Error;
pub use executor::{Builder, ClaimedJobs, Ended, Executor, Outcome};
pub use job::{HistoryEntry, Job, Metadata, NewJob, left_behind};
pub use memory::{MemorySink, MemoryStore};
pub use options::Options;
pub use postgres::Store as PostgresStore;
pub use sink::EdgeSink;
pub use slipway_durable::Backoff;
pub use slipway_durable::claim::{Claim, Demand};
pub use sqlite::Store as SqliteStore;
pub use state::{State, Step, UnknownState, validate_transition};
pub use steps::{Callback, FailureClass, Pause, Permit, StepError, Steps};
pub use store::{
    ClaimFrom, Clock, Control, Edge, Filter, JobStore, Retried, StateStore, retry_failed,
};
pub use text::redacted;

/// The name of the table unless another is given.
pub const DEFAULT_TABLE: &str = "provisioning_jobs";
