//! Roll-outs of stacks: objects reach agents in waves, stop at a failure, and go back.

use std::sync::Arc;

use slipway_core::ErrorKind;
use slipway_core::fleet::object::DeploymentObject;
use slipway_core::ids::{AgentId, DeploymentObjectId, GeneratorId, RolloutId, StackId};
use slipway_core::precondition::Expected;
use slipway_core::rollouts::record::{MemberState, Rollout, RolloutState, Strategy};

use super::client::{Client, admin, content, refused};
use crate::fleet::{agents, links, objects, stacks, tags};
use crate::permits::Permits;
use crate::ports::store::Page;
use crate::rollouts::port::RolloutFilter;
use crate::rollouts::run::Runner;
use crate::rollouts::{control, read};

/// A stack with a strategy whose first object everybody has, and its agents: one with the label
/// `test`, the others without.
pub(super) struct Rolled {
    pub(super) generator: GeneratorId,
    pub(super) stack: StackId,
    pub(super) first: DeploymentObjectId,
    pub(super) agents: Vec<AgentId>,
}

/// The canary alone, then the agents with the label, then the rest, one at a time.
fn one_by_one() -> Strategy {
    Strategy { canary: 1, parallel: 1, waves: vec!["test".to_owned()], ..Strategy::default() }
}

impl Client {
    pub(super) async fn rolled(&self, count: usize, strategy: Strategy) -> Rolled {
        let generator = self.generator().await;
        let (stack, first) = self.deployed(generator).await;
        let mut made = Vec::new();
        for number in 0..count {
            let agent = self.agent_of(generator, stack).await;
            if number == 0 {
                let label = tags::add_label(&self.context, &admin(), agent.into(), "test").await;
                label.expect("a label");
            }
            self.deploy(agent).await;
            let found = agents::fetch(&self.context, &admin(), agent, false).await.expect("it");
            made.push((number > 0, found.name.to_string(), agent));
        }
        // Within a wave they go by name.
        made.sort();
        let made: Vec<_> = made.into_iter().map(|(_, _, agent)| agent).collect();
        let set =
            stacks::set_strategy(&self.context, &admin(), stack, Some(strategy), Expected::Any)
                .await;
        set.expect("a strategy");
        Rolled { generator, stack, first, agents: made }
    }

    /// Deploys everything that it is offered.
    async fn deploy(&self, agent: AgentId) {
        for object in self.poll(agent).await {
            self.report(agent, object.id, "SUCCESS").await.expect("a report");
        }
    }

    pub(super) async fn pass(&self) {
        let permits = Arc::new(Permits::default());
        Runner::new(self.context.clone(), permits).pass().await.expect("a pass");
    }

    pub(super) async fn rollouts(&self, stack: StackId) -> Vec<Rollout> {
        let subject = Some(stack.to_string());
        let filter = RolloutFilter { subject, ..RolloutFilter::default() };
        let page = Page { after: None, limit: 100 };
        let listed = read::rollouts(&self.context, &admin(), filter, page).await.expect("a list");
        listed.into_iter().map(|(rollout, _)| rollout).collect()
    }

    async fn states(&self, id: RolloutId) -> Vec<(String, MemberState)> {
        let page = Page { after: None, limit: 100 };
        let members = read::members(&self.context, &admin(), id, None, page).await;
        members.expect("members").into_iter().map(|one| (one.name, one.state)).collect()
    }

    async fn only(&self, agent: AgentId) -> DeploymentObject {
        let mut offered = self.poll(agent).await;
        assert_eq!(offered.len(), 1, "{offered:?}");
        offered.remove(0)
    }
}

/// Nobody outside the wave is offered the object, and in the end all are.
pub(super) async fn an_object_reaches_agents_in_waves(client: &Client) {
    let Client { context, .. } = client;
    let Rolled { generator, stack, first, agents } = client.rolled(3, one_by_one()).await;
    let second = client.submit(stack, "two").await.expect("an object");
    let rollout = client.rollouts(stack).await;
    assert_eq!(rollout.len(), 1, "{rollout:?}");
    let rollout = rollout[0].clone();
    assert_eq!(rollout.state, RolloutState::Running);
    assert_eq!(client.states(rollout.id).await.len(), 3);
    for agent in &agents {
        assert_eq!(client.only(*agent).await.id, first, "nobody has begun");
    }
    let late = client.agent_of(generator, stack).await;
    let never = client.agent().await;
    for (turn, agent) in agents.iter().enumerate() {
        client.pass().await;
        client.pass().await;
        assert_eq!(client.only(*agent).await.id, second, "turn {turn}");
        for other in &agents[turn + 1..] {
            assert_eq!(client.only(*other).await.id, first, "turn {turn}");
        }
        assert_eq!(client.only(late).await.id, first, "what all have");
        assert_eq!(client.offered(never).await, []);
        client.report(*agent, second, "SUCCESS").await.expect("a report");
    }
    client.pass().await;
    client.pass().await;
    let ended = &client.rollouts(stack).await[0];
    assert_eq!(ended.state, RolloutState::Done, "{ended:?}");
    assert_eq!(client.only(late).await.id, second, "everybody may");
    let before = objects::list(context, &admin(), stack, Page { after: None, limit: 10 }).await;
    let oldest = before.expect("a list")[0].sequence;
    let again = objects::roll_back(context, &admin(), stack, oldest).await.expect("older content");
    assert_eq!(client.rollouts(stack).await.len(), 2, "it is rolled out like any other");
    assert_eq!(client.object(again).await.content, content("one"));
    assert!(client.object(again).await.sequence > client.object(second).await.sequence);
    let refusal = objects::roll_back(context, &admin(), stack, oldest + 1).await;
    assert_eq!(refused(refusal), ErrorKind::DeploymentObjectNotFound);
}

/// A failure pauses it; going back makes a new object, and nobody is left with the bad one.
pub(super) async fn a_failure_pauses_it_and_it_goes_back(client: &Client) {
    let Client { context, .. } = client;
    let Rolled { stack, first, agents, .. } = client.rolled(3, one_by_one()).await;
    let bad = client.submit(stack, "bad").await.expect("an object");
    client.pass().await;
    assert_eq!(client.only(agents[0]).await.id, bad);
    client.report(agents[0], bad, "SUCCESS").await.expect("a report");
    client.pass().await;
    client.pass().await;
    assert_eq!(client.only(agents[1]).await.id, bad);
    client.report(agents[1], bad, "FAILURE").await.expect("a report");
    client.pass().await;
    let rollout = client.rollouts(stack).await[0].clone();
    assert_eq!(rollout.state, RolloutState::Paused);
    assert_eq!(client.only(agents[2]).await.id, first, "it never got it");
    control::resume(context, &admin(), rollout.id, false).await.expect("tried again");
    client.pass().await;
    let state = client.rollouts(stack).await[0].state;
    assert_eq!(state, RolloutState::Running, "the failure is history");
    let back = control::abort(context, &admin(), rollout.id, true, Some("bad")).await;
    back.expect("it goes back");
    assert_eq!(client.only(agents[2]).await.id, first);
    for _ in 0..6 {
        client.pass().await;
        for agent in &agents[..2] {
            let offered = client.only(*agent).await;
            if offered.id != bad {
                assert_eq!(offered.content, content("one"));
                client.report(*agent, offered.id, "SUCCESS").await.expect("a report");
            }
        }
    }
    let ended = client.rollouts(stack).await[0].clone();
    assert_eq!(ended.state, RolloutState::RolledBack, "{ended:?}");
    let highest = client.object(bad).await.sequence;
    for agent in &agents {
        let offered = client.only(*agent).await;
        assert_eq!(offered.content, content("one"));
        assert!(offered.sequence > highest, "a new object");
    }
    // A first object that goes back leaves nothing.
    let generator = client.generator().await;
    let empty = client.stack(generator).await;
    let set =
        stacks::set_strategy(context, &admin(), empty, Some(one_by_one()), Expected::Any).await;
    set.expect("a strategy");
    let agent = client.agent_of(generator, empty).await;
    let other = client.agent_of(generator, empty).await;
    tags::add_label(context, &admin(), agent.into(), "test").await.expect("a label");
    client.submit(empty, "first").await.expect("an object");
    client.pass().await;
    client.only(agent).await;
    assert_eq!(client.offered(other).await, [], "nothing was there before");
    let rollout = client.rollouts(empty).await[0].id;
    control::abort(context, &admin(), rollout, true, None).await.expect("it goes back");
    client.pass().await;
    let marker = client.only(agent).await;
    assert!(marker.is_marker);
    client.report(agent, marker.id, "SUCCESS").await.expect("a report");
    client.pass().await;
    assert_eq!(client.rollouts(empty).await[0].state, RolloutState::RolledBack);
    assert_eq!(client.offered(agent).await, []);
    assert_eq!(client.offered(other).await, []);
}

/// A newer object, a deletion and a withdrawal end what is under way; an abort leaves agents as
/// they are.
pub(super) async fn what_ends_a_rollout(client: &Client) {
    let Client { context, .. } = client;
    let Rolled { stack, first, agents, .. } = client.rolled(2, one_by_one()).await;
    let second = client.submit(stack, "two").await.expect("an object");
    client.pass().await;
    assert_eq!(client.only(agents[0]).await.id, second);
    let third = client.submit(stack, "three").await.expect("an object");
    let both = client.rollouts(stack).await;
    let states: Vec<_> = both.iter().map(|one| one.state).collect();
    assert_eq!(states, [RolloutState::Aborted, RolloutState::Running]);
    assert!(both[0].message.as_deref().is_some_and(|why| why.contains("newer object")));
    assert_eq!(client.only(agents[0]).await.id, second, "it keeps what it has");
    assert_eq!(client.only(agents[1]).await.id, first);
    control::abort(context, &admin(), both[1].id, false, Some("enough")).await.expect("an end");
    client.pass().await;
    assert_eq!(client.only(agents[0]).await.id, second);
    assert_eq!(client.only(agents[1]).await.id, first);
    objects::withdraw(context, &admin(), third).await.expect("it is withdrawn");
    for agent in &agents {
        assert_eq!(client.only(*agent).await.content, content("two"), "the newest that remains");
        client.deploy(*agent).await;
    }

    let fourth = client.submit(stack, "four").await.expect("an object");
    client.pass().await;
    assert_eq!(client.only(agents[0]).await.id, fourth);
    let deletion = client.delete_stack(stack).await.expect("a deletion");
    let last = client.rollouts(stack).await.pop().expect("one");
    assert_eq!(last.state, RolloutState::Aborted, "{last:?}");
    for agent in &agents {
        assert!(client.only(*agent).await.is_marker, "a deletion is for all");
    }
    client.restore(deletion).await.expect("it comes back");
    for agent in &agents {
        assert_eq!(client.only(*agent).await.content, content("two"), "what all had");
    }
    let none = stacks::set_strategy(context, &admin(), stack, None, Expected::Any).await;
    none.expect("no strategy");
    let fifth = client.submit(stack, "five").await.expect("an object");
    for agent in &agents {
        assert_eq!(client.only(*agent).await.id, fifth, "at once");
    }
    let wrong = Strategy { parallel: 0, ..Strategy::default() };
    let refusal = stacks::set_strategy(context, &admin(), stack, Some(wrong), Expected::Any).await;
    assert_eq!(refused(refusal), ErrorKind::InvalidInput);
}

/// An agent that leaves is no failure, and failing health is waited for.
pub(super) async fn members_that_leave_or_fail_later(client: &Client) {
    let Client { context, .. } = client;
    let strategy =
        Strategy { wait_for_health: true, canary: 0, parallel: 2, ..Strategy::default() };
    let Rolled { stack, agents, .. } = client.rolled(2, strategy).await;
    let second = client.submit(stack, "two").await.expect("an object");
    client.pass().await;
    for agent in &agents {
        assert_eq!(client.only(*agent).await.id, second, "both at once");
    }
    links::untarget(context, &admin(), agents[1], stack).await.expect("no target");
    client.report(agents[0], second, "SUCCESS").await.expect("a report");
    let health = |status: &str, at| crate::fleet::reports::SubmitHealth {
        object: second,
        status: status.to_owned(),
        summary: None,
        checked_at: slipway_core::time::Timestamp::from_micros(at),
    };
    let failing = vec![health("failing", 1_000)];
    crate::fleet::reports::health(context, &admin(), agents[0], failing).await.expect("health");
    client.pass().await;
    let rollout = client.rollouts(stack).await[0].clone();
    assert_eq!(rollout.state, RolloutState::Running, "{rollout:?}");
    let states = client.states(rollout.id).await;
    assert!(states.iter().any(|(_, state)| *state == MemberState::Gone), "{states:?}");
    assert!(states.iter().any(|(_, state)| *state == MemberState::Changing), "{states:?}");
    let healthy = vec![health("healthy", 2_000)];
    crate::fleet::reports::health(context, &admin(), agents[0], healthy).await.expect("health");
    client.pass().await;
    client.pass().await;
    assert_eq!(client.rollouts(stack).await[0].state, RolloutState::Done);
}

/// Whoever comes first: one roll-out is under way, and an agent outside has what it had.
pub(super) async fn submit_with_pass(client: &Client) {
    let Rolled { stack, agents, .. } = client.rolled(2, one_by_one()).await;
    client.submit(stack, "two").await.expect("an object");
    let (a, b) = (client.clone(), client.clone());
    let (submitted, ()) =
        crate::testing::races::at_once(async move { a.submit(stack, "three").await }, async move {
            b.pass().await;
        })
        .await;
    submitted.expect("an object");
    let states: Vec<_> = client.rollouts(stack).await.iter().map(|one| one.state).collect();
    assert_eq!(states, [RolloutState::Aborted, RolloutState::Running]);
    assert_eq!(client.only(agents[1]).await.content, content("one"));
}

pub(super) async fn poll_with_abort(client: &Client) {
    let Rolled { stack, agents, .. } = client.rolled(2, one_by_one()).await;
    let second = client.submit(stack, "two").await.expect("an object");
    client.pass().await;
    let rollout = client.rollouts(stack).await[0].id;
    let (a, b) = (client.clone(), client.clone());
    let first = agents[0];
    let (offered, aborted) =
        crate::testing::races::at_once(async move { a.only(first).await.id }, async move {
            control::abort(&b.context, &admin(), rollout, true, None).await
        })
        .await;
    aborted.expect("it goes back");
    if offered == second {
        assert_eq!(client.only(first).await.id, second, "until it is its turn to go back");
    }
    assert_eq!(client.only(agents[1]).await.content, content("one"));
    let deleted = client.delete_stack(stack).await;
    deleted.expect("it goes, whatever is under way");
    assert!(client.only(first).await.is_marker);
}
