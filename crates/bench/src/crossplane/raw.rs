//! The other side: server-side applies of the same client, as many at a time as
//! the resource loop has, and nothing else.

use std::time::Instant;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{Patch, PatchParams};
use slipway_controller::resources::ResourceLoop;

use super::documents;
use super::world::World;

pub(super) async fn applies_per_second(world: &World, count: u32) -> anyhow::Result<f64> {
    let namespace = "bench-raw";
    world.make_namespace(namespace).await?;
    let api = world.composites(namespace);
    let parameters = PatchParams::apply("bench");
    let started = Instant::now();
    stream::iter(0..count)
        .map(|number| {
            let (api, parameters) = (&api, &parameters);
            async move {
                let name = format!("raw-{number}");
                let body = documents::plain(&name);
                api.patch(&name, parameters, &Patch::Apply(&body)).await.map(drop)
            }
        })
        .buffer_unordered(ResourceLoop::ACTIONS)
        .try_collect::<()>()
        .await?;
    Ok(f64::from(count) / started.elapsed().as_secs_f64())
}
