//! The executor and its stores on real databases.

mod alone;
mod crash;
mod faults;
mod outages;
mod plans;
mod site;
mod stores;
mod tables;
mod targets;
