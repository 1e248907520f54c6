//! The store of roll-outs and their members.

use std::collections::BTreeMap;
use std::time::Duration;

use slipway_core::ids::{ProjectId, RolloutId};
use slipway_core::rollouts::record::{Member, MemberState, Progress, Rollout, RolloutState};
use slipway_core::rollouts::rules::{RolloutSnapshot, StartSnapshot};
use slipway_core::subject::Subject;

use crate::ports::listed::Listed;
use crate::ports::store::{Error, Page, Rule};

/// Which roll-outs to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RolloutFilter {
    /// Those that concern only this project.
    pub own: Option<ProjectId>,
    pub state: Option<RolloutState>,
    /// The name or the id of what its members belong to.
    pub subject: Option<String>,
}

/// The members that the next decision is about.
#[derive(Debug, Clone, PartialEq)]
pub struct InWork {
    pub rollout: Rollout,
    pub active: Vec<Member>,
    /// In the order in which they are changed, or changed back; as many as may be in work.
    pub queue: Vec<Member>,
    pub failed: u64,
    pub first_failed: Option<Member>,
}

/// Called inside the transaction, maybe twice.
pub type StartRule<'a> = Rule<'a, StartSnapshot>;
pub type RolloutRule<'a> = Rule<'a, RolloutSnapshot>;

port! {
/// Everything about roll-outs.
pub trait RolloutStore, intercepted by RolloutIntercept {
    async fn rollout_fetch(&self, id: RolloutId) -> Result<Option<Rollout>, Error>;

    async fn rollout_list(
        &self,
        filter: &RolloutFilter,
        page: Page<RolloutId>,
    ) -> Result<Listed<Rollout>, Error>;

    /// How far these are; one without members is left out.
    async fn rollout_progress(
        &self,
        ids: &[RolloutId],
    ) -> Result<BTreeMap<RolloutId, Progress>, Error>;

    /// In the order in which they are changed, after this position.
    async fn rollout_members(
        &self,
        id: RolloutId,
        state: Option<MemberState>,
        page: Page<i32>,
    ) -> Result<Vec<Member>, Error>;

    /// Roll-outs in which the loop has something to do, oldest first, `limit` at most.
    async fn rollout_moving(&self, limit: u32) -> Result<Vec<RolloutId>, Error>;

    async fn rollout_in_work(&self, id: RolloutId) -> Result<Option<InWork>, Error>;

    /// Decides whether a roll-out of this subject may begin, its row locked.
    async fn rollout_start(
        &self,
        subject: Subject,
        rule: &mut StartRule<'_>,
    ) -> Result<(), Error>;

    /// Decides about one roll-out, its row locked.
    async fn rollout_decide(
        &self,
        id: RolloutId,
        rule: &mut RolloutRule<'_>,
    ) -> Result<(), Error>;

    /// Removes roll-outs that ended longer than `keep` ago, `limit` at most, with their
    /// members. Answers how many.
    async fn rollout_prune(&self, keep: Duration, limit: u32) -> Result<u64, Error>;
}
}
