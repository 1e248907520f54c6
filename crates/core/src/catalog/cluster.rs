//! A management cluster and which project lives on it.

use std::fmt;

use serde_json::Value;

use crate::blueprint::Engine;
use crate::catalog::name::Name;
use crate::ids::{ClusterId, ProjectId, Revision};
use crate::placement::{NamespacePhase, NamespaceStatus};
use crate::text::{Handle, InvalidText};
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    pub id: ClusterId,
    pub name: Name,
    pub engine: Engine,
    /// The identity that whoever serves the cluster has seen. `None` until then.
    pub substrate_uid: Option<String>,
    /// A project's namespace is this and the id of the project.
    pub namespace_prefix: NamespacePrefix,
    /// Where it is, for placing projects by region.
    pub region: Option<Name>,
    /// How it is reached; `None` where the engine needs no way.
    pub access: Option<ClusterAccess>,
    /// What was found there last. `None` until somebody looked.
    pub verification: Option<Verification>,
    pub revision: Revision,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// How a control plane reaches a cluster. Credentials are referred to and never
/// stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterAccess {
    /// By the account of the pod that it runs in.
    InCluster,
    /// By the file of this name in its folder of kubeconfigs.
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

/// What a look at the cluster itself found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    pub at: Timestamp,
    /// Why it cannot be used, if it cannot.
    pub problem: Option<String>,
    /// Versions and which kinds it knows, for people.
    pub facts: Value,
}

/// What a namespace begins with. Compositions parse it, so it can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespacePrefix(String);

impl NamespacePrefix {
    pub const DEFAULT: &str = "slipway-project-";

    /// With the 36 characters of an id behind it, it has to be a DNS label.
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

    /// For rows; those of an older version have none.
    pub fn from_stored(text: Option<String>) -> Self {
        Self(text.unwrap_or_else(|| Self::DEFAULT.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The project's place. Immutable while the project owns resources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterAssignment {
    pub project_id: ProjectId,
    pub cluster_id: ClusterId,
    pub namespace: String,
    pub namespace_phase: NamespacePhase,
    /// Somebody asked to have the project taken from its cluster.
    pub withdrawn_at: Option<Timestamp>,
    pub status: NamespaceStatus,
    pub revision: Revision,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl ClusterAssignment {
    /// Whether there is something on the cluster that the placement loop made, or may
    /// have made. The local engine makes its folders itself.
    pub fn is_made_by_placement(&self) -> bool {
        // The first step is recorded before it is taken, so that nothing was
        // made of one that is Pending.
        use NamespacePhase::{Degraded, Provisioning, Terminating};
        self.status.namespace_uid.is_some()
            || matches!(self.namespace_phase, Provisioning | Degraded | Terminating)
    }
}

impl Cluster {
    pub fn namespace(&self, project: ProjectId) -> String {
        format!("{}{project}", self.namespace_prefix.as_str())
    }

    /// The phase that a namespace begins in. The local engine makes it itself,
    /// once a process serves the cluster, which is when its identity is known;
    /// anywhere else somebody has to make it first.
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
