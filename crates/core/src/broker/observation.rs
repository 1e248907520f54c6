//! What an engine reports about one composite, before it is reduced to the
//! [`Composite`] that decisions use.

use serde_json::Value;

use crate::broker::phase::Composite;
use crate::nodes::token::Carried;
use crate::secret::Secret;

/// One composite as observed.
#[derive(Debug, Clone)]
pub enum CompositeReport {
    /// Could not be read, or could not be proven to be ours; says why.
    Unknown {
        reason: String,
    },
    /// An object has that name but carries another installation or another id:
    /// we must not touch it, and ours is not proven absent.
    Foreign {
        reason: String,
    },
    /// Proven absent: same cluster or root, same kind, and the object is not there.
    Absent,
    Present(Box<LiveComposite>),
}

/// The facts about a composite that exists.
#[derive(Debug, Clone)]
pub struct LiveComposite {
    /// Assigned by the substrate when the object was made; deletes name it.
    pub uid: String,
    pub ready: bool,
    /// The message of the deliberate failure marker.
    pub failure: Option<String>,
    pub terminating: bool,
    /// Hash over the fields that we own, as they are now.
    pub owned_hash: String,
    pub carried: Carried,
    /// The injected document, which a re-apply writes back verbatim.
    pub injected: Option<Secret>,
    /// For display, never for decisions.
    pub evidence: Value,
}

impl CompositeReport {
    /// The fact for [`crate::broker::phase::next`]. `desired_hash` is the hash of what
    /// we would render; if that failed, nothing counts as drift.
    pub fn composite(&self, desired_hash: Option<&str>) -> Composite {
        match self {
            Self::Unknown { .. } | Self::Foreign { .. } => Composite::Unknown,
            Self::Absent => Composite::Absent,
            Self::Present(live) => Composite::Present {
                ready: live.ready,
                failed: live.failure.is_some(),
                terminating: live.terminating,
                drifted: desired_hash.is_some_and(|hash| hash != live.owned_hash),
            },
        }
    }

    pub fn carried(&self) -> Carried {
        match self {
            // Unknown does not mean that a token is carried. Nothing is minted
            // on a guess, because an unknown composite is never applied.
            Self::Unknown { .. } | Self::Foreign { .. } => Carried::Nothing,
            Self::Absent => Carried::NoObject,
            Self::Present(live) => live.carried,
        }
    }

    pub fn live(&self) -> Option<&LiveComposite> {
        match self {
            Self::Present(live) => Some(live),
            Self::Unknown { .. } | Self::Foreign { .. } | Self::Absent => None,
        }
    }
}
