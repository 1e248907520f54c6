//! The kind of agent that the options select.

use super::injected::Injected;
use super::{in_process, process};
use crate::context::Context;
use crate::journal::{JournalEntry, Name};
use crate::options::AgentMode;

/// A running agent. Drop ends it without a good-bye, like a machine that loses power.
pub(crate) enum Agent {
    InProcess(in_process::Agent),
    Process(Box<process::Agent>),
}

impl Agent {
    /// `None` if the options want none, or if it cannot be started, which is logged.
    pub(crate) async fn boot(context: &Context, name: &Name, injected: Injected) -> Option<Self> {
        let agent = match context.options.agent {
            AgentMode::None => return None,
            AgentMode::InProcess => {
                Self::InProcess(in_process::Agent::boot(context, name, injected))
            }
            AgentMode::Process => match process::Agent::boot(context, name, injected).await {
                Ok(agent) => Self::Process(Box::new(agent)),
                Err(error) => {
                    let composite = &name.composite;
                    tracing::error!(composite, error = format!("{error:#}"), "no agent");
                    return None;
                }
            },
        };
        context.journal.write(name, JournalEntry::Booted, None, None);
        Some(agent)
    }

    /// Passes on the currently injected configuration.
    pub(crate) async fn update(&mut self, injected: Injected) {
        match self {
            Self::InProcess(agent) => agent.update(injected),
            Self::Process(agent) => agent.update(injected).await,
        }
    }

    /// Whether its work does not finish for now. A process has its own work
    /// (`busy_seconds`) and ignores this.
    pub(crate) fn keep_busy(&self, busy: bool) {
        if let Self::InProcess(agent) = self {
            agent.keep_busy(busy);
        }
    }

    /// Ends it; if it `leaves`, with a good-bye to the control plane.
    pub(crate) async fn end(self, leaves: bool) {
        match self {
            Self::InProcess(agent) => agent.end(leaves).await,
            Self::Process(agent) => agent.end().await,
        }
    }
}
