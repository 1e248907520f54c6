//! The mode of the installation, explanations, and the server's probe for
//! `slipway doctor`.

pub(crate) mod control;
pub(crate) mod explain;
mod probe;

pub use probe::{KeyProbe, ServerProbe, probe_server};
