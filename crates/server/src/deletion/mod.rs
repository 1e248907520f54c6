//! Deletion: the record of each removal, and leaks.

mod brakes;
mod deletions;
mod leaks;
mod plans;
mod protections;
mod purges;
mod report;
mod restore;
mod rows;
mod settings;

pub(crate) use deletions::answer;
pub(crate) use rows::rows;
