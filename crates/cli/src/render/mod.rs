//! Documents as people read them: pure functions from wire types to text.
//! Tables fit the width of a terminal; without one no line is broken, so that
//! each row stays one line for the tool behind the pipe. Colours come last, and
//! only on a terminal.

mod access;
mod catalog;
mod control;
mod details;
mod explanation;
mod leaks;
mod lists;
mod paint;
mod table;

pub use table::{facts, rows};

pub(crate) use access::{audit, issued_token, key, key_with_text, keys, token, tokens};
pub(crate) use catalog::*;
pub(crate) use control::{control, plan};
pub(crate) use details::{deletion, node, resource, resource_detail};
pub(crate) use explanation::explanation;
pub(crate) use leaks::{leak, leaks, looks, object as leak_object};
pub(crate) use lists::{deletions, event_line, events, nodes, resources, subscriptions};
pub(crate) use paint::paint;

#[cfg(test)]
mod tests;
