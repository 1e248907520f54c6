//! Decisions about the catalog, one file per noun: pure functions from a snapshot
//! to a commit or a refusal. The snapshot has what a decision may know, loaded
//! under lock in the transaction that will write it; a part is `None` if there is
//! no live row.

pub(crate) mod common;

pub mod blueprint;
pub mod cloud;
pub mod credential;
pub mod credential_assignment;
pub mod label;
pub mod project;

pub use common::Removal;
