//! Determines the mode at the start: detects a restored database, observes only
//! if the operator asks for it, and notices a new public address. At the end it
//! raises the high-water marks above the last actions.

use std::time::Duration;

use slipway_app::Context;
use slipway_app::broker::converge::Engines;
use slipway_app::operations::control::{self, HeartbeatError, Moved};
use slipway_app::permits::Permits;
use slipway_core::access::audit::Actor;

use super::partitions::Partitions;
use crate::config::Config;
use crate::error::Error;

/// The last heartbeat has a cluster's time to read its mark and to raise it, and
/// the database's time to commit. A cluster that is away does not delay the end.
const LAST_HEARTBEAT: Duration = Duration::from_secs(5);

/// Runs before any loop, so that not even one batch acts on a restored database.
/// If a high-water mark exists and cannot be read, the start is refused: to go on
/// would be a guess.
pub(super) async fn converge(
    context: &Context,
    engines: &Engines,
    permits: &Permits,
    config: &Config,
    worker: &str,
) -> Result<(), Error> {
    let actor = Actor::new(format!("replica:{worker}"));
    control::outlived(context, permits, worker, config.lease).await?;
    control::heartbeat(context, engines, permits, worker, config.lease).await.map_err(|error| {
        match error {
            HeartbeatError::Store(error) => Error::App(error.into()),
            HeartbeatError::HighWaterMark(error) => Error::Substrate(error),
        }
    })?;
    if config.observe_only {
        control::observe(context, "started with --observe-only", &actor).await?;
        tracing::warn!("only observing: nothing outside is changed until `slipway resume`");
    }
    // Only a configured URL: otherwise each replica has its own, and they would
    // take turns in announcing a change.
    if let Some(url) = &config.public_url {
        match control::locate(context, url, &actor).await? {
            Some(Moved { before: Some(before) }) => tracing::warn!(
                before,
                now = url,
                "the public URL changed: nodes that were made with the old one go on using it, so it has to lead here for as long as they live"
            ),
            // The first start, or one after starts without the setting.
            Some(Moved { before: None }) => tracing::info!(
                now = url,
                "the public URL is set: nodes that were made before with the default one go on using that"
            ),
            None => {}
        }
    }
    Ok(())
}

/// Runs after all loops: raises the high-water marks above what they did last, so
/// that a database that is restored right after this stop is recognised.
pub(super) async fn last_heartbeat(partitions: &Partitions) {
    let Partitions { context, engines, permits, worker, lease, .. } = partitions;
    let heartbeat = control::last_heartbeat(context, engines, permits, worker, *lease);
    let problem = match tokio::time::timeout(LAST_HEARTBEAT, heartbeat).await {
        Ok(Ok(_)) => return,
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {LAST_HEARTBEAT:?}"),
    };
    tracing::warn!(
        problem,
        "the last heartbeat failed: a high-water mark may not show the last actions until the next start"
    );
}
