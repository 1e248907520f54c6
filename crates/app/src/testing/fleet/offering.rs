//! What agents are offered, and what they report.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use slipway_core::ErrorKind;
use slipway_core::fleet::offer::Legs;
use slipway_core::ids::{AgentId, DeploymentObjectId, StackId};
use slipway_core::subject::Subject;
use slipway_core::time::Timestamp;

use super::client::{Client, admin, refused};
use crate::fleet::reports::SubmitHealth;
use crate::fleet::{agents, links, objects, offers, reports, tags};
use crate::operations::control;
use crate::ports::store::Page;

pub(super) async fn an_agent_is_offered_what_it_is_connected_with(client: &Client) {
    let Client { context, .. } = client;
    let generator = client.generator().await;
    let agent = client.agent().await;
    let mut stacks = Vec::new();
    for _ in 0..4 {
        stacks.push(client.deployed(generator).await);
    }
    let [(by_target, a), (by_label, b), (by_annotation, c), (by_nothing, _)] = stacks[..] else {
        panic!("four of them")
    };
    tags::add_label(context, &admin(), agent.into(), "prod").await.expect("a label");
    tags::add_label(context, &admin(), by_label.into(), "prod").await.expect("a label");
    let pair = ("tier", "web");
    tags::add_annotation(context, &admin(), agent.into(), pair).await.expect("an annotation");
    for (stack, pair) in [(by_annotation, pair), (by_nothing, ("tier", "db"))] {
        tags::add_annotation(context, &admin(), stack.into(), pair).await.expect("an annotation");
    }
    let twice = tags::add_label(context, &admin(), agent.into(), "prod").await;
    assert_eq!(refused(twice), ErrorKind::EntryExists);
    assert_eq!(client.offered(agent).await, [], "it has not agreed");
    let refusal = links::target(context, &admin(), agent, by_target).await;
    assert_eq!(refused(refusal), ErrorKind::TargetGeneratorMismatch);
    links::register(context, &admin(), agent, generator).await.expect("consent");
    let twice = links::register(context, &admin(), agent, generator).await;
    assert_eq!(refused(twice), ErrorKind::EntryExists);
    links::target(context, &admin(), agent, by_target).await.expect("a target");
    let offered = client.poll(agent).await;
    let ids: BTreeSet<_> = offered.iter().map(|object| object.id).collect();
    assert_eq!(ids, BTreeSet::from([a, b, c]));
    assert!(offered.is_sorted_by(|one, next| one.sequence >= next.sequence), "newest first");
    let newer = client.submit(by_target, "two").await.expect("an object");
    let ids = BTreeSet::from_iter(client.offered(agent).await);
    assert_eq!(ids, BTreeSet::from([newer, b, c]), "only the newest of each");
    assert_eq!(BTreeSet::from_iter(client.offered(agent).await), ids, "asked again, the same");
    let page = Page { after: None, limit: 10 };
    let listed = links::registrations_of_agent(context, &admin(), agent, page).await;
    assert_eq!(listed.expect("a list").len(), 1);
    let listed = links::registrations_of_generator(context, &admin(), generator, page).await;
    assert_eq!(listed.expect("a list")[0].agent_id, agent);
    assert_eq!(links::targets(context, &admin(), agent, page).await.expect("a list").len(), 1);
    let labels = tags::labels(context, &admin(), agent.into()).await.expect("a list");
    assert_eq!(labels.iter().map(|one| one.label.as_str()).collect::<Vec<_>>(), ["prod"]);
    let found = tags::annotations(context, &admin(), agent.into()).await.expect("a list");
    assert_eq!((found[0].key.as_str(), found[0].value.as_str()), pair);
}

/// Un-targeting, by whatever leg, owes a marker to this agent alone.
pub(super) async fn what_is_taken_from_an_agent_is_owed_until_it_says_so(client: &Client) {
    let Client { context, .. } = client;
    let generator = client.generator().await;
    let (stack, object) = client.deployed(generator).await;
    let agent = client.agent_of(generator, stack).await;
    let other = client.agent_of(generator, stack).await;
    let never = client.agent_of(generator, stack).await;
    assert_eq!(client.offered(agent).await, [object]);
    assert_eq!(client.offered(other).await, [object]);
    for one in [agent, never] {
        links::untarget(context, &admin(), one, stack).await.expect("no target");
    }
    assert_eq!(client.offered(never).await, [], "it never had it");
    let owed = client.poll(agent).await;
    assert!(owed.len() == 1 && owed[0].is_marker && owed[0].content.is_empty());
    assert_eq!(owed[0].agent_id, Some(agent));
    assert!(owed[0].sequence > client.object(object).await.sequence);
    assert_eq!(client.offered(agent).await, [owed[0].id], "the same until it is carried out");
    assert_eq!(client.offered(other).await, [object], "others keep it");
    let page = Page { after: None, limit: 10 };
    let shown = objects::list(context, &admin(), stack, page).await.expect("a list");
    assert_eq!(shown.len(), 1, "a marker for one agent is no object of the stack");

    // Targeted again before it removed anything: a late report about the marker counts for
    // nothing, since it was offered content since.
    links::target(context, &admin(), agent, stack).await.expect("a target");
    assert_eq!(client.offered(agent).await, [object]);
    client.report(agent, owed[0].id, "SUCCESS").await.expect("a late report");
    links::untarget(context, &admin(), agent, stack).await.expect("no target");
    let again = client.poll(agent).await;
    assert!(again[0].is_marker && again[0].id != owed[0].id, "another marker");
    client.report(agent, again[0].id, "FAILURE").await.expect("a report");
    assert_eq!(client.offered(agent).await, [again[0].id], "a failure ends nothing");
    client.report(agent, again[0].id, "SUCCESS").await.expect("a report");
    assert_eq!(client.offered(agent).await, []);
    links::unregister(context, &admin(), other, generator).await.expect("no consent");
    assert!(client.poll(other).await[0].is_marker);
    let gone = links::unregister(context, &admin(), other, generator).await;
    assert_eq!(refused(gone), ErrorKind::EntryNotFound);
}

pub(super) async fn reports_are_coalesced_and_about_what_was_offered(client: &Client) {
    let Client { context, .. } = client;
    let generator = client.generator().await;
    let (stack, object) = client.deployed(generator).await;
    let agent = client.agent_of(generator, stack).await;
    let refusal = client.report(agent, object, "SUCCESS").await;
    assert_eq!(refused(refusal), ErrorKind::DeploymentObjectNotFound, "nobody offered it");
    client.poll(agent).await;
    let first = client.report(agent, object, "SUCCESS").await.expect("a report");
    let second = client.report(agent, object, "SUCCESS").await.expect("a report");
    assert_eq!((first.id, first.count, second.count), (second.id, 1, 2));
    assert!(second.last_at >= first.last_at && second.first_at == first.first_at);
    client.report(agent, object, "FAILURE").await.expect("another");
    let listed = reports::list(context, &admin(), agent, 10).await.expect("a list");
    assert_eq!(listed.len(), 2);

    let health = |object, status: &str, at| SubmitHealth {
        object,
        status: status.to_owned(),
        summary: Some(json!({ "pods_ready": 1, "pods_total": 2, "conditions": [] })),
        checked_at: Timestamp::from_micros(at),
    };
    let unknown = DeploymentObjectId::new(context.entropy.uuid());
    let sent = vec![health(object, "degraded", 2_000), health(unknown, "healthy", 2_000)];
    assert_eq!(reports::health(context, &admin(), agent, sent).await.expect("health"), 1);
    let late = vec![health(object, "healthy", 1_000)];
    assert_eq!(reports::health(context, &admin(), agent, late).await.expect("health"), 0);
    let found = reports::health_of(context, &admin(), object).await.expect("health");
    assert_eq!((found.len(), found[0].status.as_str()), (1, "degraded"));
    let wrong = reports::health(context, &admin(), agent, vec![health(object, "fine", 1)]).await;
    assert_eq!(refused(wrong), ErrorKind::InvalidInput);

    reports::heartbeat(context, &admin(), agent, (Some(true), Some(7))).await.expect("a beat");
    reports::heartbeat(context, &admin(), agent, (None, None)).await.expect("a beat");
    let beat = agents::fetch(context, &admin(), agent, false).await.expect("it").heartbeat;
    let cluster = beat.expect("a heartbeat").cluster.expect("what it said before");
    assert_eq!((cluster.is_reachable, cluster.latency_millis), (Some(true), Some(7)));
}

/// The statement finds for every agent and stack the legs that are there.
pub(super) async fn offers_are_what_the_rule_says(client: &Client) {
    let Client { context, .. } = client;
    let (one, two) = (client.generator().await, client.generator().await);
    let mut legs = Vec::new();
    for bits in 0..16_u8 {
        let generator = if bits % 2 == 0 { one } else { two };
        let (stack, _) = client.deployed(generator).await;
        let agent = client.agent().await;
        let wanted = Legs {
            is_registered: bits & 1 > 0,
            has_target: bits & 2 > 0,
            shares_label: bits & 4 > 0,
            shares_annotation: bits & 8 > 0,
        };
        links::register(context, &admin(), agent, generator).await.expect("consent");
        if wanted.has_target {
            links::target(context, &admin(), agent, stack).await.expect("a target");
        }
        if !wanted.is_registered {
            links::unregister(context, &admin(), agent, generator).await.expect("none");
        }
        let tag = format!("only-{bits}");
        let (agent_tag, stack_tag): (Subject, Subject) = (agent.into(), stack.into());
        tags::add_label(context, &admin(), agent_tag, &tag).await.expect("a label");
        tags::add_annotation(context, &admin(), agent_tag, (&tag, "x")).await.expect("one");
        if wanted.shares_label {
            tags::add_label(context, &admin(), stack_tag, &tag).await.expect("a label");
        }
        let value = if wanted.shares_annotation { "x" } else { "y" };
        tags::add_annotation(context, &admin(), stack_tag, (&tag, value)).await.expect("one");
        legs.push((agent, stack, wanted));
    }
    for (agent, stack, wanted) in legs {
        let found = legs_of(client, agent, stack).await;
        let connected = wanted.has_target || wanted.shares_label || wanted.shares_annotation;
        assert_eq!(found, connected.then_some(wanted));
        let offered = client.poll(agent).await;
        let of_stack = offered.iter().any(|object| object.stack_id == stack);
        assert_eq!(of_stack, wanted.is_associated(), "{wanted:?}");
    }
}

async fn legs_of(client: &Client, agent: AgentId, stack: StackId) -> Option<Legs> {
    let read = client.context.stores.fleet.offer_read(agent).await.expect("a read");
    read.candidates.iter().find(|one| one.stack_id == stack).map(|one| one.legs)
}

pub(super) async fn while_frozen_an_agent_is_offered_what_it_has(client: &Client) {
    let Client { context, .. } = client;
    let generator = client.generator().await;
    let (stack, object) = client.deployed(generator).await;
    let (gone, old) = client.deployed(generator).await;
    let agent = client.agent_of(generator, stack).await;
    links::target(context, &admin(), agent, gone).await.expect("a target");
    let held = BTreeSet::from([object, old]);
    assert_eq!(BTreeSet::from_iter(client.offered(agent).await), held);
    let day = Duration::from_secs(86_400);
    control::freeze(context, &admin(), day, "an incident").await.expect("a freeze");
    let newer = client.submit(stack, "two").await.expect("people may submit");
    client.delete_stack(gone).await.expect("and delete");
    assert_eq!(BTreeSet::from_iter(client.offered(agent).await), held, "nothing moves");
    control::unfreeze(context, &admin(), "it is over").await.expect("an end");
    let offered = client.poll(agent).await;
    assert_eq!(offered.len(), 2);
    assert!(offered.iter().any(|one| one.id == newer));
    let marker = offered.iter().find(|one| one.is_marker && one.stack_id == gone);
    let marker = marker.expect("it is told to remove it").id;

    // Told before the freeze, it is offered neither the marker nor an answer without it.
    control::freeze(context, &admin(), day, "another incident").await.expect("a freeze");
    let none = offers::target_state(context, &admin(), agent).await;
    assert_eq!(refused(none), ErrorKind::Unavailable);
    client.report(agent, marker, "SUCCESS").await.expect("what it did before is told");
    assert_eq!(client.offered(agent).await, [newer], "and the rest is as it was");
    control::unfreeze(context, &admin(), "it is over").await.expect("an end");
}
