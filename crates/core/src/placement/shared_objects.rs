//! What a project's resources share on a management cluster: the project
//! namespace and the objects in it. The placement loop creates and removes
//! them; resources only wait for them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::closed_set::closed_set;
use crate::ids::{CloudCredentialId, CloudId, ProjectId};
use crate::placement::cluster::ClusterAssignment;
use crate::time::Timestamp;

closed_set!(
    /// The kinds of shared objects, in the order of creation. Removal goes in
    /// the opposite order.
    SharedKind {
        Namespace => "Namespace",
        RoleBinding => "RoleBinding",
        ResourceQuota => "ResourceQuota",
        ExternalSecret => "ExternalSecret",
        ProviderConfig => "ProviderConfig",
    }
);

/// Identifies an object on a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SharedKey {
    /// The project namespace, also for the namespace object itself.
    pub namespace: String,
    pub kind: SharedKind,
    pub name: String,
    /// The provider of a ProviderConfig; each provider has a kind of its own.
    pub provider: Option<String>,
}

/// The name of the RoleBinding and of the ResourceQuota of a project.
pub const BASE_NAME: &str = "slipway-project";

impl SharedKey {
    /// The name under which the status of the namespace counts its removals.
    /// Unique: a shared ProviderConfig is named after its provider, and one of a
    /// credential is counted with its provider.
    pub fn counted_as(&self) -> String {
        match &self.provider {
            Some(provider) if *provider != self.name => {
                format!("{}/{provider}/{}", self.kind, self.name)
            }
            _ => format!("{}/{}", self.kind, self.name),
        }
    }

    /// What must be readable for the state of this object to be known.
    pub fn source(&self) -> Source {
        Source { kind: self.kind, provider: self.provider.clone() }
    }
}

/// A kind as the API server knows it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    pub kind: SharedKind,
    pub provider: Option<String>,
}

/// An object that should exist, and the hash of its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Desired {
    pub key: SharedKey,
    /// The ExternalSecret that a ProviderConfig reads, by name. Several may read one.
    pub secret: Option<String>,
    pub hash: String,
}

/// An object that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub uid: String,
    /// Changes with every write of the object.
    pub version: String,
    /// The count of removals that was written to it last, see
    /// [`crate::placement::rules::namespace`]. Read in this version.
    pub removals: u64,
    /// The project in its labels, if it carries our installation.
    pub owner: Option<ProjectId>,
    /// The hash of what was last written; `None` if somebody took over a field.
    pub hash: Option<String>,
    pub terminating: bool,
    /// What the object reports about itself, if anything: ready, or why not.
    pub ready: Option<Result<(), String>>,
}

/// All objects of this installation that were observed on a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SharedObjects {
    pub objects: BTreeMap<SharedKey, Seen>,
    /// Objects that were requested by name and do not exist. That a list by our
    /// labels does not show an object proves nothing.
    pub absent: BTreeSet<SharedKey>,
    /// Kinds that could not be listed, and why. Nothing is concluded from it.
    pub unreadable: BTreeMap<Source, String>,
    /// Namespaces whose only create on its way was answered, with the recorded time
    /// until which it might have landed.
    pub answered: BTreeMap<SharedKey, Timestamp>,
}

/// A provider that resources of a project use, through this ProviderConfig and credential.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderUse {
    pub provider: String,
    /// The name of the ProviderConfig, see [`crate::placement::provider_config`].
    pub config: String,
    pub cloud_id: CloudId,
    pub endpoint: Map<String, Value>,
    pub credential_id: CloudCredentialId,
    pub kv_mount: String,
    pub kv_path: String,
}

/// A project on its cluster, as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct ProjectNamespace {
    pub now: Timestamp,
    pub assignment: ClusterAssignment,
    /// When the project itself was deleted.
    pub project_deleted_at: Option<Timestamp>,
    /// Resources whose absence is not yet proven for good.
    pub resources: i64,
    /// What those use, by provider. One credential for each ProviderConfig: declaring a
    /// second one for the shared one of a provider is refused.
    pub uses: Vec<ProviderUse>,
}

impl ProjectNamespace {
    /// Whether the project namespace is to be removed.
    pub const fn is_leaving(&self) -> bool {
        self.leaving_since().is_some()
    }

    /// Since when. Only a live project is withdrawn, so that comes first.
    pub const fn leaving_since(&self) -> Option<Timestamp> {
        match (self.assignment.withdrawn_at, self.project_deleted_at) {
            (Some(withdrawn), _) => Some(withdrawn),
            (None, deleted) => deleted,
        }
    }
}
