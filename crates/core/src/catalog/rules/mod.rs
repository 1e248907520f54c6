//! Decisions about the catalog, one file per noun: pure functions from a locked
//! snapshot to a commit or a refusal.

pub(crate) mod common;

pub mod blueprint;
pub mod cloud;
pub mod credential;
pub mod credential_assignment;
pub mod label;
pub mod project;

pub use common::Removal;
