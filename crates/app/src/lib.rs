//! The application: ports to the outside world, and the use-cases, one file
//! each. Use-cases check authorisation. This crate knows no database, no HTTP
//! and no Kubernetes; the adapters do.

pub mod authorise;
pub mod context;
pub mod error;
mod operation;
pub mod permits;
pub mod ports;
pub mod seed;
pub mod usecases;

#[cfg(feature = "testing")]
pub mod testing;

pub use context::Context;
pub use error::Error;
