//! Deletion: the records of what was asked to go, and leaks.

mod deletions;
mod leaks;
mod rows;

pub(crate) use deletions::answer;
pub(crate) use rows::rows;
