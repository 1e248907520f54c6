//! Memory of a watched composite: measured in a separate process that has an
//! engine and nothing else, before and after its first list.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use slipway_app::ports::Substrate as _;
use slipway_app::ports::substrate::InventoryRequest;
use slipway_core::ids::InstallationId;
use slipway_substrate::crossplane::{Access, CrossplaneConfig, CrossplaneSubstrate};

use super::documents;
use super::world::World;
use crate::machine;

pub(crate) const COMMAND: &str = "watched-composites";

pub(super) fn run(world: &World, watched: u32) -> anyhow::Result<f64> {
    let program = std::env::current_exe()?;
    let output = Command::new(program)
        .arg(COMMAND)
        .arg(&world.kubeconfig)
        .arg(world.installation.to_string())
        .arg(watched.to_string())
        .output()?;
    anyhow::ensure!(
        output.status.success(),
        "the measurement of memory failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout)?.trim().parse().context("no figure")
}

/// Entry point of that process: prints its figure.
pub(crate) async fn measure(
    kubeconfig: &str,
    installation: &str,
    watched: &str,
) -> anyhow::Result<()> {
    let installation: InstallationId = installation.parse().context("no installation")?;
    let watched: u32 = watched.parse()?;
    let engine = CrossplaneSubstrate::new(CrossplaneConfig {
        cluster: "bench".to_owned(),
        access: Access::Kubeconfig(PathBuf::from(Path::new(kubeconfig))),
        installation,
        sweep: Duration::from_secs(3_600),
    });
    // Connect first, so that the client and its connection are not counted.
    engine.identity().await.map_err(|error| anyhow::anyhow!("{error}"))?;
    let empty = machine::resident_bytes()?;
    engine.expect_kinds([&documents::composite_type()]);
    let started = Instant::now();
    while engine.watched() < watched as usize {
        anyhow::ensure!(started.elapsed() < Duration::from_secs(120), "the list does not end");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // By then the allocator has released what it can of the list's memory.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let full = machine::resident_bytes()?;
    let request = InventoryRequest { substrate_uid: None, after: None, limit: 1 };
    anyhow::ensure!(engine.inventory(&request).await.is_ok(), "the engine does not answer");
    println!("{}", full.saturating_sub(empty) as f64 / f64::from(watched));
    Ok(())
}
