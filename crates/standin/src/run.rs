//! The whole stand-in as one future.

use anyhow::Context as _;
use kube::Client;

use crate::context::Context;
use crate::install::install;
use crate::options::Options;
use crate::watching::each;
use crate::{composite, definition, external_secret, kinds};

/// Runs until the future is dropped; then every agent ends as well, and the
/// objects in the API stay as they are.
///
/// An error can only occur at the start: if a folder or a journal cannot be
/// created, or kinds cannot be installed.
pub async fn run(client: Client, options: Options) -> anyhow::Result<()> {
    if options.install {
        install(&client, &options.providers).await?;
    }
    // Removed at the end, which ends every remaining agent.
    let temporary = match &options.agent_folder {
        Some(_) => None,
        None => Some(tempfile::tempdir().context("cannot make a folder for agents")?),
    };
    let agent_folder = match (&options.agent_folder, &temporary) {
        (Some(folder), _) => folder.clone(),
        (None, Some(folder)) => folder.path().to_owned(),
        (None, None) => anyhow::bail!("no folder for agents"),
    };
    let context = Context::new(client, options, agent_folder)?;
    let (definitions, secrets) = (kinds::definitions(), kinds::external_secrets());
    tokio::join!(
        each(&context, &definitions, |updates| definition::live(context.clone(), updates)),
        each(&context, &secrets, |updates| external_secret::live(context.clone(), updates)),
    );
    Ok(())
}

/// Follows the composites of one kind.
pub(crate) async fn composites(
    context: &Context,
    resource: &kube::core::ApiResource,
    read_as: &composite::ReadAs,
) {
    each(context, resource, |updates| {
        composite::live(context.clone(), resource.clone(), read_as.clone(), updates)
    })
    .await;
}
