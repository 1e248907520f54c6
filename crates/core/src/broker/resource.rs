//! A resource: the named slot that an operator declared. It outlives its
//! attempts; its handle is taken until the deletion is done.

use crate::broker::surge::Surge;
use crate::ids::{DeletionId, ProjectId, ResourceId, Revision};
use crate::text::{Handle, Labels};
use crate::time::Timestamp;
use crate::topology::owner::Owner;

/// The slot. Plain data: its one rule, that handles are unique among resources
/// not deleted, concerns a set and is in [`crate::broker::declare`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    pub id: ResourceId,
    pub project_id: ProjectId,
    pub handle: Handle,
    pub labels: Labels,
    pub revision: Revision,
    /// The deletion that removes it, set from the request on.
    pub deletion_id: Option<DeletionId>,
    /// Set while two attempts of it are there, see [`crate::broker::surge`].
    pub surge: Option<Surge>,
    /// The workspace whose server it is. Only its declaration writes it.
    pub owner: Option<Owner>,
    /// When its last attempt became Deleted; from then on the handle is free.
    pub deleted_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}
