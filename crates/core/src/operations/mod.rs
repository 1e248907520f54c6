//! Operations: the mode of the installation (acting, frozen, observing only),
//! and the explanation of one subject, across all rooms.

pub mod control;

pub mod explain;
pub mod explanation;
pub mod reference;
