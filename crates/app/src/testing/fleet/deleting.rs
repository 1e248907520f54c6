//! Deletions, restores and purges of what has a name in Fleet.

use slipway_core::ErrorKind;
use slipway_core::deletion::protection;
use slipway_core::deletion::purge::{self, PurgeSnapshot, Trigger};
use slipway_core::deletion::record::DeletionState;
use slipway_core::fleet::agent::LEAK_KIND;
use slipway_core::ids::DeletionId;
use slipway_core::subject::Subject;
use slipway_core::text::Reason;

use super::client::{Client, admin, content, refused};
use crate::access::authenticate;
use crate::access::port::{AuditFilter, AuditOrder};
use crate::deletion::plan;
use crate::deletion::port::LeakFilter;
use crate::deletion::request::DeleteOptions;
use crate::fleet::templates::{self, CreateTemplate};
use crate::fleet::{agents, generators, offers, stacks};
use crate::ports::store::Page;

/// Also to one that was offline, never to one that did not have it, and until each reports.
pub(super) async fn a_marker_goes_to_every_agent_that_holds_the_stack(client: &Client) {
    let Client { context, .. } = client;
    let generator = client.generator().await;
    let (stack, object) = client.deployed(generator).await;
    let online = client.agent_of(generator, stack).await;
    let offline = client.agent_of(generator, stack).await;
    let never = client.agent_of(generator, stack).await;
    for agent in [online, offline] {
        assert_eq!(client.offered(agent).await, [object]);
    }
    let deletion = client.delete_stack(stack).await.expect("a deletion");
    let marker = client.poll(online).await;
    assert!(marker.len() == 1 && marker[0].is_marker && marker[0].agent_id.is_none());
    assert!(marker[0].sequence > client.object(object).await.sequence);
    assert_eq!(client.offered(never).await, []);
    client.report(online, marker[0].id, "SUCCESS").await.expect("a report");
    assert_eq!(client.offered(online).await, []);
    let deliveries = offers::deliveries(context, &admin(), deletion, 10).await.expect("a list");
    let done: Vec<_> =
        deliveries.iter().map(|one| (one.agent_id, one.removed_at.is_some())).collect();
    assert_eq!(done.len(), 2, "{deliveries:?}");
    assert!(done.contains(&(online, true)) && done.contains(&(offline, false)));
    assert_eq!(client.offered(offline).await, [marker[0].id], "whenever it comes back");

    // The restore supersedes the marker for both, and the one that did not remove it keeps it.
    let restored = client.restore(deletion).await.expect("it comes back");
    assert_eq!(restored.returning.len(), 1);
    for agent in [online, offline, never] {
        let offered = client.poll(agent).await;
        assert_eq!(offered.len(), 1);
        assert_eq!(offered[0].content, content("one"));
        assert!(offered[0].sequence > marker[0].sequence && offered[0].id != object);
    }
    client.report(offline, marker[0].id, "SUCCESS").await.expect("a late report");
    assert_eq!(client.poll(offline).await.len(), 1, "it takes nothing away");
    let again = client.delete_stack(stack).await.expect("deleted again");
    let second = client.poll(offline).await;
    assert!(second[0].is_marker && second[0].id != marker[0].id);
    client.restore(again).await.expect("and restored again");
    assert!(!client.poll(offline).await[0].is_marker);
}

/// Exactly what went with it comes back, and everything is told under the name of whoever did
/// it.
pub(super) async fn a_generator_goes_and_comes_back_with_what_it_owns(client: &Client) {
    let Client { context, .. } = client;
    let generator = client.generator().await;
    let (one, object) = client.deployed(generator).await;
    let empty = client.stack(generator).await;
    let (before, _) = client.deployed(generator).await;
    let template = CreateTemplate {
        generator: Some(generator),
        name: client.name("template"),
        content: "kind: A".to_owned(),
        parameters_schema: r#"{"type": "object"}"#.to_owned(),
        ..CreateTemplate::default()
    };
    let template = templates::create(context, &admin(), template, None).await.expect("one");
    let agent = client.agent_of(generator, one).await;
    assert_eq!(client.offered(agent).await, [object]);
    let earlier = client.delete_stack(before).await.expect("deleted by itself");
    let deletion = client.delete_generator(generator).await.expect("a deletion");
    for stack in [one, empty, before] {
        assert!(!client.is_live(stack).await);
    }
    assert!(templates::fetch(context, &admin(), template, false).await.is_err());
    for stack in [one, empty] {
        assert_eq!(audited(client, "stack.delete", stack).await, ["key:fleet"]);
    }
    let members = context.stores.deletion.deletion_members(deletion, 10).await.expect("members");
    assert_eq!(members.count, 4, "{members:?}");
    let marker = client.poll(agent).await;
    assert!(marker.len() == 1 && marker[0].is_marker);
    let refusal = client.restore(earlier).await;
    assert_eq!(refused(refusal), ErrorKind::RestoreConflict, "its generator is deleted");

    let restored = client.restore(deletion).await.expect("it comes back");
    assert_eq!(restored.returning.len(), 4);
    assert!(client.is_live(one).await && client.is_live(empty).await);
    assert!(!client.is_live(before).await, "it was deleted before, by itself");
    templates::fetch(context, &admin(), template, false).await.expect("it too");
    assert_eq!(audited(client, "stack.restore", one).await, ["key:fleet"]);
    let offered = client.poll(agent).await;
    assert_eq!((offered.len(), offered[0].content.clone()), (1, content("one")));
    client.restore(earlier).await.expect("now it can");
    assert!(client.is_live(before).await);

    // A member whose name somebody took meanwhile is named as the conflict.
    let second = client.delete_generator(generator).await.expect("again");
    let name = stacks::fetch(context, &admin(), one, true).await.expect("it").name;
    let other = client.generator().await;
    let taken = client.stack_called(other, name.as_str()).await.expect("the name is free");
    assert_eq!(refused(client.restore(second).await), ErrorKind::RestoreConflict);
    assert!(!client.is_live(empty).await, "all or nothing");
    client.delete_stack(taken).await.expect("out of the way");
    client.restore(second).await.expect("now it can");
}

/// Who did this to the subject.
pub(super) async fn audited(
    client: &Client,
    verb: &str,
    subject: impl Into<Subject>,
) -> Vec<String> {
    let filter = AuditFilter {
        verb: Some(verb.to_owned()),
        subject: Some(subject.into().id),
        ..AuditFilter::default()
    };
    let page = Page { after: None, limit: 10 };
    let store = &client.context.stores.access;
    let found = store.audit_list(&filter, AuditOrder::OldestFirst, page).await.expect("a list");
    found.iter().map(|line| line.actor.clone()).collect()
}

pub(super) async fn an_agent_leaves_leaks_and_takes_them_back(client: &Client) {
    let Client { context, .. } = client;
    let generator = client.generator().await;
    let (stack, object) = client.deployed(generator).await;
    let agent = client.agent_of(generator, stack).await;
    let key = agents::key(context, &admin(), agent).await.expect("a key");
    let login = async || authenticate::api_key(context, key.expose(), "test").await;
    client.poll(agent).await;
    client.report(agent, object, "SUCCESS").await.expect("a report");
    let leaks = async || {
        let page = Page { after: None, limit: 100 };
        let found = context.stores.deletion.leak_list(&LeakFilter::default(), page).await;
        let own = |leak: &&slipway_core::deletion::leak::Leak| {
            leak.subject == Subject::from(agent) && leak.resolved.is_none()
        };
        let found = found.expect("a list");
        found.iter().filter(own).map(|leak| leak.kind.clone()).collect::<Vec<_>>()
    };
    for _ in 0..2 {
        let options = DeleteOptions::default();
        let deletion = agents::delete(context, &admin(), agent, options).await.expect("it goes");
        assert_eq!(leaks().await, [LEAK_KIND]);
        assert_eq!(refused(login().await), ErrorKind::Unauthenticated);
        let refusal = offers::target_state(context, &admin(), agent).await;
        assert_eq!(refused(refusal), ErrorKind::AgentNotFound);
        client.restore(deletion).await.expect("it comes back");
        assert_eq!(leaks().await, [""; 0]);
        login().await.expect("its key is valid again");
        assert_eq!(client.offered(agent).await, [object], "and it still holds the stack");
    }
}

async fn begin_purge(client: &Client, id: DeletionId) -> Result<(), crate::Error> {
    let reason = Reason::parse("the suite wants it").expect("a reason");
    let trigger = Trigger::ByHand { reason: &reason, despite_protection: true, now: false };
    let actor = slipway_core::access::audit::Actor::new("key:fleet");
    let mut rule = |snapshot: &PurgeSnapshot| purge::begin(snapshot, trigger, &actor);
    Ok(client.context.stores.deletion.purge_decide(id, &mut rule).await?)
}

/// Also with an object for one agent, reports, health, labels and targets in the way.
pub(super) async fn nothing_is_purged_while_a_marker_is_owed(client: &Client) {
    let Client { context, .. } = client;
    let generator = client.generator().await;
    let (stack, _) = client.deployed(generator).await;
    let (kept, object) = client.deployed(generator).await;
    for value in 0..120 {
        client.submit(stack, &format!("v{value}")).await.expect("an object");
    }
    let agent = client.agent_of(generator, stack).await;
    crate::fleet::links::target(context, &admin(), agent, kept).await.expect("a target");
    crate::fleet::tags::add_label(context, &admin(), stack.into(), "x").await.expect("a label");
    client.poll(agent).await;
    client.report(agent, object, "SUCCESS").await.expect("a report");
    crate::fleet::links::untarget(context, &admin(), agent, kept).await.expect("no target");
    client.poll(agent).await;
    let deletion = client.delete_generator(generator).await.expect("a deletion");
    assert_eq!(refused(begin_purge(client, deletion).await), ErrorKind::PurgeWithheld);
    for marker in client.poll(agent).await {
        assert!(marker.is_marker);
        client.report(agent, marker.id, "SUCCESS").await.expect("a report");
    }
    begin_purge(client, deletion).await.expect("nothing is owed any more");
    let store = &context.stores.deletion;
    let counts = store.purge_counts(deletion).await.expect("counts");
    assert!(counts.iter().any(|(table, rows)| *table == "deployment_objects" && *rows > 120));
    let mut batches = 0;
    while store.purge_batch(deletion, 50).await.expect("a batch").is_left {
        batches += 1;
        assert!(batches < 100, "it ends");
    }
    assert!(batches > 1, "in batches");
    let mut end = |snapshot: &PurgeSnapshot| {
        Ok(purge::end(snapshot, &slipway_core::access::audit::Actor::new("loop:test")))
    };
    store.purge_decide(deletion, &mut end).await.expect("an end");
    let ended = store.deletion_fetch(deletion).await.expect("a read").expect("the record");
    assert_eq!(ended.state, DeletionState::Purged);
    assert!(generators::fetch(context, &admin(), generator, true).await.is_err());
    assert!(stacks::fetch(context, &admin(), stack, true).await.is_err());

    // What is held by a deleted agent is a leak, and holds nothing.
    let generator = client.generator().await;
    let (stack, _) = client.deployed(generator).await;
    let agent = client.agent_of(generator, stack).await;
    client.poll(agent).await;
    let deletion = client.delete_stack(stack).await.expect("a deletion");
    assert_eq!(refused(begin_purge(client, deletion).await), ErrorKind::PurgeWithheld);
    let gone = agents::delete(context, &admin(), agent, DeleteOptions::default()).await;
    let gone = gone.expect("the agent goes");
    begin_purge(client, deletion).await.expect("nobody is waited for");
    assert!(!store.purge_batch(deletion, 50).await.expect("a batch").is_left);
    assert_eq!(refused(begin_purge(client, gone).await), ErrorKind::PurgeWithheld, "a leak");
}

pub(super) async fn a_plan_names_everything_and_protection_holds(client: &Client) {
    let Client { context, .. } = client;
    let generator = client.generator().await;
    let (one, _) = client.deployed(generator).await;
    let two = client.stack(generator).await;
    let composed = slipway_core::deletion::plan::Composed::default();
    let planned = plan::make(context, &admin(), generator.into(), false, composed).await;
    let planned = planned.expect("a plan");
    let members = planned.members.as_str();
    for stack in [one, two] {
        let name = stacks::fetch(context, &admin(), stack, false).await.expect("it").name;
        assert!(members.contains(name.as_str()), "{members}");
    }
    let why = Reason::parse("production").expect("a reason");
    let actor = slipway_core::access::audit::Actor::new("key:fleet");
    let mut rule = |snapshot: &_| protection::protect(snapshot, &why, &actor);
    let protect = context.stores.deletion.protection_decide(one.into(), &mut rule);
    protect.await.expect("a protection");
    let refusal = client.delete_generator(generator).await;
    assert_eq!(refused(refusal), ErrorKind::Protected, "one of its stacks is");
    assert!(client.is_live(two).await);
}
