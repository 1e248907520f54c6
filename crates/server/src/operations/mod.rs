//! Operations: the mode of the installation, the loops of this process, and
//! the installation at a glance.

mod control;
mod loops;
mod rows;
mod status;

pub(crate) use rows::rows;
