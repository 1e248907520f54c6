//! Implements the port `RolloutStore`.

use std::collections::BTreeMap;
use std::time::Duration;

use slipway_app::ports::store::{Error, Page};
use slipway_app::ports::{Listed, RolloutStore};
use slipway_app::rollouts::port::{InWork, RolloutFilter, RolloutRule, StartRule};
use slipway_core::ids::RolloutId;
use slipway_core::rollouts::record::{Member, MemberState, Progress, Rollout};
use slipway_core::subject::Subject;

use super::{Backend, reads, write};

port! {
    RolloutStore {
        read rollout_fetch(id: RolloutId) -> Option<Rollout> = reads::fetch;
        read rollout_list(filter: &RolloutFilter, page: Page<RolloutId>)
            -> Listed<Rollout> = reads::list;
        read rollout_progress(ids: &[RolloutId])
            -> BTreeMap<RolloutId, Progress> = reads::progress;
        read rollout_members(id: RolloutId, state: Option<MemberState>, page: Page<i32>)
            -> Vec<Member> = reads::members;
        read rollout_moving(limit: u32) -> Vec<RolloutId> = reads::moving;
        read_snapshot rollout_in_work(id: RolloutId) -> Option<InWork> = reads::in_work;
        write rollout_prune(keep: Duration, limit: u32) -> u64 = write::prune;
    }
    by_hand {
        async fn rollout_start(
            &self,
            subject: Subject,
            rule: &mut StartRule<'_>,
        ) -> Result<(), Error> {
            self.decided(reads::Starting(subject), rule).await
        }

        async fn rollout_decide(
            &self,
            id: RolloutId,
            rule: &mut RolloutRule<'_>,
        ) -> Result<(), Error> {
            self.decided(reads::ById(id), rule).await
        }
    }
}
