//! The time from a status change on the cluster to the resulting phase.

use std::time::{Duration, Instant};

use kube::api::{Patch, PatchParams};
use serde_json::json;
use slipway_core::broker::phase::Phase;
use slipway_core::ids::ResourceId;

use super::world::World;

/// Latencies in milliseconds, sorted. The change is a permanent failure of the
/// composite: it takes effect at once, and nothing reverts it.
pub(super) async fn measure(
    world: &World,
    resources: &[ResourceId],
    samples: u32,
) -> anyhow::Result<Vec<f64>> {
    let api = world.composites(&world.namespace);
    let failed = json!({ "status": { "conditions": [
        { "type": "ProvisioningFailed", "status": "True", "message": "bench", "reason": "Bench",
          "lastTransitionTime": "2026-01-01T00:00:00Z" },
    ] } });
    let mut taken = Vec::new();
    for id in resources.iter().take(samples as usize) {
        let name = world.name_of(*id).await?;
        // Before the request, so that the figure includes the request itself.
        let changed = Instant::now();
        api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&failed)).await?;
        while world.phase(*id).await? != Phase::Failed {
            anyhow::ensure!(changed.elapsed() < Duration::from_secs(60), "{name} is not Failed");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        taken.push(changed.elapsed().as_secs_f64() * 1e3);
    }
    taken.sort_by(f64::total_cmp);
    Ok(taken)
}
