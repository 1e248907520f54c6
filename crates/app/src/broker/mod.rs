//! The broker: declare, read, update, replace, retry, delete and abandon resources, and one
//! tick of the loop that converges them.

pub mod port;

pub mod abandon;
pub mod declare;
pub mod delete;
pub mod logs;
pub mod orphan;
pub mod read;
pub mod replace;
pub mod retry;
pub mod update;

pub mod converge;
