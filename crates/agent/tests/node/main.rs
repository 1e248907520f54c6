//! The node agent against a stand-in server: in this process where that is
//! enough, as a process of its own where the lock and signals matter.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test, with the place named")]

mod enrol;
mod life;
mod process;
mod stand_in;
