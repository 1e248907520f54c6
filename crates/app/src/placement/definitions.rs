//! Queries and actions on a management cluster about the definitions of
//! blueprints, and about what our account may do with their kinds.

use async_trait::async_trait;
use slipway_core::catalog::blueprint_version::CompositeType;
use slipway_core::placement::definitions::DefinitionState;
use slipway_render::definitions::DefinitionObject;

use crate::ports::substrate::Error;

/// Actions are idempotent. This port cannot delete: deleting a definition would
/// delete all objects of its kind.
#[async_trait]
pub trait Definitions {
    /// Compares the object on the cluster with what was rendered.
    async fn observe(&self, object: &DefinitionObject) -> DefinitionState;

    /// Creates the object or updates it to what is rendered, and returns the
    /// state afterwards. Reads first; refuses one that is not ours.
    async fn define(&self, object: &DefinitionObject) -> Result<DefinitionState, Error>;

    /// The verbs on composites of this kind that our account needs and lacks.
    async fn lacking(&self, kind: &CompositeType) -> Result<Vec<String>, Error>;
}
