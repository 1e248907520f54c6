//! The placement loop on simulated clusters: one that does not answer delays no
//! other, and a fault at every read and every action leaves nothing behind.

mod cluster;
mod defined;
mod definitions;
mod faults;
mod furnish;
mod isolation;
mod lease;
