//! The loops. [`driver`] is the one way a loop runs: it waits for a wake or
//! the next poll, claims no more than it has room for, isolates what fails
//! and keeps a status. Each loop is one file: [`resources`] takes provisioned
//! resources of one lane one step, [`relay`] gives events their positions,
//! [`orphans`] looks for what no row knows. [`clock_watch`] keeps them going
//! when the database's clock goes back.

pub mod clock_watch;
pub mod driver;
mod keeper;
pub mod orphans;
pub mod relay;
pub mod resources;
pub mod status;

pub use clock_watch::watch_clock;
pub use driver::{Pacing, Shutdown, drive};
pub use status::Status;
