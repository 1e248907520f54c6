//! `slipway target …`: stacks that somebody named for an agent.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde::Serialize;
use slipway_wire::fleet::{Agent, AgentTarget, NewAgentTarget, Stack};

use super::find::{Within, find, name_of, names};
use super::tags::unless_there;
use crate::broker::target::Gone;
use crate::complete;
use crate::error::Error;
use crate::kind::{Cells, Kind as _, Row};
use crate::session::Session;

#[derive(Debug, Clone, Subcommand)]
pub enum TargetCommand {
    /// Bring a stack to an agent, which must be registered with the stack's generator
    Add(TargetOf),
    /// End that: the agent is told to remove the stack, unless a label or an annotation brings it
    Remove(TargetOf),
    /// List the stacks that were named for an agent
    List {
        /// The agent, by name, NAME@CLUSTER or id
        #[arg(add = complete::names("agent"))]
        agent: String,
        #[command(flatten)]
        within: Within,
    },
}

#[derive(Debug, Clone, Args)]
pub struct TargetOf {
    /// The agent, by name, NAME@CLUSTER or id
    #[arg(add = complete::names("agent"))]
    pub agent: String,
    /// The stack, by name or id
    #[arg(add = complete::names("stack"))]
    pub stack: String,
    #[command(flatten)]
    pub within: Within,
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway target add edge web",
    "slipway target remove edge@berlin web",
    "slipway target list edge",
];

/// A target by the names of both.
#[derive(Debug, Serialize)]
struct TargetRow {
    stack: String,
    agent: String,
    stack_id: String,
}

impl Row for TargetRow {
    fn cells(&self) -> Cells {
        vec![("STACK", self.stack.clone()), ("AGENT", self.agent.clone())]
    }

    fn wide(&self) -> Cells {
        vec![("STACK ID", self.stack_id.clone())]
    }
}

pub(crate) async fn run(session: &mut Session<'_>, command: TargetCommand) -> Result<(), Error> {
    match command {
        TargetCommand::Add(of) => {
            let agent: Agent = find(&session.client, &of.agent, &of.within, Gone::Refused).await?;
            let stack: Stack = find(&session.client, &of.stack, &of.within, Gone::Refused).await?;
            let path = [Agent::PATH, &agent.id, "targets"];
            let body = NewAgentTarget { agent_id: agent.id.clone(), stack_id: stack.id };
            let made = session.client.post::<AgentTarget>(&path, &body).await;
            unless_there(session, made, "the target")
        }
        TargetCommand::Remove(of) => {
            let agent: Agent = find(&session.client, &of.agent, &of.within, Gone::Refused).await?;
            // Also of a deleted stack: the target would come back with it.
            let stack: Stack = find(&session.client, &of.stack, &of.within, Gone::Allowed).await?;
            let path = [Agent::PATH, &agent.id, "targets", &stack.id];
            session.client.silent(Method::DELETE, &path).await
        }
        TargetCommand::List { agent, within } => {
            let agent: Agent = find(&session.client, &agent, &within, Gone::Refused).await?;
            let path = [Agent::PATH, &agent.id, "targets"];
            let targets: Vec<AgentTarget> = session.client.get(&path).await?;
            let names = names(&session.client, Stack::PATH).await;
            let row = |target: AgentTarget| TargetRow {
                stack: name_of(&names, &target.stack_id),
                agent: format!("{}@{}", agent.name, agent.cluster_name),
                stack_id: target.stack_id,
            };
            let rows: Vec<_> = targets.into_iter().map(row).collect();
            session.show_all(&rows, "targets");
            Ok(())
        }
    }
}
