//! The executor and its stores on real databases.

mod faults;
mod site;
mod stores;
mod tables;
mod targets;
