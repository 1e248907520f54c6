//! What a decision about the catalog may know, loaded under lock in the
//! transaction that will write it. A part is `None` if there is no live row.

use crate::catalog::blueprint::{Blueprint, PublishedVersion};
use crate::catalog::cloud::Cloud;
use crate::catalog::credential::{Credential, CredentialAssignment};
use crate::catalog::label::LabelDefinition;
use crate::catalog::project::Project;
use crate::placement::cluster::{Cluster, ClusterAssignment};
use crate::time::Timestamp;

/// A project, its row locked.
#[derive(Debug, Clone)]
pub struct ProjectSnapshot {
    pub now: Timestamp,
    /// The addressed project, or the one that has the requested name.
    pub project: Option<Project>,
    /// Resources in it that are not deleted.
    pub resources: i64,
    /// Registered nodes that have an address of its mesh.
    pub mesh_nodes: i64,
}

/// A cloud, its row locked.
#[derive(Debug, Clone)]
pub struct CloudSnapshot {
    pub now: Timestamp,
    pub cloud: Option<Cloud>,
    /// Credentials of it that are not deleted.
    pub credentials: i64,
}

/// A credential, its row locked, and its cloud, locked against deletion.
#[derive(Debug, Clone)]
pub struct CredentialSnapshot {
    pub now: Timestamp,
    pub cloud: Option<Cloud>,
    pub credential: Option<Credential>,
    /// Live projects that it is assigned to.
    pub projects: i64,
    /// Not deleted resources that are made with it.
    pub resources: i64,
}

/// A credential, a project, both locked against deletion, and the assignment.
#[derive(Debug, Clone)]
pub struct CredentialAssignmentSnapshot {
    pub now: Timestamp,
    pub project: Option<Project>,
    pub credential: Option<Credential>,
    pub assignment: Option<CredentialAssignment>,
    /// Not deleted resources of the project that are made with the credential.
    pub resources: i64,
}

/// A blueprint, its row locked, and the version in question.
#[derive(Debug, Clone)]
pub struct BlueprintSnapshot {
    pub now: Timestamp,
    pub blueprint: Option<Blueprint>,
    pub version: Option<PublishedVersion>,
}

/// A label definition, its row locked.
#[derive(Debug, Clone)]
pub struct LabelSnapshot {
    pub now: Timestamp,
    pub label: Option<LabelDefinition>,
}

/// A cluster, its row locked.
#[derive(Debug, Clone)]
pub struct ClusterSnapshot {
    pub now: Timestamp,
    pub cluster: Option<Cluster>,
}

/// A project, its row locked (so that nobody declares into it meanwhile), its
/// placement, and the requested cluster, which is locked against deletion.
#[derive(Debug, Clone)]
pub struct ClusterAssignmentSnapshot {
    pub now: Timestamp,
    pub project: Option<Project>,
    pub cluster: Option<Cluster>,
    pub assignment: Option<ClusterAssignment>,
    /// Resources of the project that are not deleted.
    pub resources: i64,
}
