//! What decisions write about roll-outs.

use crate::ids::RolloutId;
use crate::rollouts::record::{Member, MemberState, Rollout};
use crate::subject::Subject;
use serde_json::Value;

/// One row. An update names the revision in the record.
#[derive(Debug, Clone, PartialEq)]
pub enum RolloutsWrite {
    RolloutInsert(Rollout, Vec<Member>),
    RolloutUpdate(Rollout),
    /// A member is changed in the same commit. Fails the commit if the roll-out was written
    /// since it was read, or the member is not where it was.
    MemberBegin(Begin),
    /// Members enter a state in which they are observed no longer.
    MembersEnd(RolloutId, Vec<crate::rollouts::next::MemberChange>),
    /// Failed members become skipped, or are observed again.
    FailedBecome(RolloutId, MemberState),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Begin {
    /// As it was read.
    pub rollout: Rollout,
    pub member: Subject,
    pub from: MemberState,
    pub to: MemberState,
    /// What it had, if it is changed for the first time.
    pub before: Option<Value>,
}
