//! What a resource is made from: a published, immutable blueprint version, the
//! engine that understands it, and how a bootstrap token gets into it.

use crate::closed_set::closed_set;
use crate::ids::{BlueprintId, BlueprintVersionId};
use crate::parameters::ParameterSchema;

closed_set!(
    /// Who makes the substrate.
    Engine {
        Local => "local",
        Crossplane => "crossplane",
        Hetzner => "hetzner",
    }
);

closed_set!(
    /// How the bootstrap token is threaded into the composite.
    InjectionStrategy {
        CloudInitUserData => "cloud-init-user-data",
        HelmValues => "helm-values",
        ProviderSecret => "provider-secret",
    }
);

closed_set!(
    /// Whether a node is expected to enrol.
    MeshRole {
        Node => "node",
        Standalone => "standalone",
    }
);

/// A published version, as far as decisions need it. Immutable.
#[derive(Debug, Clone, PartialEq)]
pub struct BlueprintVersion {
    pub id: BlueprintVersionId,
    pub blueprint_id: BlueprintId,
    pub slug: String,
    pub version: String,
    pub engine: Engine,
    pub parameter_schema: ParameterSchema,
    pub injection_strategy: InjectionStrategy,
    pub mesh_role: MeshRole,
    pub provider_kinds: Vec<String>,
}
