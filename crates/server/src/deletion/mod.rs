//! Deletion: the record of each removal, and leaks.

mod deletions;
mod leaks;
mod protections;
mod purges;
mod rows;
mod settings;

pub(crate) use deletions::answer;
pub(crate) use rows::rows;
