//! The protocol of Fleet, the one that existing agents and clients speak: plain arrays, nulls that are
//! not left out, and unknown fields ignored. Work orders, diagnostics and webhooks are not part of it.

mod entities;
mod prune;
mod requests;
mod status;

pub use entities::*;
pub use prune::*;
pub use requests::*;
pub use status::*;

#[cfg(test)]
mod tests;
