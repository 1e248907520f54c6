//! Results as text: tables for people, JSON, YAML, names and chosen fields for programs. Pure
//! functions. Tables fit the width of a terminal, one line a row; without one nothing is
//! shortened or left out. Colours come last, and only on a terminal.

mod document;
mod fit;
mod jsonpath;
mod layout;
mod name;
mod paint;
mod present;
mod table;
mod value;
mod wrap;

pub use jsonpath::Template;
pub use present::{agree, fail, present, say};
pub use table::{facts, rows};
pub use wrap::wrap;

pub(crate) use document::{render, to_yaml};
pub(crate) use layout::{Layout, SHORT_ID, list, span};
pub(crate) use name::{name_of, singular};
pub(crate) use paint::{BOLD, GREEN, RED, coloured, paint};
pub(crate) use table::{dash_if_empty, name_and_id, optional_time, or_dash, pairs, time, yes_no};
pub(crate) use value::{field, lines_of, observed, plain};

#[cfg(test)]
mod tests;
