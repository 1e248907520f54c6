//! The built-in steps on real targets.

mod both;
mod export;
mod faults;
mod migrations;
mod postgres;
mod site;
