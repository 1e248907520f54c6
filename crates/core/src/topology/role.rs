//! What a server is for.

use crate::closed_set::closed_set;

closed_set!(
    /// The part of a server in its workspace.
    NodeRole {
        ControlPlane => "ControlPlane",
        Worker => "Worker",
        LoadBalancer => "LoadBalancer",
    }
);

impl NodeRole {
    /// Whether its servers are locked whatever the declaration says.
    pub const fn is_always_locked(self) -> bool {
        matches!(self, Self::ControlPlane)
    }

    /// When it goes in a teardown: lower goes first.
    pub const fn teardown_rank(self) -> u8 {
        match self {
            Self::Worker => 0,
            Self::LoadBalancer => 1,
            Self::ControlPlane => 2,
        }
    }
}
