//! The Kubernetes API of the tests: providing its programs, and running one
//! for people (`cargo xtask kube up`).
//!
//! How it is started, and what is in it, is the business of the testkit.

mod provide;
mod up;

pub use provide::{go_installed, nothing_to_build, provide};
pub use up::{Options, USAGE, up};
