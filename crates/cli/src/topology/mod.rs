//! Workspaces, their groups and their servers.

pub(crate) mod demo;
pub(crate) mod server;
mod tree;
pub(crate) mod wait;
pub(crate) mod workspace;
