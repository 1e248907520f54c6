//! The agents of Fleet with a stand-in for the control plane, over folders.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test, with the place named")]

mod core;
mod directory;
mod outage;
mod process;
mod stand_in;
