//! **A stand-in for tests. It is not Hetzner Cloud.** It serves the part of the API that
//! `slipway-substrate` uses, on a loopback address, and follows the documented behaviour:
//! actions that take time, statuses, label selectors, pages, unique names, protection, locks,
//! the rate limit and its headers, and a lack of capacity where a test orders it. It checks
//! each request and each of its own answers against schemas that we wrote from the provider's
//! documentation; what does not fit is a violation, and a test asserts that there is none.
//!
//! A server that starts can boot a process on its user data ([`Boot`]), so that enrolment by
//! cloud-init is really done.

mod boot;
mod calls;
mod http;
mod provider;
mod rate;
mod script;
mod selector;
mod shapes;
mod world;

pub use boot::Boot;
pub use provider::{Provider, ProviderOptions, ServerView};
pub use script::Fault;
