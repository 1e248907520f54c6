//! The loops. [`driver`] is the one way a loop runs: it waits for a wake or
//! the next poll, claims no more than it has room for, isolates what fails
//! and keeps a status. Each loop is one file: [`resources`] takes provisioned
//! resources of one partition one step, [`relay`] gives events their positions,
//! [`subscribers`] brings them to the sinks of this process, [`retention`] lets
//! go of what was kept long enough, [`orphans`] looks for what no row knows,
//! [`heartbeat`] says that this replica lives and compares the database with the
//! world. [`clock_watch`] keeps them going when the database's clock goes back,
//! [`watches`] wakes what an engine saw change.

mod claims;
pub mod clock_watch;
mod damper;
pub mod driver;
pub mod heartbeat;
pub mod orphans;
pub mod placement;
pub mod relay;
pub mod resources;
pub mod retention;
pub mod status;
pub mod subscribers;
pub mod watches;

pub use clock_watch::watch_clock;
pub use driver::{Pacing, Shutdown, drive};
pub use status::Status;
pub use watches::watch_engine;
