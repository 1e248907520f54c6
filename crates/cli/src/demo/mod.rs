//! `slipway demo`: the whole story against a real control plane, a process of
//! this same executable in a directory of its own. Three nodes are declared
//! and become Ready; one is deleted while it works, one is frozen and has to
//! be forced, one leaves without trouble. Then everything that was announced,
//! registered and recorded is checked, fact by fact.
//!
//! It owns what it starts: the control plane, by its handle, and the agents,
//! which it finds under its own substrate root and nowhere else. However it
//! ends, none of them is left.

mod run;
mod story;
mod watch;

mod agents;
mod plane;

mod facts;
mod screen;

pub(crate) use run::run;
