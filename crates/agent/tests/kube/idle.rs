//! What an idle agent costs its cluster, and what it does when the cluster does not
//! answer.

use std::time::Duration;

use slipway_testkit::kube::{Fault, FaultProxy, Odds, Rule};

use crate::world::World;

#[tokio::test]
async fn an_idle_agent_makes_three_requests_per_poll_and_lists_nothing() {
    let Some(mut world) = World::new("idle").await else { return };
    let proxy = FaultProxy::before(world.kubernetes).await;
    world.reach_through(&proxy);
    let content: String = (0..10).map(|index| world.map(&format!("m{index}"), "1")).collect();
    let object = world.server.offer(1, &content);
    let agent = world.agent();
    world.server.reported(&object, "DEPLOY", "SUCCESS").await;
    let polls = world.server.polled(2).await.polls;
    let before = proxy.exchanges().len();
    let calls = world.server.polled(4).await;
    agent.stop().await;
    let made = proxy.exchanges().split_off(before);
    assert!(made.len() <= 3 * (calls.polls - polls + 1), "{made:?}");
    assert!(made.len() >= 3 * (calls.polls - polls - 1), "nothing is checked: {made:?}");
    // Each is about one object by its name.
    for exchange in &made {
        let name = exchange.path.rsplit('/').next().unwrap();
        assert!(
            exchange.method == "GET" && (name == "kube-system" || name.starts_with('m')),
            "{exchange:?}"
        );
    }
}

#[tokio::test]
async fn a_cluster_that_does_not_answer_is_told_and_waited_for() {
    let Some(mut world) = World::new("away").await else { return };
    let proxy = FaultProxy::before(world.kubernetes).await;
    world.reach_through(&proxy);
    let agent = world.agent();
    let object = world.server.offer(1, &world.map("a", "1"));
    world.server.reported(&object, "DEPLOY", "SUCCESS").await;
    let is_told = |is_reachable: bool| {
        move |calls: &crate::stand_in::Calls| {
            let last = calls.heartbeats.last();
            last.is_some_and(|one| one.k8s_reachable == Some(is_reachable))
        }
    };
    world.server.until("that it answers", is_told(true)).await;
    proxy.add(Rule::new(Fault::Lose));
    let marker = world.server.mark(1);
    world.server.until("that it does not", is_told(false)).await;
    world.expect(&[("a", "1")]).await;
    proxy.clear();
    world.server.reported(&marker, "DELETE", "SUCCESS").await;
    world.expect(&[]).await;
    assert_eq!(world.server.calls().events.len(), 2, "an outage is no failure of a stack");
    agent.stop().await;
}

/// Requests are lost, land late, twice, or without an answer; afterwards the cluster is
/// what the last answer says.
#[tokio::test]
async fn whatever_happens_to_requests_the_cluster_converges() {
    let Some(mut world) = World::new("faults").await else { return };
    let proxy = FaultProxy::before(world.kubernetes).await;
    world.reach_through(&proxy);
    let odds = Odds {
        refuse: 40,
        lose: 40,
        delay: 40,
        drop_answer: 40,
        cut_then_forward: 30,
        duplicate: 30,
        longest: Duration::from_millis(200),
    };
    let agent = world.agent();
    for round in 0..3 {
        proxy.randomize(7 + round, odds, odds);
        for number in 1..=3_u32 {
            let content: String = (0..6)
                .map(|index| world.map(&format!("s{number}-{}", index + round), &round.to_string()))
                .collect();
            match (round, number) {
                (2, 2) => world.server.mark(2),
                _ => world.server.offer(number, &content),
            };
        }
        world.server.polled(2).await;
    }
    proxy.clear();
    let last: Vec<_> = [1, 3]
        .into_iter()
        .map(|number| world.server.calls().offered[&crate::stand_in::stack(number)].id.clone())
        .collect();
    for id in &last {
        world.server.reported(id, "DEPLOY", "SUCCESS").await;
    }
    world
        .server
        .until("the removal", |calls| !calls.offered.contains_key(&crate::stand_in::stack(2)))
        .await;
    agent.stop().await;
    let mut expected = Vec::new();
    for number in [1, 3] {
        expected.extend((2..8).map(|index| (format!("s{number}-{index}"), "2".to_owned())));
    }
    expected.sort_unstable();
    // What was sent before may still land, and is harmless then.
    slipway_testkit::wait::until(crate::stand_in::TIMEOUT, "what was offered", async || {
        let found: Vec<_> = world.values().await.into_iter().collect();
        if found == expected { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}
