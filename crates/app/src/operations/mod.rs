//! Operations: the mode of the installation, counts and loops, and the
//! explanation of one subject.

pub mod port;

pub mod control;
pub mod explain;
pub mod status;
