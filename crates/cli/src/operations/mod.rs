//! The mode of the installation, explanations, and the server as `slipway
//! doctor` finds it.

pub(crate) mod control;
pub(crate) mod explain;
mod probe;

pub use probe::{KeyProbe, ServerProbe, probe_server};
