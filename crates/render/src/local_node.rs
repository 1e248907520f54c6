//! The composite of blueprint `local-node`: a node agent that runs as a
//! process of this machine.

use serde_json::{Value, json};
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::catalog::blueprint_version::InjectionStrategy;
use slipway_core::ids::ClaimToken;

use crate::composite::{RenderedComposite, labels};
use crate::injection::Filled;

pub use crate::injection::{Injection, PARAMETER_BUSY_SECONDS};
pub use crate::{Error, NodeSettings};

const API_VERSION: &str = "local.slipway.dev/v1";
const KIND: &str = "LocalNode";
/// A process starts with a document, whatever strategy its blueprint names.
const STRATEGY: InjectionStrategy = InjectionStrategy::CloudInitUserData;

/// The part of the object that we own, as it should be. Checks the parameter
/// values again, since the row may be older than the check.
pub fn owned(snapshot: &ResourceSnapshot, settings: &NodeSettings) -> Result<Value, Error> {
    let values = snapshot
        .blueprint
        .parameter_schema
        .validate(snapshot.attempt.parameter_values().as_map().clone())?;
    Ok(json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": { "labels": labels(snapshot, settings) },
        "spec": { "parameters": values },
    }))
}

/// The whole composite.
pub fn render(
    snapshot: &ResourceSnapshot,
    namespace: &str,
    settings: &NodeSettings,
    claim_token: ClaimToken,
    injection: &Injection,
) -> Result<RenderedComposite, Error> {
    let owned = owned(snapshot, settings)?;
    let filled = Filled::new(snapshot, STRATEGY, settings, injection)?;
    Ok(RenderedComposite::assemble(snapshot, namespace, claim_token, owned, filled))
}

#[cfg(test)]
mod tests;
