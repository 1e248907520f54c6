//! Roll-outs on a store: one of a subject at a time, members in order, and nobody begins once
//! somebody paused it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use slipway_core::ErrorKind;
use slipway_core::access::audit::Actor;
use slipway_core::commit::{Commit, Write};
use slipway_core::ids::{ProjectId, Revision, RolloutId};
use slipway_core::rollouts::next::{MemberChange, Next};
use slipway_core::rollouts::record::{
    Member, MemberState, Purpose, Rollout, RolloutState, Strategy,
};
use slipway_core::rollouts::rules::{self, RolloutSnapshot, StartSnapshot};
use slipway_core::subject::{Subject, SubjectKind};
use slipway_core::text::Reason;

use super::races::at_once;
use super::world::{World, refused};
use crate::broker::port::ResourceKey;
use crate::ports::store::{Error, Page};
use crate::rollouts::port::{InWork, RolloutFilter};

fn actor() -> Actor {
    Actor::new("key:conformance")
}

fn reason() -> Reason {
    Reason::parse("enough").expect("a valid reason")
}

impl World {
    /// A roll-out over this many resources, of which `parallel` are changed at a time.
    async fn rolled_out(&self, members: usize, parallel: u32) -> (Rollout, Vec<Member>) {
        let mut rollout = self.mk_rollout(parallel).await;
        let mut listed = Vec::new();
        for position in 0..members {
            let declared = self.declare(&self.handle()).await.expect("a declaration");
            listed.push(Member {
                subject: declared.resource.into(),
                name: format!("web-{position}"),
                wave: i32::from(position > 0),
                position: i32::try_from(position).expect("few"),
                state: MemberState::Waiting,
                before: json!({ "version": "v1" }),
                changed_at: None,
                message: None,
            });
        }
        self.start_rollout(&rollout, &listed).await.expect("a roll-out");
        rollout = self.rollout(rollout.id).await;
        (rollout, listed)
    }

    async fn mk_rollout(&self, parallel: u32) -> Rollout {
        let blueprint = self.create_blueprint(&self.handle()).await.expect("a blueprint");
        Rollout {
            id: RolloutId::new(self.uuid()),
            revision: Revision::FIRST,
            purpose: Purpose::BlueprintUpgrade,
            subject: blueprint.into(),
            name: "web".to_owned(),
            project_id: None,
            change: json!({ "version": "v2" }),
            strategy: Strategy { parallel, ..Strategy::default() },
            state: RolloutState::Running,
            message: None,
            requested_by: "key:conformance".to_owned(),
            reason: "none given".to_owned(),
            requested_at: slipway_core::Timestamp::ZERO,
            ended_at: None,
        }
    }

    async fn abort_rollout(&self, id: RolloutId) {
        let abort = |seen: &RolloutSnapshot| rules::abort(seen, false, &reason(), &actor());
        self.decide_rollout(id, abort).await.expect("an end");
    }

    async fn start_rollout(&self, rollout: &Rollout, members: &[Member]) -> Result<(), Error> {
        let mut rule =
            |snapshot: &StartSnapshot| rules::start(snapshot, rollout, members, &actor());
        self.store.rollouts.rollout_start(rollout.subject, &mut rule).await
    }

    async fn rollout(&self, id: RolloutId) -> Rollout {
        self.store.rollouts.rollout_fetch(id).await.expect("a read").expect("a roll-out")
    }

    async fn in_work(&self, id: RolloutId) -> InWork {
        self.store.rollouts.rollout_in_work(id).await.expect("a read").expect("a roll-out")
    }

    /// Changes a member in a commit about its resource.
    async fn begin_member(&self, rollout: &Rollout, member: &Member) -> Result<(), Error> {
        let begun = member.begin(rollout, Some(json!({ "version": "v1.5" })));
        let key = ResourceKey::Resource(slipway_core::ids::ResourceId::new(member.subject.id));
        let mut rule = |_: &_| {
            let writes = vec![Write::Rollouts(begun.clone())];
            Ok(Commit { writes, ..Commit::default() })
        };
        self.store.broker.decide(key, &mut rule).await
    }

    async fn decide_rollout(
        &self,
        id: RolloutId,
        mut decided: impl FnMut(&RolloutSnapshot) -> Result<Commit, slipway_core::Refusal> + Send,
    ) -> Result<(), Error> {
        let mut rule = |snapshot: &RolloutSnapshot| decided(snapshot);
        self.store.rollouts.rollout_decide(id, &mut rule).await
    }

    async fn states(&self, id: RolloutId) -> Vec<MemberState> {
        let page = Page { after: None, limit: 100 };
        let members = self.store.rollouts.rollout_members(id, None, page).await.expect("a list");
        members.iter().map(|member| member.state).collect()
    }
}

pub(super) async fn conformance(world: &World) {
    one_of_a_subject_at_a_time(world).await;
    projects_do_not_keep_each_other_waiting(world).await;
    members_go_in_order_and_come_back_in_the_other(world).await;
    what_could_not_be_changed_is_left_alone(world).await;
    what_was_paused_begins_nothing(world).await;
    an_old_one_is_removed_with_its_members(world).await;
}

async fn one_of_a_subject_at_a_time(world: &World) {
    let (rollout, members) = world.rolled_out(1, 1).await;
    let another = Rollout { id: RolloutId::new(world.uuid()), ..rollout.clone() };
    let refusal = world.start_rollout(&another, &members).await;
    assert_eq!(refused(refusal), ErrorKind::RolloutUnderWay);
    world.abort_rollout(rollout.id).await;
    let ended = world.rollout(rollout.id).await;
    assert_eq!((ended.state, ended.revision), (RolloutState::Aborted, rollout.revision.next()));
    assert!(ended.ended_at.is_some());
    world.start_rollout(&another, &members).await.expect("the next one");
    let filter =
        RolloutFilter { subject: Some(rollout.subject.id.to_string()), ..RolloutFilter::default() };
    let page = Page { after: None, limit: 10 };
    let listed = world.store.rollouts.rollout_list(&filter, page).await.expect("a list");
    let states: Vec<_> = listed.iter().map(|rollout| rollout.state).collect();
    assert_eq!(states, [RolloutState::Aborted, RolloutState::Running]);
    let running = RolloutFilter { state: Some(RolloutState::Running), ..filter };
    let listed = world.store.rollouts.rollout_list(&running, page).await.expect("a list");
    assert_eq!(listed.iter().map(|one| one.id).collect::<Vec<_>>(), [another.id]);
    let moving = world.store.rollouts.rollout_moving(100).await.expect("a list");
    assert!(moving.contains(&another.id) && !moving.contains(&rollout.id));
}

async fn projects_do_not_keep_each_other_waiting(world: &World) {
    let (all, members) = world.rolled_out(1, 1).await;
    let [one, other] = [(); 2].map(|()| Some(ProjectId::new(world.uuid())));
    let of = |project_id| Rollout { id: RolloutId::new(world.uuid()), project_id, ..all.clone() };
    let refusal = world.start_rollout(&of(one), &members).await;
    assert_eq!(refused(refusal), ErrorKind::RolloutUnderWay, "that of all has its members");
    world.abort_rollout(all.id).await;
    for project in [one, other] {
        world.start_rollout(&of(project), &members).await.expect("one for each project");
        let refusal = world.start_rollout(&of(project), &members).await;
        assert_eq!(refused(refusal), ErrorKind::RolloutUnderWay, "one at a time");
    }
    let refusal = world.start_rollout(&of(None), &members).await;
    assert_eq!(refused(refusal), ErrorKind::RolloutUnderWay, "those of a project have theirs");
    let nothing = Subject::new(SubjectKind::Blueprint, world.uuid());
    let refusal = world.start_rollout(&Rollout { subject: nothing, ..of(one) }, &members).await;
    assert!(matches!(refusal, Err(Error::NotFound { .. })), "{refusal:?}");
}

async fn members_go_in_order_and_come_back_in_the_other(world: &World) {
    use MemberState::{Changing, Failed, Healthy, RevertFailed, Reverted, Reverting, Waiting};
    let (rollout, members) = world.rolled_out(3, 2).await;
    let seen = world.in_work(rollout.id).await;
    assert_eq!(seen.queue, members[..2], "as many as may be in work");
    world.begin_member(&rollout, &members[0]).await.expect("a change");
    assert_eq!(refused(world.begin_member(&rollout, &members[0]).await), ErrorKind::RevisionStale);
    let seen = world.in_work(rollout.id).await;
    assert_eq!(seen.active.len(), 1);
    let active = &seen.active[0];
    assert_eq!((active.state, &active.before), (Changing, &json!({ "version": "v1.5" })));
    assert!(active.changed_at.is_some());
    assert_eq!(seen.queue, members[1..]);
    world.begin_member(&rollout, &members[1]).await.expect("a change");

    let change = |member: &Member, to, why: Option<&str>| MemberChange {
        member: member.subject,
        to,
        message: why.map(str::to_owned),
    };
    let ended =
        vec![change(&members[0], Healthy, None), change(&members[1], Failed, Some("quota"))];
    let paused = Some((RolloutState::Paused, Some("`web-1` failed: quota".to_owned())));
    let next = Next { ended, enter: paused, ..Next::default() };
    let record = |seen: &RolloutSnapshot| Ok(rules::record(seen, &next, &actor()));
    world.decide_rollout(rollout.id, record).await.expect("a record");
    assert_eq!(world.states(rollout.id).await, [Healthy, Failed, Waiting]);
    let stopped = world.in_work(rollout.id).await;
    assert_eq!((stopped.failed, stopped.rollout.state), (1, RolloutState::Paused));
    let progress = world.store.rollouts.rollout_progress(&[rollout.id]).await.expect("counts");
    let progress = &progress[&rollout.id];
    assert_eq!((progress.of(Healthy), progress.of(Failed), progress.total()), (1, 1, 3));
    let failed = Page { after: None, limit: 10 };
    let failed = world.store.rollouts.rollout_members(rollout.id, Some(Failed), failed).await;
    assert_eq!(failed.expect("a list")[0].message.as_deref(), Some("quota"));

    // Resumed, it is observed again.
    let resume = |seen: &RolloutSnapshot| rules::resume(seen, false, &actor());
    world.decide_rollout(rollout.id, resume).await.expect("it goes on");
    assert_eq!(world.states(rollout.id).await, [Healthy, Changing, Waiting]);

    let back = |seen: &RolloutSnapshot| rules::abort(seen, true, &reason(), &actor());
    world.decide_rollout(rollout.id, back).await.expect("the way back");
    let seen = world.in_work(rollout.id).await;
    let names: Vec<_> = seen.queue.iter().map(|member| member.name.as_str()).collect();
    assert_eq!(names, ["web-1", "web-0"]);
    for member in &seen.queue {
        world.begin_member(&seen.rollout, member).await.expect("what it had");
    }
    assert_eq!(world.states(rollout.id).await, [Reverting, Reverting, Waiting]);
    let ended =
        vec![change(&members[0], Reverted, None), change(&members[1], RevertFailed, Some("gone"))];
    let next = Next { ended, enter: Some((RolloutState::RolledBack, None)), ..Next::default() };
    let record = |seen: &RolloutSnapshot| Ok(rules::record(seen, &next, &actor()));
    world.decide_rollout(rollout.id, record).await.expect("a record");
    assert_eq!(world.states(rollout.id).await, [Reverted, RevertFailed, Waiting]);
    assert_eq!(world.rollout(rollout.id).await.state, RolloutState::RolledBack);
}

/// One that was refused was never changed: it is tried again, and has nothing to get back.
async fn what_could_not_be_changed_is_left_alone(world: &World) {
    let (rollout, members) = world.rolled_out(1, 1).await;
    let refused = MemberChange {
        member: members[0].subject,
        to: MemberState::Failed,
        message: Some("it is Failed".to_owned()),
    };
    let paused = Some((RolloutState::Paused, None));
    let next = Next { ended: vec![refused], enter: paused, ..Next::default() };
    let record = |seen: &RolloutSnapshot| Ok(rules::record(seen, &next, &actor()));
    world.decide_rollout(rollout.id, record).await.expect("a record");
    let resume = |seen: &RolloutSnapshot| rules::resume(seen, false, &actor());
    world.decide_rollout(rollout.id, resume).await.expect("it goes on");
    assert_eq!(world.in_work(rollout.id).await.queue, members, "as it was before");
    world.decide_rollout(rollout.id, record).await.expect("a record");
    let back = |seen: &RolloutSnapshot| rules::abort(seen, true, &reason(), &actor());
    world.decide_rollout(rollout.id, back).await.expect("the way back");
    let seen = world.in_work(rollout.id).await;
    assert_eq!((seen.active, seen.queue), (Vec::new(), Vec::new()));
}

async fn what_was_paused_begins_nothing(world: &World) {
    let (rollout, members) = world.rolled_out(1, 1).await;
    let pause = |seen: &RolloutSnapshot| rules::pause(seen, &reason(), &actor());
    world.decide_rollout(rollout.id, pause).await.expect("a pause");
    let begun = world.begin_member(&rollout, &members[0]).await;
    assert_eq!(refused(begun), ErrorKind::RevisionStale);
    assert_eq!(world.states(rollout.id).await, [MemberState::Waiting]);
}

async fn an_old_one_is_removed_with_its_members(world: &World) {
    let (rollout, _) = world.rolled_out(2, 1).await;
    let prune = async |keep| world.store.rollouts.rollout_prune(keep, 100).await.expect("a prune");
    let hour = Duration::from_secs(3_600);
    assert_eq!(prune(hour).await, 0, "it has not ended");
    world.abort_rollout(rollout.id).await;
    assert_eq!(prune(hour).await, 0, "it is young");
    assert!(prune(Duration::ZERO).await >= 1);
    assert!(world.store.rollouts.rollout_fetch(rollout.id).await.expect("a read").is_none());
    assert!(world.states(rollout.id).await.is_empty());
}

pub(super) async fn races(world: &Arc<World>) {
    nobody_begins_after_a_pause(world).await;
    one_of_a_project_and_one_of_all_do_not_both_begin(world).await;
}

async fn one_of_a_project_and_one_of_all_do_not_both_begin(world: &Arc<World>) {
    let (first, members) = world.rolled_out(1, 1).await;
    world.abort_rollout(first.id).await;
    let start = |project_id| {
        let (world, members) = (Arc::clone(world), members.clone());
        let rollout = Rollout { id: RolloutId::new(world.uuid()), project_id, ..first.clone() };
        async move { world.start_rollout(&rollout, &members).await }
    };
    let project = Some(ProjectId::new(world.uuid()));
    let (one, all) = at_once(start(project), start(None)).await;
    assert_eq!(usize::from(one.is_ok()) + usize::from(all.is_ok()), 1, "{one:?} {all:?}");
    let refusal = if one.is_ok() { all } else { one };
    assert_eq!(refused(refusal), ErrorKind::RolloutUnderWay);
}

/// Whoever was told that it is paused sees nobody begin after that.
async fn nobody_begins_after_a_pause(world: &Arc<World>) {
    let (rollout, members) = world.rolled_out(1, 1).await;
    let (pauser, beginner) = (Arc::clone(world), Arc::clone(world));
    let (id, member) = (rollout.id, members[0].clone());
    let pause = async move {
        let rule = |seen: &RolloutSnapshot| rules::pause(seen, &reason(), &actor());
        pauser.decide_rollout(id, rule).await.expect("a pause");
        pauser.states(id).await
    };
    let begin = async move { beginner.begin_member(&rollout, &member).await };
    let (when_paused, begun) = at_once(pause, begin).await;
    let states = world.states(id).await;
    assert_eq!(states, when_paused, "nobody began after the pause was answered");
    match begun {
        Ok(()) => assert_eq!(states, [MemberState::Changing]),
        Err(error) => {
            assert_eq!(refused(Err::<(), _>(error)), ErrorKind::RevisionStale);
            assert_eq!(states, [MemberState::Waiting]);
        }
    }
}
