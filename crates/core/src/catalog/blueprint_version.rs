//! What a resource is made from: a published, immutable blueprint version, the
//! engine that understands it, and how a bootstrap token gets into it.

use crate::catalog::composition_name;
use crate::catalog::parameters::ParameterSchema;
use crate::closed_set::closed_set;
use crate::error::Refusal;
use crate::ids::{BlueprintId, BlueprintVersionId, CloudCredentialId};
use crate::nearest::not_one_of;
use crate::placement::provider_config;

closed_set!(
    /// Who makes the substrate.
    Engine {
        Local => "local",
        Crossplane => "crossplane",
        /// Nobody: people boot the machine, and say when it is gone.
        Manual => "manual",
        /// A server in a project of Hetzner Cloud.
        Hetzner => "hetzner",
    }
);

impl Engine {
    /// Whether another system carries out its actions: a request may take effect
    /// after its sender gave up or died.
    pub const fn acts_by_request(self) -> bool {
        !matches!(self, Self::Local)
    }

    /// The engines that something new may name.
    pub const OFFERED: [Self; 4] = [Self::Local, Self::Crossplane, Self::Manual, Self::Hetzner];

    pub fn is_offered(self) -> bool {
        Self::OFFERED.contains(&self)
    }

    /// Whether its object carries a bootstrap token to the machine. Where it does not, a
    /// person does, and the loop mints none.
    pub const fn carries_token(self) -> bool {
        !matches!(self, Self::Manual)
    }

    /// Whether a live object keeps the document that it was made with. Another token then
    /// needs another object.
    pub const fn keeps_document(self) -> bool {
        matches!(self, Self::Hetzner)
    }

    /// The engine that a field of a request names; the refusal lists those that are offered.
    pub fn parse_offered(field: &str, text: &str) -> Result<Self, Refusal> {
        Self::parse(text)
            .filter(|engine| engine.is_offered())
            .ok_or_else(|| not_one_of(field, text, &Self::OFFERED.map(Self::as_str)))
    }
}

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

/// What was read from the documents of a version when it was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Documents {
    pub composite: CompositeDefinition,
    /// What the author calls the Composition.
    pub composition: String,
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
    /// Whether a resource uses the ProviderConfig of its own credential, not the shared one.
    pub own_provider_config: bool,
    /// The name of its Composition in its own API version, which its composites name. `None` if
    /// Slipway does not install it, or if an earlier Slipway published the version: then the
    /// cluster chooses.
    pub composition_name: Option<String>,
    /// Whether two attempts of one resource may stand at once, see [`crate::broker::surge`].
    pub surge: bool,
    pub parameter_schema: ParameterSchema,
    pub injection_strategy: InjectionStrategy,
    pub mesh_role: MeshRole,
    pub provider_kinds: Vec<String>,
}

impl BlueprintVersion {
    /// The name of the ProviderConfig that a resource with this credential uses.
    pub fn provider_config(&self, provider: &str, credential: CloudCredentialId) -> String {
        provider_config::name(provider, self.own_provider_config.then_some(credential))
    }

    /// The Composition that its composites name where Crossplane reads them in this API
    /// version; in their own if it is not known.
    pub fn composition(&self, read_as: Option<&str>) -> Option<String> {
        let (name, kind) = (self.composition_name.as_ref()?, self.composite_type.as_ref()?);
        let read_as = read_as.unwrap_or(&kind.version);
        Some(composition_name::read_as(name, &kind.version, read_as))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_an_engine_that_is_offered() {
        for engine in Engine::OFFERED {
            assert_eq!(Engine::parse_offered("engine", engine.as_str()).unwrap(), engine);
        }
        let refusal = Engine::parse_offered("engine", "magic").unwrap_err();
        assert_eq!(refusal.field.as_deref(), Some("engine"));
        let offered = "must be one of local, crossplane, manual, hetzner";
        assert!(refusal.message.ends_with(offered), "{refusal}");
    }
}
