//! `slipway doctor`: checks everything that a control plane of this machine
//! depends on, and reports each finding with a remedy. It changes nothing, and
//! works without a server and with settings that no server would start with.

mod clock;
mod clusters;
mod database;
mod disk;
mod finding;
mod run;
mod server;
mod settings;
mod tls;

pub(crate) use run::run;
