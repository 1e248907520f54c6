//! Verifies a project at Hetzner Cloud again and again, and records what was found: first its
//! identity, which every decision about its servers needs, later whether the token still leads
//! there.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use slipway_app::Context;
use slipway_app::placement::port::Found;
use slipway_controller::Shutdown;
use slipway_core::ids::ClusterId;
use slipway_core::placement::cluster::Cluster;
use slipway_substrate::hetzner::HetznerSubstrate;

/// Until the identity is known, and after it.
const SOON: Duration = Duration::from_secs(3);
const LATER: Duration = Duration::from_secs(60);

/// Ends with the row of the cluster, or at shutdown.
pub(super) async fn keep_verified(
    context: Context,
    cluster: ClusterId,
    engine: Arc<HetznerSubstrate>,
    mut shutdown: Shutdown,
) {
    loop {
        let pause = match verify(&context, cluster, &engine).await {
            Verified::Good => LATER,
            Verified::NotYet => SOON,
            Verified::Gone => return,
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shutdown.requested() => return,
        }
    }
}

enum Verified {
    Good,
    NotYet,
    Gone,
}

async fn verify(context: &Context, id: ClusterId, engine: &HetznerSubstrate) -> Verified {
    let stored = context.stores.kind::<Cluster>().fetch(&id.to_string(), false).await;
    let cluster = match stored {
        Ok(Some(cluster)) => cluster,
        Ok(None) => return Verified::Gone,
        Err(_) => return Verified::NotYet,
    };
    let answer = engine.verify(cluster.substrate_uid.as_deref()).await;
    let (identity, problem) = match answer {
        Ok(identity) => (Some(identity), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let is_first = identity.is_some() && cluster.substrate_uid.is_none();
    let is_good = problem.is_none();
    let found = Found { identity, problem, facts: json!({ "provider": "hetzner" }) };
    if let Err(error) = context.stores.placement.cluster_verified(id, &found).await {
        tracing::warn!(cluster = cluster.name.as_str(), %error, "a verification is not recorded");
        return Verified::NotYet;
    }
    if is_first {
        tracing::info!(cluster = cluster.name.as_str(), "a project at the provider is registered");
        context.wakes.wake();
    }
    if is_good { Verified::Good } else { Verified::NotYet }
}
