//! What decisions about the placement write.

use crate::placement::cluster::{Cluster, ClusterAssignment};
use crate::placement::definitions::InstalledDefinitions;

/// One row. Updates and deletes name the revision in the aggregate.
#[derive(Debug, Clone, PartialEq)]
pub enum PlacementWrite {
    ClusterInsert(Cluster),
    ClusterUpdate(Cluster),
    ClusterAssignmentInsert(ClusterAssignment),
    ClusterAssignmentUpdate(ClusterAssignment),
    ClusterAssignmentDelete(ClusterAssignment),
    DefinitionsInsert(InstalledDefinitions),
    DefinitionsUpdate(InstalledDefinitions),
}
