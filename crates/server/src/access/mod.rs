//! Access: API keys and the audit.

mod audit;
mod keys;
mod rows;

pub(crate) use rows::rows;
