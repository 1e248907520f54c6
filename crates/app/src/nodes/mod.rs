//! Nodes: enrolment, what an agent reports, bootstrap tokens, and a person's
//! force.

pub mod port;

pub mod enrol;
pub mod force;
pub mod machine;
pub mod node;
pub mod read;
pub mod tokens;
