//! `slipway node …` and `slipway deletion …`: reading.

use super::run::Session;
use crate::arguments::{DeletionCommand, NodeCommand};
use crate::error::Error;
use crate::render;

pub(super) async fn nodes(session: &mut Session<'_>, command: NodeCommand) -> Result<(), Error> {
    match command {
        NodeCommand::List(page) => {
            let listed = session.client.node_list(page.limit).await?;
            session.show_list(&listed, render::nodes);
        }
        NodeCommand::Get(arguments) => {
            let node = session.client.node_get(&arguments.id).await?;
            session.show(&node, render::node);
        }
    }
    Ok(())
}

pub(super) async fn deletions(
    session: &mut Session<'_>,
    command: DeletionCommand,
) -> Result<(), Error> {
    match command {
        DeletionCommand::List(page) => {
            let listed = session.client.deletion_list(page.limit).await?;
            session.show_list(&listed, render::deletions);
        }
        DeletionCommand::Get(arguments) => {
            let deletion = session.client.deletion_get(&arguments.id).await?;
            session.show(&deletion, render::deletion);
        }
    }
    Ok(())
}
