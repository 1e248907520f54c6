//! What a fresh installation starts with, and the admin's first key.

use slipway_app::ports::Substrate;
use slipway_app::seed::{LocalNames, Seed};
use slipway_app::usecases::authenticate;
use slipway_app::{Context, Error as AppError};
use slipway_core::ids::ClusterId;

use super::Error;
use crate::config::Config;

/// Makes sure that project, cloud, credential, cluster, assignments and the
/// built-in blueprint are there. Answers the cluster that this process serves.
pub(super) async fn seed(
    context: &Context,
    local: &dyn Substrate,
    config: &Config,
) -> Result<ClusterId, Error> {
    let uid = local.identity().await?;
    let seed = Seed::local(
        context.entropy.as_ref(),
        LocalNames {
            project: config.local_project.clone(),
            cluster: config.local_cluster.clone(),
            substrate_uid: uid,
            namespace_prefix: config.namespace_prefix.clone(),
        },
    )?;
    Ok(context.store.seed(&seed).await.map_err(AppError::from)?)
}

/// Installs the configured admin key, or draws one if there is no key at all.
/// Answers the text only if it was drawn: it is shown once and not kept.
pub(super) async fn admin_key(context: &Context, config: &Config) -> Result<Option<String>, Error> {
    let name = &config.admin_key_name;
    if let Some(key) = &config.admin_key {
        authenticate::put_admin_key(context, name, Some(key.clone())).await?;
        return Ok(None);
    }
    if context.store.api_key_count().await.map_err(AppError::from)? > 0 {
        return Ok(None);
    }
    let drawn = authenticate::put_admin_key(context, name, None).await?;
    Ok(Some(drawn.expose().to_owned()))
}
