//! Where a project's substrate lives: the management cluster it is assigned
//! to and the namespace there. Nothing is applied before that namespace is
//! ready; waiting for it is a blocker, not an error.

use crate::closed_set::closed_set;
use crate::ids::ClusterId;

closed_set!(
    /// The lifecycle of a project's namespace.
    NamespacePhase {
        Pending => "Pending",
        Provisioning => "Provisioning",
        Ready => "Ready",
        Degraded => "Degraded",
        Terminating => "Terminating",
        Deleted => "Deleted",
    }
);

/// The assignment of a project to a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    pub cluster_id: ClusterId,
    pub cluster: String,
    pub namespace: String,
    pub namespace_phase: NamespacePhase,
    /// The identity that the cluster or root showed when it was registered.
    /// Absence is only proven on the same one.
    pub substrate_uid: Option<String>,
}

impl Placement {
    pub fn is_ready(&self) -> bool {
        self.namespace_phase == NamespacePhase::Ready
    }
}
