//! Operations: the mode of the installation, and the loops of this process.

mod control;
mod loops;
mod rows;

pub(crate) use rows::rows;
