//! `slipway node …`: enrolled node agents.

use clap::Subcommand;
use slipway_wire::nodes::Node;

use crate::arguments::{IdArguments, PageArguments};
use crate::error::Error;
use crate::kind::{Cells, Detail, Facts, Kind, Row};
use crate::output::{optional_time, or_dash, time, time_or_dash, yes_no};
use crate::session::Session;

#[derive(Debug, Clone, Subcommand)]
pub enum NodeCommand {
    /// List nodes, also those that are deregistered
    List(PageArguments),
    /// Show one node
    Get(IdArguments),
}

pub(crate) const EXAMPLES: &[&str] =
    &["slipway node list", "slipway node get 0192f0c1-2b3c-7d4e-8f50-123456789abc"];

impl Kind for Node {
    const PATH: &'static str = "nodes";
}

impl Row for Node {
    fn cells(&self) -> Cells {
        let state = match &self.deregistered_how {
            None => "registered".to_owned(),
            Some(how) => format!("gone ({how})"),
        };
        vec![
            ("HOSTNAME", self.hostname.clone()),
            ("RESOURCE", or_dash(self.resource.as_deref())),
            ("PROJECT", or_dash(self.project.as_deref())),
            ("STATE", state),
            ("REACHABILITY", self.reachability.clone()),
            ("MESH IP", or_dash(self.mesh_ip.as_deref())),
            ("VERSION", or_dash(self.version.as_deref())),
            ("LAST HEARTBEAT", time_or_dash(self.last_heartbeat_at.as_ref())),
            ("ID", self.id.clone()),
        ]
    }
}

impl Detail for Node {
    fn facts(&self) -> Facts {
        vec![
            ("id", Some(self.id.clone())),
            ("hostname", Some(self.hostname.clone())),
            ("resource", Some(self.resource.as_ref().unwrap_or(&self.resource_id).clone())),
            ("project", Some(self.project.as_ref().unwrap_or(&self.project_id).clone())),
            ("registered", Some(yes_no(self.registered))),
            ("reachability", Some(self.reachability.clone())),
            ("mesh ip", self.mesh_ip.clone()),
            ("version", self.version.clone()),
            ("checksum", self.checksum.clone()),
            ("status", self.status.clone()),
            ("capabilities", Some(self.capabilities.join(", "))),
            ("enrolled", Some(time(&self.registered_at))),
            ("last heartbeat", optional_time(self.last_heartbeat_at.as_ref())),
            ("drain requested", optional_time(self.drain_requested_at.as_ref())),
            ("deregistered", optional_time(self.deregistered_at.as_ref())),
            ("how", self.deregistered_how.clone()),
            ("by", self.deregistered_by.clone()),
            ("reason", self.deregistered_reason.clone()),
        ]
    }
}

/// One line about a node, for texts about something else.
pub(crate) fn in_short(node: &Node) -> String {
    let state = match &node.deregistered_how {
        None => format!("registered, {}", node.reachability),
        Some(how) => format!("deregistered ({how})"),
    };
    format!("{} {} {state}", node.hostname, node.id)
}

pub(crate) async fn run(session: &mut Session<'_>, command: NodeCommand) -> Result<(), Error> {
    match command {
        NodeCommand::List(page) => session.list::<Node>(page).await,
        NodeCommand::Get(arguments) => session.get::<Node>(&arguments.id).await,
    }
}
