//! The crash matrix: a fault at every possible point. The points are generated,
//! not listed.
//!
//! There are two choke points, the commit and the outside action. Interceptors
//! of the [`store`] and of the [`substrate`] observe every passage through
//! them, name it by what it does ([`names`]) and ask the [`fate`] of this life
//! of the control plane whether it ends here. A [`plane`] performs a scenario
//! ([`scenarios`]) in as many lives as it takes, on one database and one
//! substrate. The [`registry`] has every point that was ever passed and the
//! faults that lead to it; [`matrix`] runs until each was struck. After each
//! run [`checks`] verifies what must hold, partly by the [`journal`]; [`order`] verifies at the
//! substrate in which order servers of a workspace come and go.
//!
//! [`publishing`] does the same for an event from its commit to a subscriber.

mod applying;
mod checks;
mod deleting;
mod delivering;
mod fate;
mod journal;
mod matrix;
mod names;
mod order;
mod plane;
mod publishing;
mod raw;
mod registry;
mod rolling;
mod scenarios;
mod store;
mod substrate;
mod surging;
mod workspaces;
