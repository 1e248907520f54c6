//! A management cluster and the assignment of projects to it.

use std::fmt;

use serde_json::Value;

use crate::catalog::blueprint_version::Engine;
use crate::catalog::name::Name;
use crate::ids::{ClusterId, ProjectId, Revision};
use crate::kind::kind;
use crate::placement::namespace::{NamespacePhase, NamespaceStatus};
use crate::text::{Handle, InvalidText};
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    pub id: ClusterId,
    pub name: Name,
    pub engine: Engine,
    /// The identity that the serving process observed. `None` until then.
    pub substrate_uid: Option<String>,
    /// A project namespace is this prefix followed by the id of the project.
    pub namespace_prefix: NamespacePrefix,
    /// Where it is, for placing projects by region.
    pub region: Option<Name>,
    /// How it is reached; `None` where the engine needs no access.
    pub access: Option<ClusterAccess>,
    /// The result of the last verification. `None` before the first one.
    pub verification: Option<Verification>,
    pub revision: Revision,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

kind!(Cluster, ClusterId, ClusterNotFound);

/// How a control plane reaches a cluster. Credentials are referenced and never
/// stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterAccess {
    /// With the service account of its own pod.
    InCluster,
    /// With the file of this name in its folder of kubeconfigs.
    Kubeconfig(Name),
}

impl ClusterAccess {
    const IN_CLUSTER: &str = "in-cluster";
    const KUBECONFIG: &str = "kubeconfig/";

    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        if text == Self::IN_CLUSTER {
            return Ok(Self::InCluster);
        }
        let name =
            text.strip_prefix(Self::KUBECONFIG).and_then(|name| Name::parse("access", name).ok());
        name.map(Self::Kubeconfig).ok_or_else(|| {
            InvalidText::new(
                "access",
                "must be in-cluster, or kubeconfig/ and the name of a file in the control plane's kubeconfig_dir, such as kubeconfig/east",
            )
        })
    }
}

impl fmt::Display for ClusterAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InCluster => f.write_str(Self::IN_CLUSTER),
            Self::Kubeconfig(name) => write!(f, "{}{name}", Self::KUBECONFIG),
        }
    }
}

/// The result of probing the cluster itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    pub at: Timestamp,
    /// Why the cluster cannot be used, if it cannot.
    pub problem: Option<String>,
    /// Versions and known kinds, for people.
    pub facts: Value,
}

/// The prefix of project namespaces. It can be chosen: compositions parse it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespacePrefix(String);

impl NamespacePrefix {
    pub const DEFAULT: &str = "slipway-project-";

    /// With the 36 characters of an id behind it, it must be a DNS label.
    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        let longest = Handle::MAX_LENGTH - 36;
        if text.len() > longest || Handle::parse(&format!("{text}0")).is_err() {
            return Err(InvalidText::new(
                "namespace_prefix",
                format!(
                    "must be at most {longest} lowercase letters, digits or hyphens, starting with a letter or digit"
                ),
            ));
        }
        Ok(Self(text.to_owned()))
    }

    /// For rows.
    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The placement of a project. Immutable while the project owns resources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterAssignment {
    pub project_id: ProjectId,
    pub cluster_id: ClusterId,
    pub namespace: String,
    pub namespace_phase: NamespacePhase,
    /// When somebody asked to withdraw the project from its cluster.
    pub withdrawn_at: Option<Timestamp>,
    pub status: NamespaceStatus,
    pub revision: Revision,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl ClusterAssignment {
    /// Whether the placement loop created something on the cluster, or may
    /// have. The local engine makes its folders itself.
    pub fn is_made_by_placement(&self) -> bool {
        // The loop records its first step before it takes it, so a Pending
        // assignment has nothing on the cluster.
        use NamespacePhase::{Degraded, Provisioning, Terminating};
        self.status.namespace_uid.is_some()
            || matches!(self.namespace_phase, Provisioning | Degraded | Terminating)
    }
}

impl Cluster {
    pub fn namespace(&self, project: ProjectId) -> String {
        format!("{}{project}", self.namespace_prefix.as_str())
    }

    /// The first phase of a project namespace. The local engine creates it
    /// itself once a process serves the cluster, which is when its identity is
    /// known; elsewhere somebody has to create it first.
    pub fn first_phase(&self) -> NamespacePhase {
        match (self.engine, &self.substrate_uid) {
            (Engine::Local, Some(_)) => NamespacePhase::Ready,
            (Engine::Local | Engine::Crossplane | Engine::Hetzner, _) => NamespacePhase::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_default_prefix_is_a_valid_one() {
        assert!(NamespacePrefix::parse(NamespacePrefix::DEFAULT).is_ok());
        for bad in ["-a", "A", &"x".repeat(28)] {
            assert!(NamespacePrefix::parse(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn whatever_prefix_is_taken_the_namespace_is_a_label(text in "[a-z0-9-]{0,30}") {
            if let Ok(prefix) = NamespacePrefix::parse(&text) {
                let namespace = format!("{}{}", prefix.as_str(), Uuid::from_u128(7));
                prop_assert!(Handle::parse(&namespace).is_ok(), "{}", namespace);
            }
        }
    }
}
