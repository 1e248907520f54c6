//! The broker: declare, read, relabel, retry and delete resources, and one tick
//! of the loop that converges them.

pub mod port;

pub mod declare;
pub mod delete;
pub mod read;
pub mod relabel;
pub mod retry;

pub mod converge;
