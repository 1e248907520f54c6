//! `slipway event …`: the lifecycle, event by event.

use clap::Subcommand;
use reqwest::Method;
use slipway_wire::events::{Event, Subscription};

use super::follow::{FollowArguments, follow};
use crate::arguments::PageArguments;
use crate::client::Listing;
use crate::error::Error;
use crate::kind::{Cells, Row};
use crate::output::or_dash;
use crate::session::Session;
use crate::terminal::clean;

#[derive(Debug, Clone, Subcommand)]
pub enum EventCommand {
    /// List events in the order of their positions
    List {
        /// Only events after this position
        #[arg(long, value_name = "POSITION")]
        after: Option<i64>,
        #[command(flatten)]
        page: PageArguments,
    },
    /// Show events as they happen, until interrupted; a lost connection is restored
    Follow(FollowArguments),
    /// List who gets every event, and how far each is
    Subscriptions,
    /// Delete a subscription whose sink is gone for good; events are kept for it until then
    Unsubscribe {
        /// The name of the subscription
        name: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        /// Succeed if there is none (any more)
        #[arg(long)]
        ignore_not_found: bool,
    },
}

pub(crate) const EXAMPLES: &[&str] = &[
    "slipway event list --after 100 --limit 20",
    "slipway event follow",
    "slipway event follow --after 0 -o json",
    "slipway event subscriptions",
    "slipway event unsubscribe event-log --yes",
];

impl Row for Event {
    fn cells(&self) -> Cells {
        vec![
            ("POSITION", self.position.to_string()),
            ("AGE", self.occurred_at.clone()),
            ("TYPE", self.event_type.clone()),
            ("HANDLE", self.handle.as_ref().unwrap_or(&self.aggregate_id).clone()),
        ]
    }

    fn wide(&self) -> Cells {
        vec![
            ("REVISION", self.revision.to_string()),
            ("AGGREGATE", self.aggregate_id.clone()),
            ("ID", self.id.clone()),
        ]
    }
}

impl Row for Subscription {
    fn cells(&self) -> Cells {
        vec![
            ("NAME", self.name.clone()),
            ("POSITION", self.position.to_string()),
            ("BEHIND", (self.last_position - self.position).to_string()),
            ("LAST DELIVERY", or_dash(self.published_at.as_deref())),
            ("FAILURES", self.failures.to_string()),
            ("LAST ERROR", or_dash(self.last_error.as_deref())),
        ]
    }
}

pub(crate) async fn run(session: &mut Session<'_>, command: EventCommand) -> Result<(), Error> {
    match command {
        EventCommand::List { after, page } => {
            let cursor = after.map(|position| position.to_string());
            let wanted = Listing::from(page).with("cursor", cursor);
            session.list_at::<Event>(&["events"], wanted).await?;
        }
        EventCommand::Follow(arguments) => follow(session, &arguments).await?,
        EventCommand::Subscriptions => {
            let found: Vec<Subscription> = session.client.get(&["subscriptions"]).await?;
            session.show_all(&found, "subscriptions");
        }
        EventCommand::Unsubscribe { name, yes, ignore_not_found } => {
            session.terminal.agree(yes, &format!("Delete subscription `{name}`?"))?;
            let done = session.client.silent(Method::DELETE, &["subscriptions", &name]).await;
            if session.unless_ignored(done, ignore_not_found)?.is_some() {
                session.terminal.say(&format!("subscription `{}` is deleted", clean(&name)));
            }
        }
    }
    Ok(())
}
