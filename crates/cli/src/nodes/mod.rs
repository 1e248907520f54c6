//! Enrolled node agents, and the bootstrap tokens that they enrol with.

pub(crate) mod enrolment;
pub(crate) mod node;
pub(crate) mod token;
