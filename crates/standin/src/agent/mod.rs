//! The node agent of a composite's machine, booted from the injected
//! configuration.

mod choice;
mod in_process;
mod injected;
mod process;

pub(crate) use choice::Agent;
pub(crate) use injected::Injected;
