//! Workspaces and their servers.

mod form;
mod rows;
mod servers;
mod workspaces;

pub(crate) use rows::{form_rows, rows};
