//! The resource loop against a real database and a simulated substrate: every
//! walk through the phases that the state machine allows, on both databases.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod simulated;
mod walks;
mod world;
