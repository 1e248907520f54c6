//! A project: the owner of resources, permissions and a placement.

use crate::catalog::name::Name;
use crate::ids::{DeletionId, ProjectId, Revision};
use crate::kind::kind;
use crate::nodes::mesh::MeshCidr;
use crate::text::Labels;
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    pub id: ProjectId,
    /// Unique among the not deleted.
    pub name: Name,
    pub labels: Labels,
    /// The network from which its nodes get addresses.
    pub mesh_cidr: MeshCidr,
    pub revision: Revision,
    pub deletion_id: Option<DeletionId>,
    pub deleted_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

kind!(Project, ProjectId, ProjectNotFound);
