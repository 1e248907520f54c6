//! The chores of a contributor, behind `cargo xtask`.
//!
//! Owns: what a complete test run is (`test`), what is installed for it
//! (`debian`, `kube`, `deploy`), and the rules of the tree that no compiler
//! checks (`tidy`). It builds and runs the programs of the crates `soak` and
//! `bench`.
//!
//! Must not: be needed to build, test or run anything; `cargo test` alone
//! works.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool talks to its user"
)]

pub mod bench;
mod cargo;
pub mod command_line;
pub mod debian;
pub mod deploy;
pub mod fuzz;
pub mod generate;
pub mod kube;
pub mod soak;
pub mod stages;
pub mod test;
mod test_binaries;
pub mod tidy;
