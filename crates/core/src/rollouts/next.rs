//! What a roll-out does next: a pure function of what was observed. It never has more members
//! in work than its limit, changes nobody of a later wave before the earlier ones have ended,
//! and nobody at all once too many have failed.

use crate::rollouts::record::{Member, MemberState, Purpose, Rollout, RolloutState};
use crate::subject::Subject;
use crate::time::Timestamp;

/// A member in work as its owner sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It has what it should have, and works.
    Settled,
    Progressing,
    Failed(String),
    /// It was deleted, or does not belong here any more.
    Gone(String),
}

/// What a decision about a roll-out may know.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    pub now: Timestamp,
    pub rollout: Rollout,
    /// The members in work.
    pub active: Vec<(Member, Health)>,
    /// The next members in the order in which they are changed, or changed back: as many as
    /// may be in work, at least one if there is any.
    pub queue: Vec<Member>,
    /// Members that failed and were not skipped; on the way back, those that failed there.
    pub failed: u64,
    /// The first of them.
    pub first_failed: Option<Member>,
}

/// A member enters a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberChange {
    pub member: Subject,
    pub to: MemberState,
    pub message: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Next {
    /// What was observed of the members in work.
    pub ended: Vec<MemberChange>,
    /// Members to be changed, or changed back, in this order.
    pub begin: Vec<Member>,
    /// The roll-out enters this state, with a message for people.
    pub enter: Option<(RolloutState, Option<String>)>,
}

pub fn next(observed: &Observed) -> Next {
    let Observed { rollout, active, queue, .. } = observed;
    let ended: Vec<MemberChange> =
        active.iter().filter_map(|(member, health)| end(observed, member, health)).collect();
    let mut next = Next { ended, ..Next::default() };
    let newly_failed = next.ended.iter().filter(|change| change.to.is_failed());
    let failed = observed.failed + u64::try_from(newly_failed.count()).unwrap_or(u64::MAX);
    let left = active.len() - next.ended.len();
    match rollout.state {
        RolloutState::Running if failed > u64::from(rollout.strategy.failures_allowed) => {
            next.enter = Some((RolloutState::Paused, Some(too_many(observed, &next))));
        }
        RolloutState::Running if left == 0 && queue.is_empty() => {
            let message = (failed > 0).then(|| format!("{failed} failed, which was allowed"));
            next.enter = Some((RolloutState::Done, message));
        }
        RolloutState::RollingBack if left == 0 && queue.is_empty() => {
            let message = (failed > 0).then(|| format!("{failed} did not become healthy again"));
            next.enter = Some((RolloutState::RolledBack, message));
        }
        RolloutState::Running | RolloutState::RollingBack => {
            next.begin = begin(observed, &next.ended);
        }
        RolloutState::Paused
        | RolloutState::Done
        | RolloutState::Aborted
        | RolloutState::RolledBack => {}
    }
    next
}

/// The state that a member in work enters, if it does.
fn end(observed: &Observed, member: &Member, health: &Health) -> Option<MemberChange> {
    let back = member.state == MemberState::Reverting;
    let (settled, failed) = match back {
        true => (MemberState::Reverted, MemberState::RevertFailed),
        false => (MemberState::Healthy, MemberState::Failed),
    };
    let (to, message) = match health {
        Health::Settled => (settled, None),
        Health::Failed(why) => (failed, Some(why.clone())),
        Health::Gone(why) => (MemberState::Gone, Some(why.clone())),
        Health::Progressing => {
            let within = observed.rollout.strategy.healthy_within();
            let late = member.changed_at.is_some_and(|at| at.plus(within) <= observed.now);
            if !late {
                return None;
            }
            let message = format!("it did not become healthy within {} s", within.as_secs());
            (failed, Some(message))
        }
    };
    Some(MemberChange { member: member.subject, to, message })
}

/// The next members of the wave that is in work, as many as the limit leaves room for.
fn begin(observed: &Observed, ended: &[MemberChange]) -> Vec<Member> {
    let Observed { rollout, active, queue, .. } = observed;
    let still = |member: &&Member| ended.iter().all(|change| change.member != member.subject);
    let active: Vec<&Member> = active.iter().map(|(member, _)| member).filter(still).collect();
    let limit = usize::try_from(rollout.strategy.parallel).unwrap_or(usize::MAX);
    let room = limit.saturating_sub(active.len());
    // All members in work are of one wave, and the queue is in order.
    let Some(wave) = active.first().copied().or(queue.first()).map(|member| member.wave) else {
        return Vec::new();
    };
    queue.iter().filter(|member| member.wave == wave).take(room).cloned().collect()
}

fn too_many(observed: &Observed, next: &Next) -> String {
    let last = next.ended.iter().rev().find(|change| change.to == MemberState::Failed);
    let just_now = last.and_then(|change| {
        let found = observed.active.iter().find(|(member, _)| member.subject == change.member)?;
        Some((&found.0.name, &change.message))
    });
    let earlier = observed.first_failed.as_ref().map(|member| (&member.name, &member.message));
    match just_now.or(earlier) {
        // The error of a migration may quote data, and what the roll-out says is audited and
        // announced: only the member has it.
        Some((name, _)) if observed.rollout.purpose == Purpose::TenantMigration => {
            format!("`{name}` failed: see `slipway tenant explain {name}`")
        }
        Some((name, why)) => format!("`{name}` failed: {}", why.as_deref().unwrap_or("no reason")),
        None => "more members failed than are allowed".to_owned(),
    }
}

/// The wave of every member: the first for the canaries, then one for each selector, then the
/// rest. `selected` has the place of the selector that fits each member, in the order of
/// names; the canaries are the first of the first wave that has any.
pub fn waves(selected: &[Option<usize>], selectors: usize, canary: u32) -> Vec<i32> {
    let wave = |place: &Option<usize>| i32::try_from(place.unwrap_or(selectors) + 1);
    let mut waves: Vec<i32> = selected.iter().map(|one| wave(one).unwrap_or(i32::MAX)).collect();
    let Some(first) = waves.iter().copied().min() else { return waves };
    let canaries = waves.iter_mut().filter(|wave| **wave == first);
    for wave in canaries.take(usize::try_from(canary).unwrap_or(usize::MAX)) {
        *wave = 0;
    }
    waves
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::Value;
    use uuid::Uuid;

    use super::*;
    use crate::fixtures::at;
    use crate::rollouts::record::Strategy as How;
    use crate::rollouts::rules::tests::mk_rollout;
    use crate::subject::SubjectKind;

    fn mk_members(waves: &[i32]) -> Vec<Member> {
        let member = |(position, wave): (usize, &i32)| Member {
            subject: Subject::new(SubjectKind::Resource, Uuid::from_u128(position as u128 + 1)),
            name: format!("web-{position}"),
            wave: *wave,
            position: i32::try_from(position).unwrap(),
            state: MemberState::Waiting,
            before: Value::Null,
            changed_at: None,
            message: None,
        };
        waves.iter().enumerate().map(member).collect()
    }

    /// A roll-out with all of its members, played by a fate for each of them.
    struct Play {
        rollout: Rollout,
        members: Vec<Member>,
    }

    impl Play {
        fn observed(&self, fate: &BTreeMap<Subject, Health>) -> Observed {
            let back = self.rollout.state == RolloutState::RollingBack;
            let in_work = if back { MemberState::Reverting } else { MemberState::Changing };
            let active = self.members.iter().filter(|member| member.state == in_work);
            let queued = |member: &&Member| match back {
                true => member.state.is_changed(),
                false => member.state == MemberState::Waiting,
            };
            let mut queue: Vec<Member> = self.members.iter().filter(queued).cloned().collect();
            queue.sort_by_key(|member| member.position);
            if back {
                queue.reverse();
            }
            queue.truncate(self.rollout.strategy.parallel as usize);
            let counted = if back { MemberState::RevertFailed } else { MemberState::Failed };
            let failed = |member: &&Member| member.state == counted;
            let first_failed = self.members.iter().find(failed).cloned();
            Observed {
                now: at(1_000),
                rollout: self.rollout.clone(),
                active: active
                    .map(|member| (member.clone(), fate[&member.subject].clone()))
                    .collect(),
                failed: self.members.iter().filter(failed).count() as u64,
                first_failed,
                queue,
            }
        }

        fn perform(&mut self, next: &Next) {
            for change in &next.ended {
                let member = self.member(change.member);
                member.state = change.to;
                member.message.clone_from(&change.message);
            }
            let to = match self.rollout.state {
                RolloutState::RollingBack => MemberState::Reverting,
                _ => MemberState::Changing,
            };
            for begun in &next.begin {
                let member = self.member(begun.subject);
                member.state = to;
                member.changed_at = Some(at(1_000));
            }
            if let Some((state, _)) = &next.enter {
                self.rollout.state = *state;
            }
        }

        fn member(&mut self, subject: Subject) -> &mut Member {
            self.members.iter_mut().find(|member| member.subject == subject).unwrap()
        }
    }

    fn health() -> impl Strategy<Value = Health> {
        prop_oneof![
            4 => Just(Health::Settled),
            2 => Just(Health::Progressing),
            1 => Just(Health::Failed("quota".to_owned())),
            1 => Just(Health::Gone("deleted".to_owned())),
        ]
    }

    proptest! {
        /// Whatever the members do: limits and order hold in every change, nobody begins after
        /// too many failed, and it ends when every member has.
        #[test]
        fn limits_and_order_hold_whatever_happens(
            waves in prop::collection::vec(0..4_i32, 0..20),
            parallel in 1..6_u32,
            failures_allowed in 0..3_u32,
            fates in prop::collection::vec(prop::collection::vec(health(), 20), 1..60),
        ) {
            let mut sorted = waves;
            sorted.sort_unstable();
            let strategy = How { parallel, failures_allowed, ..How::default() };
            let mut play = Play {
                rollout: Rollout { strategy, ..mk_rollout() },
                members: mk_members(&sorted),
            };
            for fates in &fates {
                let subjects = play.members.iter().map(|member| member.subject);
                let fate: BTreeMap<_, _> = subjects.zip(fates.iter().cloned()).collect();
                let observed = play.observed(&fate);
                let next = next(&observed);
                prop_assert_eq!(&next, &super::next(&observed), "it is a function");
                play.perform(&next);
                let of = |state| play.members.iter().filter(move |one| one.state == state);
                prop_assert!(of(MemberState::Changing).count() <= parallel as usize);
                if let Some(first) = next.begin.first() {
                    let earlier = |member: &&Member| member.wave < first.wave;
                    prop_assert_eq!(of(MemberState::Waiting).filter(earlier).count(), 0);
                    prop_assert_eq!(of(MemberState::Changing).filter(earlier).count(), 0);
                    prop_assert!(of(MemberState::Failed).count() <= failures_allowed as usize);
                }
                match play.rollout.state {
                    RolloutState::Done => {
                        let open = [MemberState::Waiting, MemberState::Changing];
                        prop_assert!(open.into_iter().all(|state| of(state).next().is_none()));
                    }
                    RolloutState::Paused => prop_assert!(next.begin.is_empty()),
                    state => prop_assert_eq!(state, RolloutState::Running),
                }
            }
        }

        /// On the way back everybody who was changed gets back what they had, in the other
        /// order, and nobody else is touched. One that is not healthy there stops nobody.
        #[test]
        fn the_way_back_takes_everybody_who_was_changed(
            states in prop::collection::vec((0..6_usize, any::<bool>()), 1..15),
            parallel in 1..4_u32,
        ) {
            let possible = [
                MemberState::Waiting, MemberState::Changing, MemberState::Healthy,
                MemberState::Failed, MemberState::Skipped, MemberState::Gone,
            ];
            let mut members = mk_members(&vec![0; states.len()]);
            for (member, (state, _)) in members.iter_mut().zip(&states) {
                member.state = possible[*state];
            }
            let before = members.clone();
            let strategy = How { parallel, ..How::default() };
            let state = RolloutState::RollingBack;
            let mut play = Play { rollout: Rollout { strategy, state, ..mk_rollout() }, members };
            let health = |works: bool| match works {
                true => Health::Settled,
                false => Health::Failed("quota".to_owned()),
            };
            let fates = before.iter().zip(&states);
            let fates = fates.map(|(member, (_, works))| (member.subject, health(*works))).collect();
            let mut order = Vec::new();
            for _ in 0..=before.len() + 1 {
                let next = next(&play.observed(&fates));
                order.extend(next.begin.iter().map(|member| member.position));
                play.perform(&next);
            }
            prop_assert_eq!(play.rollout.state, RolloutState::RolledBack);
            prop_assert!(order.windows(2).all(|pair| pair[0] > pair[1]), "{:?}", order);
            for ((member, before), (_, works)) in play.members.iter().zip(&before).zip(&states) {
                let expected = match (before.state.is_changed(), works) {
                    (false, _) => before.state,
                    (true, true) => MemberState::Reverted,
                    (true, false) => MemberState::RevertFailed,
                };
                prop_assert_eq!(member.state, expected);
            }
        }
    }

    #[test]
    fn a_member_that_takes_too_long_pauses_it_and_says_so() {
        let mut play = Play { rollout: mk_rollout(), members: mk_members(&[0, 1]) };
        play.members[0].state = MemberState::Changing;
        play.members[0].changed_at = Some(at(1_000).minus(std::time::Duration::from_secs(1_800)));
        let fate = play.members.iter().map(|one| (one.subject, Health::Progressing)).collect();
        let next = next(&play.observed(&fate));
        let (state, message) = next.enter.unwrap();
        assert_eq!(state, RolloutState::Paused);
        let message = message.unwrap();
        assert!(message.contains("`web-0` failed: it did not become healthy within 1800 s"));
        assert!(next.begin.is_empty());
    }

    #[test]
    fn the_error_of_a_migration_stays_with_its_member() {
        let rollout = Rollout { purpose: Purpose::TenantMigration, ..mk_rollout() };
        let mut play = Play { rollout, members: mk_members(&[0, 1]) };
        play.members[0].state = MemberState::Changing;
        let error = "duplicate key value (email)=(ann@example.org)";
        let of = |one: &Member| (one.subject, Health::Failed(error.to_owned()));
        let now = next(&play.observed(&play.members.iter().map(of).collect()));
        assert_eq!(now.ended[0].message.as_deref(), Some(error), "the member has it");
        play.members[0].state = MemberState::Failed;
        play.members[0].message = Some(error.to_owned());
        let later = next(&play.observed(&BTreeMap::new()));
        for next in [now, later] {
            let message = next.enter.unwrap().1.unwrap();
            assert_eq!(message, "`web-0` failed: see `slipway tenant explain web-0`");
        }
    }

    #[test]
    fn canaries_are_the_first_of_the_first_wave() {
        let selected = [None, Some(1), Some(0), Some(0), None];
        assert_eq!(waves(&selected, 2, 1), [3, 2, 0, 1, 3]);
        assert_eq!(waves(&selected, 2, 5), [3, 2, 0, 0, 3]);
        assert_eq!(waves(&[None, None], 0, 0), [1, 1]);
        assert!(waves(&[], 0, 3).is_empty());
    }
}
