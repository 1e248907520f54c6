//! The engine of Hetzner Cloud against a stand-in of the provider that checks every request and
//! every answer.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test, with the place named")]

mod faults;
mod foreign;
mod life;
mod limits;
mod support;
