//! Results as text: tables for people, JSON and YAML for programs. Pure
//! functions. Tables fit the width of a terminal; without one no line is
//! wrapped, so that each row stays one line for tools in a pipe. Colours come
//! last, and only on a terminal.

mod document;
mod paint;
mod present;
mod table;

pub use present::{agree, fail, present, say};
pub use table::{facts, rows};

pub(crate) use document::{render, to_yaml};
pub(crate) use paint::{BOLD, GREEN, RED, coloured, paint};
pub(crate) use table::{dash_if_empty, optional_time, or_dash, pairs, time, time_or_dash, yes_no};

#[cfg(test)]
mod tests;
