//! Access: who calls, what the caller may do, API keys, idempotency keys, and
//! the audit.

pub mod port;

pub mod authenticate;
pub mod authorise;
mod operation;
pub(crate) mod reach;
pub mod reference;

pub mod audit;
pub mod idempotency;
pub mod keys;
