//! Management clusters, the projects placed on them, and definitions.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// Definitions of a blueprint on a cluster. Wanted and found version differ
/// while they are being installed, or while something prevents that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BlueprintDefinitions {
    pub cluster: String,
    pub cluster_id: String,
    /// The version that should be installed; none if no version should be any
    /// more. Installed definitions stay all the same.
    pub wanted_version: Option<String>,
    /// The version that the last observation found there; the wanted one only if it is complete.
    pub found_version: Option<String>,
    /// `Pending`, `Applying`, `Established` or `Degraded`.
    pub phase: String,
    /// What keeps the definitions, or our account, from working there.
    pub problem: Option<String>,
    /// Since when it is in this phase.
    pub since: Option<String>,
    pub updated_at: Option<String>,
}

/// `POST /api/v1/clusters`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateCluster {
    #[schema(pattern = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", max_length = 63)]
    pub name: String,
    /// `local` or `crossplane`.
    #[schema(pattern = "^(crossplane|local)$")]
    pub engine: String,
    /// A project's namespace is this and the id of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_prefix: Option<String>,
    /// Projects can be placed by it instead of by the cluster's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", max_length = 63)]
    pub region: Option<String>,
    /// How the cluster is reached: `in-cluster`, or `kubeconfig/` and the name of
    /// a file in the control plane's `kubeconfig_dir`, for engine `crossplane`; `hetzner/` and the
    /// name of a file in its `provider_token_dir`, maybe with `@` and the URL of the API, for
    /// engine `hetzner`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<String>,
    /// Whether it is protected from deletion.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub protected: bool,
}

/// `PATCH /api/v1/clusters/{cluster}`: what is not given stays.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateCluster {
    /// For projects that are placed later; namespaces that exist keep their names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_prefix: Option<String>,
    /// Empty: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^([a-z0-9]([a-z0-9-]*[a-z0-9])?)?$", max_length = 63)]
    pub region: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Cluster {
    pub id: String,
    pub name: String,
    pub engine: String,
    /// `null` until a control plane serves the cluster.
    pub substrate_uid: Option<String>,
    pub namespace_prefix: String,
    pub region: Option<String>,
    pub access: Option<String>,
    /// What its last verification found; `null` before the first.
    pub verification: Option<ClusterVerification>,
    pub revision: i64,
    pub created_at: String,
    pub updated_at: String,
    pub deleted_at: Option<String>,
    pub deletion_id: Option<String>,
}

/// The verification of a cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ClusterVerification {
    pub verified_at: String,
    /// Why it cannot be used; `null` if it can.
    pub problem: Option<String>,
    /// Its versions, and which kinds it knows.
    pub facts: Value,
}

/// `PUT /api/v1/projects/{project}/cluster`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AssignCluster {
    /// The cluster: its name, its id or the beginning of it. Either this or a region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Any usable cluster of this region, the one with the fewest projects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
}

/// `POST /api/v1/projects/{project}/cluster/abandon`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AbandonCluster {
    #[schema(min_length = 1, max_length = 500)]
    pub reason: String,
    /// The name or id of the project once more.
    pub confirm: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterAssignment {
    /// The name of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    pub project_id: String,
    /// The name of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    pub cluster_id: String,
    pub namespace: String,
    /// `Pending`, `Provisioning`, `Ready`, `Degraded`, `Terminating` or `Deleted`.
    pub namespace_phase: String,
    /// When somebody asked to withdraw the project from its cluster.
    pub withdrawn_at: Option<String>,
    /// The state of each ProviderConfig that the project uses.
    #[serde(default)]
    pub providers: Vec<ProviderStatus>,
    /// What keeps the namespace from its goal.
    #[serde(default)]
    pub problems: Vec<String>,
    pub revision: i64,
    pub created_at: String,
    pub updated_at: String,
}

/// A ProviderConfig in a project's namespace, and its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProviderStatus {
    pub provider: String,
    /// The name of the ProviderConfig: that of the provider, which resources share, or one
    /// of the credential.
    pub provider_config: String,
    /// The name of the credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    pub credential_id: String,
    /// `Waiting`, `Ready` or `Releasing`.
    pub phase: String,
    pub problem: Option<String>,
}
