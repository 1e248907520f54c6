//! The loops. [`driver`] runs each of them: it waits for a wake or the next
//! poll, claims no more than it has free slots for, isolates failures and keeps
//! a status. Each loop is one file: [`resources`] advances the provisioned
//! resources of one partition, [`placement`] maintains what projects share on
//! management clusters, [`relay`] numbers events, [`subscribers`] delivers them
//! to the sinks of this process, [`retention`] removes what was kept long
//! enough, [`tenants`] makes tenants, [`workspaces`] keeps the servers of workspaces at their number, [`deletions`] begins deletions and ends those of projects, [`orphans`] scans
//! for leaks, [`heartbeat`] shows that this replica
//! is alive and recognises a restored database; [`readiness`] judges whether they
//! keep up. Loops that work at an interval
//! share `periodic`. [`clock_watch`] keeps the loops going when the database's
//! clock goes back, [`watches`] wakes attempts that an engine saw change.

mod claims;
pub mod clock_watch;
mod damper;
pub mod deletions;
pub mod driver;
pub mod heartbeat;
pub mod orphans;
mod periodic;
pub mod placement;
pub mod readiness;
pub mod relay;
pub mod resources;
pub mod retention;
pub mod rollouts;
pub mod status;
pub mod subscribers;
pub mod tenants;
pub mod watches;
pub mod workspaces;

pub use clock_watch::watch_clock;
pub use driver::{Pacing, Shutdown, drive};
pub use status::Status;
pub use watches::watch_engine;
