//! Engine `local` with real processes. The agent is a stand-in: this test binary
//! itself, which does what the engine relies on and nothing else.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test, with the place named")]

mod apply;
mod delete;
mod inventory;
mod observe;
mod support;
