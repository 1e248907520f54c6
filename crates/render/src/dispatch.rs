//! Chooses the renderer of a resource by the engine of its blueprint.

use serde_json::Value;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::catalog::blueprint_version::Engine;

use crate::injection::{self, Injection};
use crate::{Error, NodeSettings, RenderedComposite, crossplane, hetzner, local_node, machine};

/// The composite of a resource, to be applied under the claim that the snapshot
/// was read with.
pub fn composite_of(
    snapshot: &ResourceSnapshot,
    settings: &NodeSettings,
    injection: &Injection,
) -> Result<RenderedComposite, Error> {
    let placement = snapshot.placement.as_ref().ok_or(Error::NotPlaced)?;
    let (namespace, claim) = (&placement.namespace, snapshot.claim_token);
    match snapshot.blueprint.engine {
        Engine::Local => local_node::render(snapshot, namespace, settings, claim, injection),
        Engine::Crossplane => crossplane::render(snapshot, namespace, settings, claim, injection),
        Engine::Manual => {
            let owned = machine::owned(snapshot, settings)?;
            // Only a person brings a token to the machine.
            let none = &Injection::None;
            RenderedComposite::started(snapshot, namespace, settings, claim, owned, none)
        }
        Engine::Hetzner => hetzner::render(snapshot, namespace, settings, claim, injection),
    }
}

/// The part of the composite that we own; its hash detects drift.
pub fn owned_of(snapshot: &ResourceSnapshot, settings: &NodeSettings) -> Result<Value, Error> {
    match snapshot.blueprint.engine {
        Engine::Local => local_node::owned(snapshot, settings),
        Engine::Crossplane => crossplane::owned(snapshot, settings),
        Engine::Manual => machine::owned(snapshot, settings),
        Engine::Hetzner => hetzner::owned(snapshot, settings),
    }
}

/// Whether a token could be injected. Asked before one is minted.
pub fn can_inject(snapshot: &ResourceSnapshot, settings: &NodeSettings) -> Result<(), Error> {
    match snapshot.blueprint.engine {
        Engine::Crossplane => {
            injection::can_be_fresh(snapshot, snapshot.blueprint.injection_strategy, settings)
        }
        Engine::Local | Engine::Manual | Engine::Hetzner => Ok(()),
    }
}
