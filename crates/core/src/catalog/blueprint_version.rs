//! What a resource is made from: a published, immutable blueprint version, the
//! engine that understands it, and how a bootstrap token gets into it.

use crate::catalog::parameters::ParameterSchema;
use crate::closed_set::closed_set;
use crate::ids::{BlueprintId, BlueprintVersionId};

closed_set!(
    /// Who makes the substrate.
    Engine {
        Local => "local",
        Crossplane => "crossplane",
        Hetzner => "hetzner",
    }
);

closed_set!(
    /// How the bootstrap token is injected into the composite.
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

closed_set!(
    /// Whether a composite of this type lives in a project's namespace.
    CompositeScope {
        Namespaced => "Namespaced",
        Cluster => "Cluster",
    }
);

/// The type of a version's composites: what its XRD defines in the first
/// version that it serves.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CompositeType {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub plural: String,
    pub scope: CompositeScope,
}

impl CompositeType {
    /// `group/version`, as an object names it.
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }
}

/// What the documents of a version say about its composites.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompositeDefinition {
    pub composite_type: CompositeType,
    /// The composites have a field for cloud tags.
    pub cloud_tags: bool,
}

/// A published version, as far as decisions need it. Immutable.
#[derive(Debug, Clone, PartialEq)]
pub struct BlueprintVersion {
    pub id: BlueprintVersionId,
    pub blueprint_id: BlueprintId,
    pub slug: String,
    pub version: String,
    pub engine: Engine,
    /// The type of the composites on a cluster; only engine crossplane has one.
    pub composite_type: Option<CompositeType>,
    /// Whether the composites have a field for cloud tags.
    pub cloud_tags: bool,
    pub parameter_schema: ParameterSchema,
    pub injection_strategy: InjectionStrategy,
    pub mesh_role: MeshRole,
    pub provider_kinds: Vec<String>,
}
