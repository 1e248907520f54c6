//! Seeds a fresh installation, and installs the first admin key.

use slipway_app::access::authenticate;
use slipway_app::ports::Substrate;
use slipway_app::seed::{LocalNames, Seed};
use slipway_app::{Context, Error as AppError};
use slipway_core::access::api_key_rules::Installed;
use slipway_core::access::audit::Actor;
use slipway_core::ids::ClusterId;

use super::database_wait::DatabaseWait;
use crate::config::Config;
use crate::error::Error;

/// Makes sure that project, cloud, credential, cluster, assignments and the
/// built-in blueprint exist. Returns the cluster that this process serves.
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
            namespace_prefix: config.namespace_prefix.as_str().to_owned(),
        },
    )?;
    // Rows are found by their names, so a second run changes nothing.
    DatabaseWait::of(config)
        .run(async || Ok(context.stores.operations.seed(&seed).await.map_err(AppError::from)?))
        .await
}

/// Installs the configured admin key, or generates one if there is no key at all.
/// Returns the text only of a generated key: it is shown once and not kept. If
/// replicas start together on an empty database, one generates a key and the
/// others find it.
pub(super) async fn admin_key(
    context: &Context,
    config: &Config,
    worker: &str,
) -> Result<Option<String>, Error> {
    let (name, wait) = (&config.admin_key_name, DatabaseWait::of(config));
    let actor = Actor::new(format!("replica:{worker}"));
    if let Some(key) = &config.admin_key {
        let installed = wait
            .run(async || Ok(authenticate::install_admin_key(context, name, key, &actor).await?))
            .await?;
        match installed {
            Installed::Replaced => {
                tracing::warn!(
                    name,
                    "the admin key of this name was replaced by the configured one"
                );
            }
            Installed::Withdrawn => tracing::warn!(
                name,
                "the configured admin key was rotated away, replaced or revoked, or has expired, \
                 and is not installed again; the keys of this installation stay as they are; \
                 unset SLIPWAY_ADMIN_KEY, or set it to the current text or to a new one"
            ),
            Installed::Taken => tracing::warn!(
                name,
                "the configured admin key is not installed: another key has this text or its \
                 short part and is no admin key of the installation; set SLIPWAY_ADMIN_KEY to a \
                 new text"
            ),
            Installed::Inserted | Installed::Unchanged | Installed::Occupied => {}
        }
        return Ok(None);
    }
    // One text for all runs: if the answer to a commit is lost, the next run finds
    // this key and it is shown.
    let drawn = authenticate::draw(context);
    let is_ours = wait
        .run(async || {
            Ok(authenticate::install_first_admin_key(context, name, &drawn, &actor).await?)
        })
        .await?;
    if !is_ours {
        tracing::info!("an admin key exists already; set SLIPWAY_ADMIN_KEY to install another");
    }
    Ok(is_ours.then(|| drawn.expose().to_owned()))
}
