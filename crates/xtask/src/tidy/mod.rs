//! The rules of the tree that no compiler checks.
//!
//! Each check is a pure function of a [`Tree`] that returns what it found
//! wrong, so that its tests show on a small made-up tree that it can fail.
//! One more test runs all of them on the real tree.
//!
//! Must not: know a file by name to exempt it. A rule with exceptions says in
//! its own words what they have in common.

mod documents;
mod edges;
mod invariants;
mod report;
mod sources;
mod tree;
mod words;

pub use report::{Findings, check, check_and_report, run};
pub use tree::Tree;
