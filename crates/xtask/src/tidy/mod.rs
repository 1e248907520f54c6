//! The rules of the tree that no compiler checks.
//!
//! Each check is a pure function of a [`Tree`] that returns what it found
//! wrong. Its tests show on a small made-up tree that it can fail, and one more
//! test runs all checks on the real tree.
//!
//! Must not: know a file by name to exempt it, unless a decision in `docs/adr` does. A
//! rule with exceptions states what they have in common.

mod documents;
mod edges;
mod invariants;
mod report;
mod sources;
mod tables;
mod tree;
mod words;

pub use report::{Findings, check, check_and_report, run};
pub use tree::Tree;
