//! Documents as people read them: pure functions from wire types to text.
//! Tables fit the width of a terminal; without one no line is broken, so that
//! each row stays one line for the tool behind the pipe. No colours here.

mod access;
mod catalog;
mod control;
mod details;
mod explanation;
mod leaks;
mod lists;
mod table;

pub(crate) use access::{audit, issued_token, key, key_with_text, keys, token, tokens};
pub(crate) use catalog::*;
pub(crate) use control::{control, plan};
pub(crate) use details::{deletion, node, resource};
pub(crate) use explanation::explanation;
pub(crate) use leaks::{leak, leaks, looks, object as leak_object};
pub(crate) use lists::{deletions, event_line, events, nodes, resources, subscriptions};

#[cfg(test)]
mod tests;
