//! `slipway demo`: the whole lifecycle against a real control plane, a process
//! of this same executable in a directory of its own. Three nodes are declared
//! and become Ready; one is deleted while it works, one is frozen and has to be
//! forced, one leaves without trouble. Then the demo checks every event, node
//! and record, fact by fact.
//!
//! With `--substrate crossplane` the three come and go on a cluster instead,
//! where something has to play Crossplane; no node is frozen there.
//!
//! The demo owns what it starts: the control plane, by its handle, and the
//! agents, which it finds under its own substrate root and nowhere else.
//! Whether it finishes, fails, or is stopped (SIGINT, SIGTERM, SIGHUP), it ends
//! them all and removes its directory. After a SIGKILL they end by themselves:
//! the control plane shuts down because its standard input is a pipe that
//! closes with the demo, and the agents end after the orphan time (10 s)
//! without their server. The directory then remains, and so does one process if
//! the kill falls into the two seconds or so for which an agent is frozen: a
//! stopped process (SIGSTOP) cannot end by itself.

//!
//! `stage` and `screen` are what every demo has; those of Fleet, of tenants and of
//! workspaces use them, too.

mod arguments;
mod run;

mod cluster;
mod story;
mod watch;

mod agents;
mod plane;
mod stage;

mod facts;
mod records;
mod screen;

pub(crate) use arguments::{DemoArguments, EXAMPLES};
pub(crate) use plane::{PROVIDER_TOKEN, own_program};
pub(crate) use run::run;
pub(crate) use screen::{Fact, Screen, expect};
pub(crate) use stage::{Setting, Stage};
