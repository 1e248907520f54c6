//! `slipway doctor`: looks at everything that a control plane of this machine
//! stands on, changes nothing, and says of each thing how it is and what to do
//! about it. Works without a server, and on what no server would start with.

mod clock;
mod database;
mod disk;
mod finding;
mod run;
mod server;
mod settings;

pub(crate) use run::run;
