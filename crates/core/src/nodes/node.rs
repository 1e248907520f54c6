//! Nodes: our registry of enrolled agents, the only source of "registered".
//! A node is registered from the moment its token is consumed until somebody
//! or something deregisters it; heartbeats never change that, they only give
//! [`Reachability`].

use std::time::Duration;

use crate::closed_set::closed_set;
use crate::ids::{
    BootstrapTokenId, DrainId, NodeId, ProjectId, ProvisionedResourceId, ResourceId, Revision,
};
use crate::nodes::mesh::MeshAddress;
use crate::nodes::token::SecretHash;
use crate::time::Timestamp;

/// The capability of a node that acknowledges a drain.
pub const CAPABILITY_DRAIN: &str = "drain";

closed_set!(
    /// How a node came to be deregistered.
    DeregisteredHow {
        /// It finished its drain and acknowledged that.
        Acknowledged => "acknowledged",
        /// It cannot drain, so there was nothing to wait for.
        Immediate => "immediate",
        /// Its substrate was proven absent: nothing is left to drain.
        SubstrateAbsent => "substrate_absent",
        /// A person decided not to wait.
        Forced => "forced",
        /// It left by itself.
        Left => "left",
        /// A person let its machine enrol again.
        Reenrolled => "reenrolled",
    }
);

closed_set!(
    /// How fresh the last heartbeat is. For display, never for decisions.
    Reachability {
        Unknown => "unknown",
        Healthy => "healthy",
        Stale => "stale",
        Unreachable => "unreachable",
    }
);

impl Reachability {
    pub const STALE_AFTER: Duration = Duration::from_secs(90);
    pub const UNREACHABLE_AFTER: Duration = Duration::from_secs(300);
}

/// The server's request that a node finish what it is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drain {
    pub id: DrainId,
    pub requested_at: Timestamp,
}

/// The end of a registration: when, how, by whom and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deregistration {
    pub at: Timestamp,
    pub how: DeregisteredHow,
    pub by: String,
    pub reason: Option<String>,
}

/// What an agent reports about itself. For display, never for decisions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reported {
    pub version: Option<String>,
    pub checksum: Option<String>,
    pub status: Option<String>,
}

impl Reported {
    /// Fits any version and any hexadecimal checksum: SHA-512 has 128 digits.
    const MAX_LENGTH: usize = 128;

    /// Keeps what can be shown and drops the rest. Nothing is refused: an agent
    /// that reports too much is still alive.
    pub fn of(version: Option<&str>, checksum: Option<&str>, status: Option<&str>) -> Self {
        let kept = |text: Option<&str>| {
            text.map(str::trim)
                .filter(|text| (1..=Self::MAX_LENGTH).contains(&text.len()))
                .filter(|text| !text.chars().any(char::is_control))
                .map(str::to_owned)
        };
        Self { version: kept(version), checksum: kept(checksum), status: kept(status) }
    }
}

/// An enrolled node agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub id: NodeId,
    pub project_id: ProjectId,
    pub resource_id: ResourceId,
    pub provisioned_resource_id: ProvisionedResourceId,
    pub bootstrap_token_id: BootstrapTokenId,
    pub hostname: String,
    pub public_key: [u8; 32],
    /// The hash of its key; `None` once the key is revoked.
    pub key_hash: Option<SecretHash>,
    /// The hash of the key that was revoked. It admits to nothing: it says that a
    /// repeated deregister comes from this node.
    pub former_key_hash: Option<SecretHash>,
    pub capabilities: Vec<String>,
    /// Stays when the node has left; another node may then have the same one.
    pub mesh: MeshAddress,
    pub reported: Reported,
    pub revision: Revision,
    pub registered_at: Timestamp,
    pub last_heartbeat_at: Option<Timestamp>,
    pub drain: Option<Drain>,
    pub deregistration: Option<Deregistration>,
}

impl Node {
    pub const fn is_registered(&self) -> bool {
        self.deregistration.is_none()
    }

    /// Whether it enrolled and was never heard of since: its machine may not have stored
    /// its identity.
    pub const fn is_silent(&self) -> bool {
        self.is_registered() && self.last_heartbeat_at.is_none()
    }

    pub fn can_drain(&self) -> bool {
        self.capabilities.iter().any(|capability| capability == CAPABILITY_DRAIN)
    }

    /// Takes the node out of the registry and revokes its key.
    pub(crate) fn deregistered(&self, deregistration: Deregistration) -> Self {
        Self {
            key_hash: None,
            former_key_hash: self.key_hash,
            deregistration: Some(deregistration),
            ..self.clone()
        }
    }

    pub fn reachability(&self, now: Timestamp) -> Reachability {
        match self.last_heartbeat_at.map(|at| now.since(at)) {
            None => Reachability::Unknown,
            Some(age) if age < Reachability::STALE_AFTER => Reachability::Healthy,
            Some(age) if age <= Reachability::UNREACHABLE_AFTER => Reachability::Stale,
            Some(_) => Reachability::Unreachable,
        }
    }
}

impl Node {
    /// How long nothing was heard of a registered node that should report; `None` while it
    /// reports in time.
    pub fn silent_for(&self, now: Timestamp) -> Option<Duration> {
        let silence = now.since(self.last_heartbeat_at.unwrap_or(self.registered_at));
        (self.is_registered() && silence >= Reachability::STALE_AFTER).then_some(silence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{at, mk_node};

    #[test]
    fn what_cannot_be_shown_of_an_agent_is_left_out() {
        let long = "x".repeat(129);
        let said = Reported::of(Some(" 1.4.2 "), Some(&long), Some("a\nb"));
        assert_eq!(said, Reported { version: Some("1.4.2".to_owned()), ..Reported::default() });
        assert_eq!(Reported::of(Some(""), Some(" "), None), Reported::default());
    }

    #[test]
    fn reachability_follows_the_age_of_the_last_heartbeat() {
        let mut node = mk_node();
        assert_eq!(node.reachability(at(1)), Reachability::Unknown);
        node.last_heartbeat_at = Some(at(1_000));
        for (now, expected) in [
            (1_089, Reachability::Healthy),
            (1_090, Reachability::Stale),
            (1_300, Reachability::Stale),
            (1_301, Reachability::Unreachable),
        ] {
            assert_eq!(node.reachability(at(now)), expected, "{now}");
            let silence = (now >= 1_090).then(|| Duration::from_secs(now.unsigned_abs() - 1_000));
            assert_eq!(node.silent_for(at(now)), silence, "{now}");
            assert!(node.is_registered(), "heartbeats never change registration");
        }
    }
}
