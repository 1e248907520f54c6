//! What a management cluster can be asked and told about the kinds that
//! blueprints bring: their definitions, and what our account may do with them.

use async_trait::async_trait;
use slipway_core::blueprint::CompositeType;
use slipway_core::definitions::DefinitionState;
use slipway_render::definitions::DefinitionObject;

use super::substrate::Error;

/// Actions are idempotent. Nothing can be deleted through this port: with a
/// definition all objects of its kind would go.
#[async_trait]
pub trait Definitions {
    /// What stands under the object's name, beside what was rendered.
    async fn observe(&self, object: &DefinitionObject) -> DefinitionState;

    /// Creates the object or brings it to what is rendered, and answers what is
    /// there then. Looks up first; refuses one that is not ours.
    async fn define(&self, object: &DefinitionObject) -> Result<DefinitionState, Error>;

    /// The verbs that our account needs for composites of this kind and lacks.
    async fn lacking(&self, kind: &CompositeType) -> Result<Vec<String>, Error>;
}
