//! The agents of Fleet: one core over a cluster or over a folder of manifests.
//!
//! An agent polls the control plane for what it should have, decides by a pure function
//! (`decide`) and carries it out. *Expected flow* for a stack: write the intent to the
//! inventory → apply or remove → write the outcome → report it. *Guarantees:* a process
//! that ends anywhere in between converges when it is started again; nothing is removed
//! that does not carry this installation, this agent and this stack.
//!
//! Reading order: `decide` (what to do), `inventory` (what is held), `pass` (one
//! round), `act` (how it is carried out), `run` (the loop), `backend` with `directory`
//! and `cluster`.

mod decide;
mod inventory;
mod manifest;

mod act;
mod observe;
mod pass;
mod reports;
mod retries;
mod run;

mod backend;
mod cluster;
mod directory;

mod client;
mod error;

pub use client::Key;
pub use error::Error;
pub use run::{Options, Target, run, run_until};
pub use slipway_cluster::Access;
