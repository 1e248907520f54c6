//! `delete` of the four kinds: by name, with a plan, and with the deletion that it became.

use clap::Args;
use slipway_wire::deletion::Deletion;

use super::find::{FleetKind, FleetTarget};
use crate::arguments::DeletionArguments;
use crate::error::Error;
use crate::kind::Kind as _;
use crate::session::Session;

#[derive(Debug, Clone, Args)]
pub struct FleetDeleteArguments {
    #[command(flatten)]
    pub target: FleetTarget,
    #[command(flatten)]
    pub deletion: DeletionArguments,
    /// Only show what would go: its plan
    #[arg(long, conflicts_with = "plan")]
    pub dry_run: bool,
}

/// Of what agents have deployed.
#[derive(Debug, Clone, Args)]
pub struct KeepDeleteArguments {
    #[command(flatten)]
    pub delete: FleetDeleteArguments,
    /// Tell agents to let go of what they deployed instead of removing it; refused while an
    /// agent that holds it cannot
    #[arg(long)]
    pub keep: bool,
}

pub(crate) async fn keeping<K: FleetKind>(
    session: &mut Session<'_>,
    KeepDeleteArguments { delete: arguments, keep }: KeepDeleteArguments,
) -> Result<(), Error> {
    let keep = keep.then(|| ("keep", true.to_string()));
    run::<K>(session, arguments, keep.into_iter().collect()).await
}

/// Asks below the plan, deletes, and shows the deletion.
pub(crate) async fn run<K: FleetKind>(
    session: &mut Session<'_>,
    arguments: FleetDeleteArguments,
    more: Vec<(&'static str, String)>,
) -> Result<(), Error> {
    let FleetDeleteArguments { target, deletion, dry_run } = arguments;
    if !dry_run {
        session.terminal.can_agree(deletion.yes)?;
    }
    let found = target.find::<K>(&session.client).await;
    let Some(found) = session.unless_ignored(found, deletion.ignore_not_found)? else {
        return Ok(());
    };
    if dry_run {
        let plan = session.plan(K::NOUN, found.id(), false).await?;
        session.show_details(&plan);
        return Ok(());
    }
    let mut query = deletion.query();
    query.extend(more);
    let stays = if query.iter().any(|(name, _)| *name == "keep") { STAYS } else { "" };
    let question = format!("Delete {} `{}`?{stays}", K::NOUN, target.name);
    session.agree_to_delete((K::NOUN, found.id()), &question, &deletion, &mut query).await?;
    let deleted = session.client.delete_located(&[K::PATH, found.id()], &query).await;
    let Some(deleted) = session.unless_ignored(deleted, deletion.ignore_not_found)? else {
        return Ok(());
    };
    match deleted {
        Some(id) => session.get_at::<Deletion>(&[Deletion::PATH, &id]).await,
        None => Ok(()),
    }
}

const STAYS: &str = " What agents have deployed stays.";
