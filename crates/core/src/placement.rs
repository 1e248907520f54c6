//! Where a project's substrate lives: the management cluster it is assigned
//! to and the namespace there. Nothing is applied before that namespace is
//! ready; waiting for it is a blocker, not an error.

use serde::{Deserialize, Serialize};

use crate::closed_set::closed_set;
use crate::ids::{CloudCredentialId, ClusterId};

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

closed_set!(
    /// Whether the resources of a project can reach a provider's cloud.
    ProviderPhase {
        /// Its ProviderConfig or its secret is not in place yet.
        Waiting => "Waiting",
        Ready => "Ready",
        /// Nothing uses it any more, and it is being taken away. Not used again
        /// before it was put back.
        Releasing => "Releasing",
    }
);

/// What stands in a project's namespace for one provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderStanding {
    pub provider: String,
    pub credential_id: CloudCredentialId,
    pub phase: ProviderPhase,
    /// Why it is not Ready, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// What the fleet last saw of a project's namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Of the namespace, once it is there; it is deleted under this one only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_uid: Option<String>,
    #[serde(default)]
    pub providers: Vec<ProviderStanding>,
    /// What keeps it from its goal, for people.
    #[serde(default)]
    pub problems: Vec<String>,
}

impl Standing {
    pub fn provider(&self, provider: &str) -> Option<&ProviderStanding> {
        self.providers.iter().find(|standing| standing.provider == provider)
    }
}

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
    /// What stands there for each provider; empty where an engine needs none.
    pub providers: Vec<ProviderStanding>,
}

impl Placement {
    pub fn is_ready(&self) -> bool {
        self.namespace_phase == NamespacePhase::Ready
    }
}
