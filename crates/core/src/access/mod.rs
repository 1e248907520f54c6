//! Access: roles and reach, API keys, rate limits, idempotency keys, the audit.

pub mod role;

pub mod api_key;
pub mod api_key_rules;
pub mod key_text;

pub mod audit;
pub mod holder;
pub mod idempotency;
pub mod rate;
pub mod write;

pub use write::AccessWrite;
