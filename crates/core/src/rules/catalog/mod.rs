//! Decisions about the catalog, one file per kind. Like all rules, each is a
//! pure function from a locked snapshot to a commit or a refusal.

mod common;

pub mod blueprint;
pub mod cloud;
pub mod cluster;
pub mod cluster_assignment;
pub mod cluster_choice;
pub mod credential;
pub mod credential_assignment;
pub mod label;
pub mod project;

pub use common::Removal;
