//! The Kubernetes API of the tests: providing its programs, and running one
//! for people (`cargo xtask kube up`).
//!
//! The testkit starts it and decides what is in it.

mod provide;
mod up;

pub use provide::{go_installed, nothing_to_build, provide};
pub use up::{Options, USAGE, up};
