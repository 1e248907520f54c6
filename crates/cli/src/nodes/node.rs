//! `slipway node …`: enrolled node agents.

use clap::Subcommand;
use slipway_wire::nodes::Node;

use crate::arguments::PageArguments;
use crate::client::Listing;
use crate::error::Error;
use crate::kind::{Cells, Detail, Facts, Kind, Row};
use crate::output::{name_and_id, optional_time, or_dash, span, time, yes_no};
use crate::session::Session;

#[derive(Debug, Clone, Subcommand)]
pub enum NodeCommand {
    /// List nodes
    List {
        /// Also those that are gone
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        page: PageArguments,
    },
    /// Show one node
    Get {
        /// Its host name, the handle of its resource, its id or the beginning of it
        #[arg(value_name = "NODE")]
        node: String,
    },
}

pub(crate) const EXAMPLES: &[&str] =
    &["slipway node list", "slipway node list --all -o wide", "slipway node get web-1"];

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
            ("LAST HEARTBEAT", or_dash(self.last_heartbeat_at.as_deref())),
            ("ID", self.id.clone()),
        ]
    }

    fn wide(&self) -> Cells {
        vec![
            ("MESH IP", or_dash(self.mesh_ip.as_deref())),
            ("VERSION", or_dash(self.version.as_deref())),
            ("ENROLLED", self.registered_at.clone()),
        ]
    }
}

impl Detail for Node {
    const NOUN: &'static str = "node";

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
        None => format!("registered, {}{}", node.reachability, silence(Some(node))),
        Some(how) => format!("deregistered ({how})"),
    };
    format!("{} {state}", name_and_id(Some(&node.hostname), &node.id))
}

/// ` (silent 3m)` if the agent of a resource should report and does not.
pub(crate) fn silence(node: Option<&Node>) -> String {
    let silent = node.and_then(|node| node.silent_seconds);
    silent.map(|seconds| format!(" (silent {})", span(seconds))).unwrap_or_default()
}

pub(crate) async fn run(session: &mut Session<'_>, command: NodeCommand) -> Result<(), Error> {
    match command {
        NodeCommand::List { all: true, page } => session.list::<Node>(page).await,
        NodeCommand::List { all: false, page } => {
            let mut listed = session.client.list::<Node>(&[Node::PATH], Listing::default()).await?;
            listed.items.retain(|node| node.registered);
            listed.items.truncate(page.most());
            session.show_list(&listed, "nodes");
            Ok(())
        }
        NodeCommand::Get { node } => session.get::<Node>(&node).await,
    }
}
