//! Roll-outs of stacks against a model: agents that poll and report, people who submit, pause,
//! abort and roll back, in any order.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::strategy::Strategy;

use super::*;
use crate::fixtures::fleet::mk_stack;
use crate::fixtures::{at, mk_actor, uuid};
use crate::fleet::object::{ObjectSnapshot, Submitted, submit};
use crate::fleet::offer::{Candidate, InRollout, Legs, ObjectFact, Offer, Terms, offer};
use crate::fleet::per_agent::Rendered;
use crate::rollouts::RolloutsWrite;
use crate::rollouts::next::{Observed, next};
use crate::rollouts::record::Strategy as How;
use crate::rollouts::rules::{RolloutSnapshot, abort, pause, record, resume};
use crate::text::Reason;

const AGENTS: u128 = 6;

/// A stack, its objects and its roll-outs, as the store would have them.
struct Model {
    stack: Stack,
    /// In the order of their numbers.
    objects: Vec<(DeploymentObjectId, String)>,
    rollouts: BTreeMap<RolloutId, (Rollout, Vec<Member>)>,
    held: BTreeMap<AgentId, DeploymentObjectId>,
    reports: BTreeMap<(AgentId, DeploymentObjectId), ReportStatus>,
    drawn: u128,
}

fn agent(number: u128) -> AssociatedAgent {
    AssociatedAgent {
        id: AgentId::new(uuid(10 + number)),
        name: format!("agent-{number}"),
        labels: vec![if number.is_multiple_of(2) { "test" } else { "prod" }.to_owned()],
    }
}

impl Model {
    fn new(strategy: How) -> Self {
        let rolling = Rolling { strategy: Some(strategy), ..Rolling::default() };
        Self {
            stack: Stack { rolling, ..mk_stack() },
            objects: Vec::new(),
            rollouts: BTreeMap::new(),
            held: BTreeMap::new(),
            reports: BTreeMap::new(),
            drawn: 1_000,
        }
    }

    fn newest(&self) -> Option<DeploymentObjectId> {
        self.objects.last().map(|(id, _)| *id)
    }

    fn under_way(&self) -> Option<&(Rollout, Vec<Member>)> {
        let id = self.stack.rolling.rollout_id?;
        self.rollouts.get(&id).filter(|(rollout, _)| rollout.ended_at.is_none())
    }

    fn content(&self, id: DeploymentObjectId) -> &str {
        &self.objects.iter().find(|(one, _)| *one == id).expect("an object").1
    }

    fn apply(&mut self, commit: &Commit) {
        for write in &commit.writes {
            match write {
                Write::Fleet(write) => match &**write {
                    FleetWrite::StackUpdate(stack) => {
                        let revision = stack.revision.next();
                        self.stack = Stack { revision, ..stack.clone() };
                    }
                    FleetWrite::ObjectInsert(object) => {
                        self.objects.push((object.id, object.content.clone()));
                    }
                    FleetWrite::ObjectsMake(made) => {
                        for one in made {
                            let content = one
                                .copy_of
                                .map(|of| self.content(of).to_owned())
                                .unwrap_or_default();
                            self.objects.push((one.id, content));
                        }
                    }
                    other => panic!("{other:?}"),
                },
                Write::Rollouts(RolloutsWrite::RolloutInsert(rollout, members)) => {
                    let open = |(one, _): &(Rollout, Vec<Member>)| one.ended_at.is_none();
                    assert!(!self.rollouts.values().any(open), "one at a time");
                    self.rollouts.insert(rollout.id, (rollout.clone(), members.clone()));
                }
                Write::Rollouts(RolloutsWrite::RolloutUpdate(rollout)) => {
                    let revision = rollout.revision.next();
                    let after = Rollout { revision, ..rollout.clone() };
                    self.rollouts.get_mut(&rollout.id).expect("it").0 = after;
                }
                Write::Rollouts(RolloutsWrite::MembersEnd(id, changes)) => {
                    for change in changes {
                        let members = &mut self.rollouts.get_mut(id).expect("it").1;
                        let member = members.iter_mut().find(|one| one.subject == change.member);
                        member.expect("a member").state = change.to;
                    }
                }
                Write::Rollouts(RolloutsWrite::FailedBecome(id, state)) => {
                    let members = &mut self.rollouts.get_mut(id).expect("it").1;
                    let failed = members.iter_mut().filter(|one| one.state == MemberState::Failed);
                    failed.for_each(|member| member.state = *state);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn submit(&mut self) {
        self.drawn += 1;
        let id = DeploymentObjectId::new(uuid(self.drawn));
        let snapshot = ObjectSnapshot {
            now: at(1_000),
            stack: Some(self.stack.clone()),
            accepts_secrets: false,
            object: None,
            newest: self.newest(),
            newest_is_marker: self.newest().is_some_and(|id| self.content(id).is_empty()),
            remaining: None,
            rollout: self.under_way().map(|(rollout, _)| rollout.clone()),
            agents: (0..AGENTS).map(agent).collect(),
        };
        let content = Submitted::parse(&format!("v: {}", self.drawn), false).unwrap();
        let commit = submit(&snapshot, id, &content, &mk_actor()).unwrap();
        self.apply(&commit);
    }

    fn control(&mut self, what: u8) {
        let Some((rollout, _)) = self.under_way().cloned() else { return };
        let reason = Reason::parse("the model says so").unwrap();
        let snapshot = RolloutSnapshot { now: at(1_000), rollout, stack: Some(self.stack.clone()) };
        let actor = mk_actor();
        let decided = match what {
            0 => pause(&snapshot, &reason, &actor),
            1 => resume(&snapshot, false, &actor),
            2 => resume(&snapshot, true, &actor),
            3 => abort(&snapshot, false, &reason, &actor),
            _ => abort(&snapshot, true, &reason, &actor),
        };
        if let Ok(commit) = decided {
            self.apply(&commit);
        }
    }

    /// What the loop does.
    fn pass(&mut self) {
        let Some((rollout, members)) = self.under_way().cloned() else { return };
        if !rollout.state.is_moving() {
            return;
        }
        let back = rollout.state.is_back();
        let working = if back { MemberState::Reverting } else { MemberState::Changing };
        let queued = |member: &&Member| match back {
            true => member.state.is_changed(),
            false => member.state == MemberState::Waiting,
        };
        let mut queue: Vec<Member> = members.iter().filter(queued).cloned().collect();
        if back {
            queue.reverse();
        }
        queue.truncate(rollout.strategy.parallel as usize);
        let newest = self.newest().expect("an object");
        let judged = |member: &Member| {
            let id = AgentId::new(member.subject.id);
            let report = self.reports.get(&(id, newest));
            let report =
                report.map(|status| LastReport { status: *status, message: None, at: at(1_000) });
            let fact = MemberFact { agent_id: id, is_associated: true, report, health: None };
            (member.clone(), health(member, Some(&fact), false))
        };
        let failed_state = if back { MemberState::RevertFailed } else { MemberState::Failed };
        let failed = members.iter().filter(|member| member.state == failed_state);
        let observed = Observed {
            now: at(1_000),
            active: members.iter().filter(|one| one.state == working).map(judged).collect(),
            queue,
            failed: failed.clone().count() as u64,
            first_failed: failed.clone().next().cloned(),
            rollout: rollout.clone(),
        };
        let decided = next(&observed);
        let snapshot = RolloutSnapshot {
            now: at(1_000),
            rollout: rollout.clone(),
            stack: Some(self.stack.clone()),
        };
        self.apply(&record(&snapshot, &decided, &mk_actor()));
        if decided.enter.is_none() {
            let to = if back { MemberState::Reverting } else { MemberState::Changing };
            let members = &mut self.rollouts.get_mut(&rollout.id).expect("it").1;
            for begun in &decided.begin {
                let member = members.iter_mut().find(|one| one.subject == begun.subject);
                let member = member.expect("a member");
                (member.state, member.changed_at) = (to, Some(at(1_000)));
            }
        }
    }

    fn in_rollout(&self, id: AgentId) -> Option<InRollout> {
        let Rolling { rollout_id, settled, rolls_back, .. } = &self.stack.rolling;
        let (_, members) = &self.rollouts[&(*rollout_id)?];
        let state = members.iter().find(|one| one.subject.id == id.as_uuid()).map(|one| one.state);
        Some(InRollout { may_take: InRollout::takes(state, *rolls_back), settled: *settled })
    }

    fn offered(&self, id: AgentId) -> Offer {
        let fact = |id| ObjectFact {
            id,
            is_marker: self.content(id).is_empty(),
            keeps: false,
            is_for_agent: false,
            is_erased: false,
            is_withdrawn: false,
        };
        let candidate = Candidate {
            stack_id: self.stack.id,
            is_live: true,
            legs: Legs { is_registered: true, has_target: true, ..Legs::default() },
            last_sequence: self.stack.last_sequence,
            newest: self.newest().map(fact),
            rendered: Rendered::NotNeeded,
            held: self.held.get(&id).copied().map(fact),
            in_rollout: self.in_rollout(id),
        };
        offer(&candidate, Terms::default())
    }

    fn poll(&mut self, id: AgentId) {
        if let Offer::Object(object) = self.offered(id) {
            if self.content(object).is_empty() && !self.held.contains_key(&id) {
                return;
            }
            self.held.insert(id, object);
        }
    }

    fn report(&mut self, id: AgentId, status: ReportStatus) {
        let Some(held) = self.held.get(&id).copied() else { return };
        self.reports.insert((id, held), status);
        if status == ReportStatus::Success && self.content(held).is_empty() {
            self.held.remove(&id);
        }
    }
}

fn strategy() -> impl Strategy<Value = How> {
    (0..3_u32, 1..4_u32, 0..2_u32, any::<bool>()).prop_map(
        |(canary, parallel, failures_allowed, waves)| How {
            canary,
            parallel,
            failures_allowed,
            waves: if waves { vec!["test".to_owned(), "prod".to_owned()] } else { Vec::new() },
            ..How::default()
        },
    )
}

proptest! {
    /// Whatever people and agents do: an agent outside the wave is never offered the newest
    /// object, at most as many as the limit are on their way to it, every agent that has
    /// something is offered exactly one object with content, and in the end, once everything
    /// is reported, all have the same.
    #[test]
    fn nobody_outside_the_wave_gets_the_new_object(
        strategy in strategy(),
        steps in proptest::collection::vec((0..10_u8, 0..AGENTS, any::<bool>()), 1..120),
    ) {
        let parallel = strategy.parallel as usize;
        let mut model = Model::new(strategy);
        for (step, number, works) in steps {
            let id = agent(number).id;
            match step {
                0 => model.submit(),
                1 | 2 => model.poll(id),
                3 | 4 => {
                    let status = if works { ReportStatus::Success } else { ReportStatus::Failure };
                    model.report(id, status);
                }
                5 | 6 => model.pass(),
                other => model.control((other - 7) * 2 + u8::from(works)),
            }
            let Some(newest) = model.newest() else { continue };
            for number in 0..AGENTS {
                let id = agent(number).id;
                let offered = model.offered(id);
                if model.in_rollout(id).is_some_and(|in_rollout| !in_rollout.may_take) {
                    prop_assert!(offered != Offer::Object(newest), "agent {number} is outside");
                }
                prop_assert!(offered != Offer::Release, "it is to have the stack");
                if let Some(held) = model.held.get(&id) {
                    prop_assert!(matches!(offered, Offer::Object(_)), "absent means remove");
                    if let Offer::Object(object) = offered {
                        let removes = model.content(object).is_empty();
                        prop_assert!(
                            !removes || object == newest || object == *held,
                            "agent {number} is told to remove what it should have"
                        );
                    }
                }
            }
            if let Some((_, members)) = model.under_way() {
                let working = members.iter().filter(|one| one.state.is_active()).count();
                // A way back may begin while members are on their way forth.
                prop_assert!(working <= 2 * parallel, "{working} of {parallel}");
            }
        }
        // Everybody works from now on: a roll-out comes to its end, and all have the newest.
        model.submit();
        for _ in 0..200 {
            for number in 0..AGENTS {
                model.poll(agent(number).id);
                model.report(agent(number).id, ReportStatus::Success);
            }
            model.pass();
        }
        prop_assert!(model.under_way().is_none());
        let newest = model.newest().unwrap();
        for number in 0..AGENTS {
            model.poll(agent(number).id);
            prop_assert_eq!(model.held.get(&agent(number).id), Some(&newest));
        }
    }
}

#[test]
fn an_earlier_failure_is_history_and_failing_health_is_waited_for() {
    let member = Member {
        subject: agent(0).id.into(),
        name: "agent-0".to_owned(),
        wave: 0,
        position: 0,
        state: MemberState::Changing,
        before: json!({}),
        changed_at: Some(at(1_000)),
        message: None,
    };
    let fact = |status, at, health| MemberFact {
        agent_id: agent(0).id,
        is_associated: true,
        report: Some(LastReport { status, message: Some("quota".to_owned()), at }),
        health,
    };
    let judge = |fact: &MemberFact, wait| health(&member, Some(fact), wait);
    let early = fact(ReportStatus::Failure, at(999), None);
    assert_eq!(judge(&early, false), Health::Progressing);
    let late = fact(ReportStatus::Failure, at(1_001), None);
    assert_eq!(judge(&late, false), Health::Failed("quota".to_owned()));
    let failing = fact(ReportStatus::Success, at(999), Some(HealthStatus::Failing));
    assert_eq!(judge(&failing, false), Health::Settled);
    assert_eq!(judge(&failing, true), Health::Progressing);
    let gone = MemberFact { is_associated: false, ..late };
    assert!(matches!(judge(&gone, false), Health::Gone(_)));
    assert!(matches!(health(&member, None, false), Health::Gone(_)));
}
