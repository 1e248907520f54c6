//! `slipway leaks …`: objects that no row claims, and rows without their
//! object.

use clap::{Args, Subcommand};
use slipway_core::text::counted;
use slipway_wire::deletion::{Leak, LeakReason, LeakScan, LeakSuspicion};

use crate::arguments::{IdArguments, PageArguments};
use crate::client::Listing;
use crate::error::Error;
use crate::kind::{Cells, Detail, Facts, Kind, Row, table};
use crate::output::{Layout, lines_of, name_and_id, optional_time, or_dash, time};
use crate::session::Session;
use crate::terminal::clean;

/// Lists if no verb is given.
#[derive(Debug, Clone, Args)]
pub struct LeaksArguments {
    #[command(subcommand)]
    pub command: Option<LeaksCommand>,
    #[command(flatten)]
    pub list: LeakListArguments,
}

#[derive(Debug, Clone, Subcommand)]
pub enum LeaksCommand {
    /// List leaks; the open ones if not said otherwise
    List(LeakListArguments),
    /// Show one leak
    Get(IdArguments),
    /// Scan the clusters that the answering replica serves, now. A new finding becomes a leak when
    /// a scan at least a lease later finds it again
    Find,
    /// Resolve a leak after its object was removed by hand
    Resolve(LeakEndArguments),
    /// Remove the object of a leak that no row claims
    Remove {
        #[command(flatten)]
        leak: LeakEndArguments,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Clone, Args)]
pub struct LeakListArguments {
    /// Only in this state
    #[arg(long, value_parser = ["open", "resolved", "all"], default_value = "open")]
    pub state: String,
    /// Only of this kind, for instance unclaimed_object
    #[arg(long)]
    pub kind: Option<String>,
    #[command(flatten)]
    pub page: PageArguments,
}

#[derive(Debug, Clone, Args)]
pub struct LeakEndArguments {
    /// Its id or the beginning of it
    pub id: String,
    /// Why; kept in the audit
    #[arg(long)]
    pub reason: String,
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway leaks list --state all",
    "slipway leaks get 0192f0c1-2b3c",
    "slipway leaks find",
    "slipway leaks resolve 0192f0c1-2b3c --reason removed-by-hand",
    "slipway leaks remove 0192f0c1-2b3c --reason nobodys --yes",
];

impl Kind for Leak {
    const PATH: &'static str = "leaks";
}

impl Row for Leak {
    fn cells(&self) -> Cells {
        vec![
            ("ID", self.id.clone()),
            ("KIND", self.kind.clone()),
            ("RESOURCE", or_dash(self.resource.as_deref())),
            ("CLUSTER", or_dash(self.cluster.as_deref())),
            ("AGE", self.found_at.clone()),
            ("OBJECT", object(self)),
            ("WHAT TO DO", self.remedy.clone()),
        ]
    }

    fn wide(&self) -> Cells {
        vec![("LAST SEEN", self.last_seen_at.as_ref().unwrap_or(&self.found_at).clone())]
    }
}

impl Detail for Leak {
    const NOUN: &'static str = "leak";

    fn facts(&self) -> Facts {
        vec![
            ("kind", Some(self.kind.clone())),
            ("id", Some(self.id.clone())),
            ("state", Some(self.state.clone())),
            ("object", Some(object(self))),
            ("uid", self.uid.clone()),
            ("cluster", self.cluster.clone()),
            (
                "attempt",
                self.provisioned_resource_id
                    .as_ref()
                    .map(|id| name_and_id(self.resource.as_deref(), id)),
            ),
            ("since", Some(time(&self.found_at))),
            ("last seen", optional_time(self.last_seen_at.as_ref())),
            ("evidence", Some(lines_of(&self.evidence))),
            ("what to do", Some(self.remedy.clone())),
            ("removal asked", optional_time(self.removal_requested_at.as_ref())),
            ("removal by", self.removal_requested_by.clone()),
            ("removal because", self.removal_reason.clone()),
            ("resolved", optional_time(self.resolved_at.as_ref())),
            ("resolved by", self.resolved_by.clone()),
            ("resolution", self.resolution.clone()),
        ]
    }
}

impl Row for LeakSuspicion {
    fn cells(&self) -> Cells {
        vec![
            ("SUSPECTED", self.kind.clone()),
            ("OBJECT", format!("{}/{}", self.namespace, self.name)),
            ("AGE", self.first_seen_at.clone()),
            ("LEAK IF FOUND AFTER", time(&self.counts_from)),
        ]
    }
}

/// The name of the object, or its attempt if nothing else is known.
fn object(leak: &Leak) -> String {
    match (&leak.namespace, &leak.name, &leak.provisioned_resource_id) {
        (Some(namespace), Some(name), _) => format!("{namespace}/{name}"),
        (_, _, Some(id)) => format!("that of attempt {id}"),
        _ => "an unknown object".to_owned(),
    }
}

pub(crate) async fn run(session: &mut Session<'_>, leaks: LeaksArguments) -> Result<(), Error> {
    match leaks.command.unwrap_or(LeaksCommand::List(leaks.list)) {
        LeaksCommand::List(LeakListArguments { state, kind, page }) => {
            let wanted = Listing::from(page).with("state", Some(state)).with("kind", kind);
            session.list::<Leak>(wanted).await
        }
        LeaksCommand::Get(arguments) => session.get::<Leak>(&arguments.id).await,
        LeaksCommand::Find => {
            let found: Vec<LeakScan> = session.client.invoke(&["leaks", "find"]).await?;
            session.show(&found, |found, layout| inventories(found, layout));
            Ok(())
        }
        LeaksCommand::Resolve(arguments) => end(session, arguments, "resolve").await.map(|_| ()),
        LeaksCommand::Remove { leak, yes } => remove(session, leak, yes).await,
    }
}

/// Shows the object before the user is asked to confirm.
async fn remove(
    session: &mut Session<'_>,
    arguments: LeakEndArguments,
    yes: bool,
) -> Result<(), Error> {
    session.terminal.can_agree(yes)?;
    let id = arguments.id.clone();
    if !yes {
        let leak: Leak = session.client.get(&["leaks", &id]).await?;
        let question = format!("Remove {} of leak {id}?", object(&leak));
        session.terminal.agree(yes, &question)?;
    }
    let leak = end(session, arguments, "remove").await?;
    if leak.resolved_at.is_none() {
        session.terminal.say(&format!(
            "its removal has begun and is retried until it is gone; `slipway leaks get {id}` shows that"
        ));
    }
    Ok(())
}

async fn end(
    session: &mut Session<'_>,
    LeakEndArguments { id, reason }: LeakEndArguments,
    verb: &str,
) -> Result<Leak, Error> {
    let leak: Leak = session.client.post(&["leaks", &id, verb], &LeakReason { reason }).await?;
    session.show_details(&leak);
    Ok(leak)
}

/// The result of the scan of each cluster.
fn inventories(found: &[LeakScan], layout: Layout) -> String {
    if found.is_empty() {
        return "this server serves no cluster; ask the one that does".to_owned();
    }
    let mut parts = Vec::new();
    for cluster in found {
        parts.push(format!(
            "cluster {}: {} of ours, {} of others, {} woken, {} over",
            cluster.cluster,
            counted(cluster.objects, "object"),
            cluster.foreign,
            counted(cluster.woken, "resource"),
            counted(cluster.resolved, "leak")
        ));
        if let Some(error) = &cluster.error {
            parts.push(format!("could not be scanned completely: {}", clean(error)));
        }
        let unreadable = cluster.unreadable.iter();
        parts.extend(unreadable.map(|text| format!("cannot be read: {}", clean(text))));
        if !cluster.leaks.is_empty() {
            parts.push(table(&cluster.leaks, layout));
        }
        if !cluster.suspected.is_empty() {
            parts.push(table(&cluster.suspected, layout));
        }
    }
    parts.join("\n")
}
