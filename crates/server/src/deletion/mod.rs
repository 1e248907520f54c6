//! Deletion: the record of each removal, and leaks.

mod deletions;
mod leaks;
mod protections;
mod report;
mod rows;

pub(crate) use deletions::answer;
pub(crate) use rows::rows;
