//! What a fresh installation contains, so that the first command works: a
//! project, a cloud, a credential, a cluster, their assignments and the
//! blueprints `local-node` and `manual-node`.

use serde_json::json;
use slipway_core::catalog::blueprint_version::{
    BlueprintVersion, Engine, InjectionStrategy, MeshRole,
};
use slipway_core::catalog::parameters::{InvalidSchema, Parameter, ParameterSchema, ParameterType};
use slipway_core::ids::{
    BlueprintId, BlueprintVersionId, CloudCredentialId, CloudId, ClusterId, ProjectId,
};
use slipway_render::local_node::PARAMETER_BUSY_SECONDS;
use slipway_render::machine::PARAMETER_CONFIRM_GONE;

use crate::ports::Entropy;

/// Rows that must exist after seeding. A row whose name exists stays as it is.
#[derive(Debug, Clone)]
pub struct Seed {
    pub project_id: ProjectId,
    pub project: String,
    pub cloud_id: CloudId,
    pub cloud: String,
    pub provider: String,
    pub credential_id: CloudCredentialId,
    pub credential: String,
    pub kv_mount: String,
    pub kv_path: String,
    pub cluster_id: ClusterId,
    pub cluster: String,
    pub engine: Engine,
    pub substrate_uid: String,
    /// Prefix of the project namespace; the id of the project follows.
    pub namespace_prefix: String,
    pub blueprint: BlueprintVersion,
    pub blueprint_name: String,
    pub blueprint_description: String,
    /// For machines that people boot by hand, once somebody makes a cluster for them.
    pub manual_blueprint: Option<BlueprintVersion>,
}

/// The names of the local engine on one machine, and the identity of its root.
#[derive(Debug, Clone)]
pub struct LocalNames {
    pub project: String,
    pub cluster: String,
    pub substrate_uid: String,
    pub namespace_prefix: String,
}

impl Seed {
    /// The embedded default: one project, placed on this machine as a cluster.
    pub fn local(entropy: &dyn Entropy, names: LocalNames) -> Result<Self, InvalidSchema> {
        let manual_blueprint = BlueprintVersion {
            id: BlueprintVersionId::new(entropy.uuid()),
            blueprint_id: BlueprintId::new(entropy.uuid()),
            slug: "manual-node".to_owned(),
            version: "v1".to_owned(),
            engine: Engine::Manual,
            composite_type: None,
            cloud_tags: false,
            own_provider_config: false,
            composition_name: None,
            surge: false,
            parameter_schema: ParameterSchema::new(vec![Parameter {
                name: PARAMETER_CONFIRM_GONE.to_owned(),
                kind: ParameterType::Boolean,
                required: false,
                default: Some(json!(true)),
                immutable: false,
            }])?,
            injection_strategy: InjectionStrategy::CloudInitUserData,
            mesh_role: MeshRole::Node,
            provider_kinds: vec!["local".to_owned()],
        };
        let cloud_id = CloudId::new(entropy.uuid());
        let credential_id = CloudCredentialId::new(entropy.uuid());
        Ok(Self {
            project_id: ProjectId::new(entropy.uuid()),
            project: names.project,
            cloud_id,
            cloud: "local".to_owned(),
            provider: "local".to_owned(),
            credential_id,
            credential: "local".to_owned(),
            kv_mount: "secret".to_owned(),
            kv_path: format!("clouds/{cloud_id}/credentials/{credential_id}"),
            cluster_id: ClusterId::new(entropy.uuid()),
            cluster: names.cluster,
            engine: Engine::Local,
            substrate_uid: names.substrate_uid,
            namespace_prefix: names.namespace_prefix,
            blueprint: BlueprintVersion {
                id: BlueprintVersionId::new(entropy.uuid()),
                blueprint_id: BlueprintId::new(entropy.uuid()),
                slug: "local-node".to_owned(),
                version: "v1".to_owned(),
                engine: Engine::Local,
                composite_type: None,
                cloud_tags: false,
                own_provider_config: false,
                composition_name: None,
                surge: true,
                parameter_schema: ParameterSchema::new(vec![Parameter {
                    name: PARAMETER_BUSY_SECONDS.to_owned(),
                    kind: ParameterType::Integer,
                    required: false,
                    default: Some(json!(0)),
                    // A node reads its document once, when it starts.
                    immutable: true,
                }])?,
                injection_strategy: InjectionStrategy::CloudInitUserData,
                mesh_role: MeshRole::Node,
                provider_kinds: vec!["local".to_owned()],
            },
            blueprint_name: "Local node".to_owned(),
            blueprint_description: "A node agent that runs as a process of this machine."
                .to_owned(),
            manual_blueprint: Some(manual_blueprint),
        })
    }
}
