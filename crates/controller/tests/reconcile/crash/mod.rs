//! The crash matrix: a fault at every point at which one can strike, generated
//! and not listed.
//!
//! There are two choke points, the commit and the outside action. Interceptors
//! of the [`store`] and of the [`substrate`] see every passage through them, name it
//! by what is done there ([`names`]) and ask the [`fate`] of this life of the
//! control plane whether it ends here. A [`plane`] lives through a scenario
//! ([`scenarios`]) in as many lives as it takes, on one database and one
//! substrate. The [`registry`] holds every point that was ever passed and the
//! way to it; [`matrix`] runs until each was struck; [`checks`] says after
//! each run what must be true, partly by the [`journal`] that was kept.
//!
//! [`delivery`] does the same for the way of an event from its commit to a
//! subscriber.

mod checks;
mod fate;
mod journal;
mod matrix;
mod names;
mod plane;
mod publishing;
mod raw;
mod registry;
mod scenarios;
mod store;
mod substrate;
