//! Generators, stacks, templates, agents and objects, and who sees them.

use slipway_core::ErrorKind;
use slipway_core::access::api_key::Principal;
use slipway_core::fleet::FleetName;
use slipway_core::fleet::generator::GeneratorChange;
use slipway_core::fleet::stack::StackChange;
use slipway_core::ids::{DeploymentObjectId, StackId};
use slipway_core::precondition::Expected;
use slipway_core::subject::Subject;

use super::client::{Client, admin, content, refused};
use crate::access::authenticate;
use crate::access::authorise::Caller;
use crate::deletion::request::DeleteOptions;
use crate::fleet::agents::{self, CreateAgent};
use crate::fleet::generators::{self, CreateGenerator};
use crate::fleet::port::FleetFilter;
use crate::fleet::templates::{self, CreateTemplate};
use crate::fleet::{links, objects, offers, stacks, tags};
use crate::ports::store::Page;

fn name(text: &str) -> FleetName {
    FleetName::parse("name", text).expect("a name")
}

pub(super) async fn things_are_made_changed_and_listed(client: &Client) {
    let Client { context, .. } = client;
    let generator = client.generator().await;
    let found = generators::fetch(context, &admin(), generator, false).await.expect("it");
    assert!(!found.accepts_secrets && found.deleted_at.is_none());
    let change = GeneratorChange {
        description: Some(Some("ours".to_owned())),
        accepts_secrets: Some(true),
        ..GeneratorChange::default()
    };
    let expected = Expected::Exactly(found.revision);
    generators::update(context, &admin(), generator, &change, expected).await.expect("a change");
    let stale = generators::update(context, &admin(), generator, &change, expected).await;
    assert_eq!(refused(stale), ErrorKind::RevisionStale);
    let after = generators::fetch(context, &admin(), generator, false).await.expect("it");
    assert_eq!(after.description.as_deref(), Some("ours"));
    assert!(after.accepts_secrets && after.updated_at >= found.updated_at);

    let (one, two) = (client.stack(generator).await, client.stack(generator).await);
    let taken = stacks::fetch(context, &admin(), one, false).await.expect("it").name;
    let rename = StackChange { name: Some(taken.clone()), ..StackChange::default() };
    let refusal = stacks::update(context, &admin(), two, &rename, Expected::Any).await;
    assert_eq!(refused(refusal), ErrorKind::NameTaken);
    let rename = StackChange { name: Some(name("another")), ..StackChange::default() };
    stacks::update(context, &admin(), two, &rename, Expected::Any).await.expect("a name");
    let filter = FleetFilter { generator: Some(generator), ..FleetFilter::default() };
    let page = Page { after: None, limit: 10 };
    let listed = stacks::list(context, &admin(), &filter, page).await.expect("a list");
    let ids: Vec<StackId> = listed.iter().map(|stack| stack.id).collect();
    assert_eq!(ids, [one, two]);
    let filter = FleetFilter { name: Some("another".to_owned()), ..filter };
    let listed = stacks::list(context, &admin(), &filter, page).await.expect("a list");
    assert_eq!(listed.iter().map(|stack| stack.id).collect::<Vec<_>>(), [two]);
    let unknown =
        stacks::fetch(context, &admin(), StackId::new(context.entropy.uuid()), true).await;
    assert_eq!(refused(unknown), ErrorKind::StackNotFound);
}

pub(super) async fn names_are_of_a_project_and_free_again_after_a_deletion(client: &Client) {
    let Client { context, .. } = client;
    let generator = client.generator().await;
    let called = client.name("reused");
    let first = client.stack_called(generator, &called).await.expect("a stack");
    let refusal = client.stack_called(generator, &called).await;
    assert_eq!(refused(refusal), ErrorKind::NameTaken);
    client.delete_stack(first).await.expect("a deletion");
    assert!(!client.is_live(first).await);
    let shown = stacks::fetch(context, &admin(), first, true).await.expect("still there");
    assert!(shown.deleted_at.is_some());
    assert_eq!(refused(client.delete_stack(first).await), ErrorKind::StackNotFound);
    client.stack_called(generator, &called).await.expect("the name is free");

    let agent = |cluster: &str| CreateAgent {
        name: called.clone(),
        cluster_name: cluster.to_owned(),
        ..CreateAgent::default()
    };
    for cluster in ["a", "b"] {
        agents::create(context, &admin(), agent(cluster), None).await.expect("an agent");
    }
    let refusal = agents::create(context, &admin(), agent("a"), None).await;
    assert_eq!(refused(refusal), ErrorKind::NameTaken);
    let nowhere = CreateGenerator {
        project: Some("nowhere".to_owned()),
        name: called,
        ..CreateGenerator::default()
    };
    let refusal = generators::create(context, &admin(), nowhere, None).await;
    assert_eq!(refused(refusal), ErrorKind::ProjectNotFound);
}

pub(super) async fn templates_have_versions(client: &Client) {
    let Client { context, .. } = client;
    let generator = client.generator().await;
    let input = CreateTemplate {
        generator: Some(generator),
        name: client.name("template"),
        content: "kind: {{ kind }}".to_owned(),
        parameters_schema: r#"{"type": "object"}"#.to_owned(),
        ..CreateTemplate::default()
    };
    let first = templates::create(context, &admin(), input.clone(), None).await.expect("one");
    let again = templates::create(context, &admin(), input.clone(), None).await;
    assert_eq!(refused(again), ErrorKind::NameTaken);
    let shared = CreateTemplate { generator: None, ..input };
    templates::create(context, &admin(), shared, None).await.expect("of the project, so another");
    let text = ("kind: B", r#"{"type": "object"}"#);
    let revise =
        async || templates::revise(context, &admin(), first, None, text, Expected::Any).await;
    let second = revise().await.expect("a version");
    let version = async |id, deleted| {
        let found = templates::fetch(context, &admin(), id, deleted).await.expect("it");
        (found.version, found.text.content)
    };
    assert_eq!(version(second, false).await, (2, "kind: B".to_owned()));
    assert_eq!(version(first, false).await.0, 1, "the first stays as it was");
    let options = DeleteOptions::default();
    let gone = templates::delete(context, &admin(), second, options).await.expect("a deletion");
    let third = revise().await.expect("a version");
    assert_eq!(version(third, false).await.0, 3, "a version never means two texts");
    client.restore(gone).await.expect("it comes back");
    assert_eq!(version(second, false).await.0, 2);
}

pub(super) async fn objects_are_numbered_and_never_change(client: &Client) {
    let Client { context, .. } = client;
    let generator = client.generator().await;
    let stack = client.stack(generator).await;
    let mut last = 0;
    for value in ["a", "b", "c"] {
        let id = client.submit(stack, value).await.expect("an object");
        let object = client.object(id).await;
        assert!(object.sequence > last, "numbers rise");
        assert_eq!(object.content, content(value), "byte for byte");
        last = object.sequence;
    }
    let page = |after| Page { after, limit: 2 };
    let first = objects::list(context, &admin(), stack, page(None)).await.expect("a page");
    assert_eq!(first.len(), 2);
    let rest = objects::list(context, &admin(), stack, page(Some(first[1].sequence))).await;
    assert_eq!(rest.expect("a page").len(), 1);

    let submit = async |text: &str, marker| {
        objects::submit(context, &admin(), stack, (text, marker), None).await
    };
    let secret = "kind: Secret\nstringData: {a: b}";
    assert_eq!(refused(submit(secret, false).await), ErrorKind::SecretNotAccepted);
    assert_eq!(refused(submit("", false).await), ErrorKind::InvalidInput);
    assert_eq!(refused(submit("kind: A", true).await), ErrorKind::InvalidInput);
    assert_eq!(refused(submit("a: [", false).await), ErrorKind::InvalidInput);
    let open = GeneratorChange { accepts_secrets: Some(true), ..GeneratorChange::default() };
    generators::update(context, &admin(), generator, &open, Expected::Any).await.expect("open");
    submit(secret, false).await.expect("its generator takes it");
    let marker = client.object(submit("", true).await.expect("a marker")).await;
    assert!(marker.is_marker && marker.content.is_empty() && marker.checksum.len() == 64);
    client.delete_stack(stack).await.expect("a deletion");
    assert_eq!(refused(client.submit(stack, "late").await), ErrorKind::StackNotFound);
    assert!(client.object(marker.id).await.deleted_at.is_some(), "derived from its stack");
}

pub(super) async fn a_withdrawn_object_is_followed_by_the_newest_that_remains(client: &Client) {
    let Client { context, .. } = client;
    let stack = client.stack(client.generator().await).await;
    let one = client.submit(stack, "one").await.expect("an object");
    let two = client.submit(stack, "two").await.expect("an object");
    let withdraw = async |id| objects::withdraw(context, &admin(), id).await;
    let shown = async || {
        let page = Page { after: None, limit: 10 };
        objects::list(context, &admin(), stack, page).await.expect("a list")
    };
    withdraw(two).await.expect("it is withdrawn");
    assert_eq!(refused(withdraw(two).await), ErrorKind::DeploymentObjectNotFound);
    let left = shown().await;
    let newest = left.last().expect("a copy");
    assert_eq!((left.len(), newest.content.clone()), (2, content("one")));
    assert_eq!(newest.checksum, client.object(one).await.checksum);
    withdraw(one).await.expect("an older one");
    assert_eq!(shown().await.len(), 1, "the copy counts anyway");
    withdraw(newest.id).await.expect("the last");
    let left = shown().await;
    assert!(left.len() == 1 && left[0].is_marker, "nothing remains to be deployed");
    assert_eq!(refused(withdraw(left[0].id).await), ErrorKind::InvalidInput);
    let unknown = DeploymentObjectId::new(context.entropy.uuid());
    assert_eq!(refused(withdraw(unknown).await), ErrorKind::DeploymentObjectNotFound);
}

/// An agent does what it does for itself, a generator for what it owns; the rest is unknown
/// to them, or forbidden.
pub(super) async fn every_principal_sees_its_own(client: &Client) {
    let Client { context, .. } = client;
    let (own, other) = (client.generator().await, client.generator().await);
    let (mine, object) = client.deployed(own).await;
    let (theirs, secret) = client.deployed(other).await;
    let agent = client.agent_of(own, mine).await;
    let stranger = client.agent().await;
    let login = async |text: &str| authenticate::api_key(context, text, "test").await;

    let text = generators::key(context, &admin(), own).await.expect("a key");
    let caller = login(text.expose()).await.expect("it is valid");
    assert_eq!(caller.principal, Principal::Generator(own));
    let as_generator = &caller;
    stacks::fetch(context, as_generator, mine, false).await.expect("its own");
    let refusal = stacks::fetch(context, as_generator, theirs, false).await;
    assert_eq!(refused(refusal), ErrorKind::StackNotFound);
    let refusal = objects::fetch(context, as_generator, secret).await;
    assert_eq!(refused(refusal), ErrorKind::DeploymentObjectNotFound);
    let options = DeleteOptions::default();
    let refusal = stacks::delete(context, as_generator, theirs, options).await;
    assert_eq!(refused(refusal), ErrorKind::StackNotFound);
    let refusal = offers::target_state(context, as_generator, agent).await;
    assert_eq!(refused(refusal), ErrorKind::Forbidden);
    let page = Page { after: None, limit: 10 };
    let seen = agents::list(context, as_generator, &FleetFilter::default(), page).await;
    let seen: Vec<_> = seen.expect("a list").iter().map(|agent| agent.id).collect();
    assert_eq!(seen, [agent], "those that agreed");
    let open = GeneratorChange { accepts_secrets: Some(true), ..GeneratorChange::default() };
    let refusal = generators::update(context, as_generator, own, &open, Expected::Any).await;
    assert_eq!(refused(refusal), ErrorKind::Forbidden);
    let refusal = links::target(context, as_generator, agent, theirs).await;
    assert_eq!(refused(refusal), ErrorKind::StackNotFound);
    let owner = Subject::from(mine);
    tags::add_label(context, as_generator, owner, "prod").await.expect("a label of its stack");

    let text = agents::key(context, &admin(), agent).await.expect("a key");
    let as_agent = &login(text.expose()).await.expect("it is valid");
    assert_eq!(offers::target_state(context, as_agent, agent).await.expect("its own").len(), 1);
    let refusal = offers::target_state(context, as_agent, stranger).await;
    assert_eq!(refused(refusal), ErrorKind::AgentNotFound);
    objects::fetch(context, as_agent, object).await.expect("it is offered");
    let refusal = objects::fetch(context, as_agent, secret).await;
    assert_eq!(refused(refusal), ErrorKind::DeploymentObjectNotFound);
    let refusal = tags::add_label(context, as_agent, agent.into(), "x").await;
    assert_eq!(refused(refusal), ErrorKind::Forbidden);
    let refusal = crate::access::keys::own(context, as_agent).await;
    assert_eq!(refused(refusal), ErrorKind::Forbidden, "nothing outside Fleet");
    let replaced = agents::key(context, as_agent, agent).await.expect("another text");
    assert_eq!(refused(login(text.expose()).await), ErrorKind::Unauthenticated);
    login(replaced.expose()).await.expect("the new one");

    let elsewhere = Caller {
        project: Some(slipway_core::ids::ProjectId::new(context.entropy.uuid())),
        ..admin()
    };
    let refusal = agents::fetch(context, &elsewhere, agent, false).await;
    assert_eq!(refused(refusal), ErrorKind::AgentNotFound);
    let refusal = links::target(context, &elsewhere, agent, mine).await;
    assert_eq!(refused(refusal), ErrorKind::StackNotFound);
}
