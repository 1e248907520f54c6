//! The built-in steps on real targets.

mod both;
mod faults;
mod migrations;
mod postgres;
mod site;
