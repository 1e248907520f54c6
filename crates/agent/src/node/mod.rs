//! The node agent: one process for one node directory.
//!
//! Everything that an agent keeps is in its directory. The engine that created it
//! wrote `user-data`; the agent writes every other file listed here:
//!
//! | file | what it is |
//! |---|---|
//! | `user-data` | the cloud-config document, only read |
//! | `rootfs/` | the files of that document, as cloud-init would have written them |
//! | `agent.lock` | record lock, kept until the agent ends; *the* identity of the running agent |
//! | `agent.json` | pid, start time and boot id: evidence for people |
//! | `status.json` | what the agent is doing, for `observe` and `explain` |
//! | `state/key.pk8` | key pair, on disk before the first register |
//! | `state/identity.json` | node id and node key, on disk before the token is removed |
//! | `state/leaving.json` | the drain that the work is finished for, before it is acknowledged |
//! | `state/drained.json` | the drain that was acknowledged |
//!
//! The agent never starts a process, never listens on a port, and writes nowhere
//! else. No secret reaches a log line, an error, a `Debug` output or `status.json`.

mod run;

mod enrol;
mod serve;

mod client;
mod contact;

mod config;
mod directory;
mod identity;
mod machine;
mod status;
mod user_data;

mod error;

pub use error::Error;
pub use run::{Ending, NodeOptions, run, run_until};
