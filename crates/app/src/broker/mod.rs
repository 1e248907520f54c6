//! The broker: declare, read, relabel, retry, delete and abandon resources, and one tick
//! of the loop that converges them.

pub mod port;

pub mod abandon;
pub mod declare;
pub mod delete;
pub mod orphan;
pub mod read;
pub mod relabel;
pub mod retry;

pub mod converge;
