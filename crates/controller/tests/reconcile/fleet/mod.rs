//! The fleet on simulated clusters: one that does not answer holds up no other,
//! and a fault at every question and every action leaves nothing behind.

mod cluster;
mod defined;
mod delivery;
mod faults;
mod furnish;
mod isolation;
