//! A project: what resources, permissions and a placement belong to.

use crate::catalog::name::Name;
use crate::ids::{DeletionId, ProjectId, Revision};
use crate::mesh::MeshCidr;
use crate::text::Labels;
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    pub id: ProjectId,
    /// Unique among the not deleted.
    pub name: Name,
    pub labels: Labels,
    /// Where its nodes get their addresses from.
    pub mesh_cidr: MeshCidr,
    pub revision: Revision,
    pub deletion_id: Option<DeletionId>,
    pub deleted_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}
