//! `slipway demo`: the whole story against a real control plane, a process of
//! this same executable in a directory of its own. Three nodes are declared
//! and become Ready; one is deleted while it works, one is frozen and has to
//! be forced, one leaves without trouble. Then everything that was announced,
//! registered and recorded is checked, fact by fact.
//!
//! With `--substrate crossplane` the three come and go on a cluster instead,
//! where something has to play Crossplane; nobody is frozen there.
//!
//! It owns what it starts: the control plane, by its handle, and the agents,
//! which it finds under its own substrate root and nowhere else. Whether it
//! comes to its end, fails, or is told to stop (SIGINT, SIGTERM, SIGHUP), it
//! ends them all and removes its directory. Where it cannot (SIGKILL), they end
//! without it: the control plane in order, because its standard input is a pipe
//! that ends with the demonstration, and the agents once they have been without
//! their server for the orphan time (10 s). The directory stays then, and so
//! does one process if the kill falls into the two seconds or so for which an
//! agent is frozen: who is stopped (SIGSTOP) cannot end by himself.

mod arguments;
mod run;

mod cluster;
mod story;
mod watch;

mod agents;
mod plane;

mod facts;
mod records;
mod screen;

pub(crate) use arguments::{DemoArguments, EXAMPLES};
pub(crate) use run::run;
