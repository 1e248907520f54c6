//! What a project's resources share on a management cluster: its namespace and
//! what stands in it. The placement loop brings it there and takes it away; resources
//! only wait for it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::catalog::cluster::ClusterAssignment;
use crate::closed_set::closed_set;
use crate::ids::{CloudCredentialId, CloudId, ProjectId};
use crate::time::Timestamp;

closed_set!(
    /// The kinds of shared objects, in the order in which they are made. They
    /// go in the opposite one.
    SharedKind {
        Namespace => "Namespace",
        RoleBinding => "RoleBinding",
        ResourceQuota => "ResourceQuota",
        ExternalSecret => "ExternalSecret",
        ProviderConfig => "ProviderConfig",
    }
);

/// Which object. Unique on a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SharedKey {
    /// The project's; also of the namespace itself.
    pub namespace: String,
    pub kind: SharedKind,
    pub name: String,
    /// Whose ProviderConfig it is; each provider has a kind of its own.
    pub provider: Option<String>,
}

impl SharedKey {
    /// What has to be readable for this to be known.
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

/// An object that should be there, and the hash of how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Desired {
    pub key: SharedKey,
    /// Which provider it is for, if for one.
    pub provider: Option<String>,
    pub hash: String,
}

/// An object that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub uid: String,
    /// It carries our installation and this project.
    pub owner: Option<ProjectId>,
    /// Of what was last written; `None` if somebody took a field of it over.
    pub hash: Option<String>,
    pub terminating: bool,
    /// What it says of itself, where it says anything: ready, or why not.
    pub ready: Option<Result<(), String>>,
}

/// Everything of this installation that was seen on a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SharedObjects {
    pub objects: BTreeMap<SharedKey, Seen>,
    /// What was asked for by name and is not there. That a list of what carries
    /// our labels does not show it proves nothing.
    pub absent: BTreeSet<SharedKey>,
    /// What could not be listed, and why. Nothing is concluded about it.
    pub unreadable: BTreeMap<Source, String>,
}

/// A provider that resources of a project use, through this credential.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderUse {
    pub provider: String,
    pub cloud_id: CloudId,
    pub endpoint: Map<String, Value>,
    pub credential_id: CloudCredentialId,
    pub kv_mount: String,
    pub kv_path: String,
}

/// A project on its cluster, as the rows have it.
#[derive(Debug, Clone, PartialEq)]
pub struct ProjectNamespace {
    pub now: Timestamp,
    pub assignment: ClusterAssignment,
    /// The project itself is deleted.
    pub project_deleted: bool,
    /// Resources whose absence is not proven for good.
    pub resources: i64,
    /// What those use, by provider. One credential for each: a second one of the
    /// same provider is refused when it is declared.
    pub uses: Vec<ProviderUse>,
}

impl ProjectNamespace {
    /// Whether the place is to be cleared.
    pub const fn is_leaving(&self) -> bool {
        self.project_deleted || self.assignment.withdrawn_at.is_some()
    }
}
