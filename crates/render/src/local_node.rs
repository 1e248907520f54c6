//! The composite of blueprint `local-node`: a node agent that runs as a
//! process of this machine.

use serde_json::Value;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::ids::ClaimToken;

use crate::composite::{self, RenderedComposite};

pub use crate::injection::{Injection, PARAMETER_BUSY_SECONDS};
pub use crate::{Error, NodeSettings};

const API_VERSION: &str = "local.slipway.dev/v1";
const KIND: &str = "LocalNode";

/// The part of the object that we own, as it should be.
pub fn owned(snapshot: &ResourceSnapshot, settings: &NodeSettings) -> Result<Value, Error> {
    composite::plain(snapshot, settings, API_VERSION, KIND)
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
    RenderedComposite::started(snapshot, namespace, settings, claim_token, owned, injection)
}

#[cfg(test)]
mod tests;
