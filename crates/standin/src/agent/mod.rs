//! The node agent of a composite's machine, from what was injected.

mod choice;
mod in_process;
mod injected;
mod process;

pub(crate) use choice::Agent;
pub(crate) use injected::Injected;
