//! Deletions that keep what is deployed, purges at once, projects with what of Fleet is in them,
//! and what a restored database lifts.

use std::collections::BTreeMap;
use std::time::Duration;

use slipway_core::ErrorKind;
use slipway_core::access::audit::Actor;
use slipway_core::access::role::Role;
use slipway_core::catalog::project::Project;
use slipway_core::deletion::brake::Limits;
use slipway_core::deletion::record::DeletionState;
use slipway_core::fleet::agent::KEEP;
use slipway_core::fleet::generator::GeneratorChange;
use slipway_core::fleet::object::KEPT_OBJECTS;
use slipway_core::ids::{AgentId, ApiKeyId, DeletionId, GeneratorId};
use slipway_core::operations::control::{self, LockedControl};
use slipway_core::precondition::Expected;
use slipway_core::subject::{Subject, SubjectKind};

use super::client::{Client, admin, content, refused};
use crate::Context;
use crate::access::authorise::Caller;
use crate::catalog::projects::{self, Draft};
use crate::deletion::plan;
use crate::deletion::port::LeakFilter;
use crate::deletion::purge::{PurgeFilter, PurgeOptions, PurgedMany, purge, purge_many};
use crate::deletion::request::{self, DeleteOptions};
use crate::deletion::run::Runner;
use crate::fleet::agents::{self, CreateAgent};
use crate::fleet::generators::{self, CreateGenerator};
use crate::fleet::reports::{self, SubmitHeartbeat};
use crate::fleet::templates::{self, CreateTemplate};
use crate::fleet::{links, objects, offers, stacks, tags};
use crate::kind;
use crate::permits::Permits;
use crate::ports::store::Page;
use crate::testing::races::at_once;

const KEEPING: DeleteOptions<'static> = DeleteOptions {
    reason: None,
    expected: Expected::Any,
    grace: None,
    cascade: false,
    keep: true,
    break_glass: false,
    plan: None,
};

pub(super) async fn heartbeat(client: &Client, agent: AgentId, capabilities: &[&str]) {
    let capabilities = capabilities.iter().map(|one| (*one).to_owned()).collect();
    let said = SubmitHeartbeat { capabilities, ..SubmitHeartbeat::default() };
    reports::heartbeat(&client.context, &admin(), agent, said).await.expect("a heartbeat");
}

/// Agents let go only if all that hold the stack can, and one that cannot any more waits.
pub(super) async fn a_kept_stack_is_let_go_of(client: &Client) {
    let Client { context, .. } = client;
    let generator = client.generator().await;
    let (stack, object) = client.deployed(generator).await;
    let (able, old) =
        (client.agent_of(generator, stack).await, client.agent_of(generator, stack).await);
    let never = client.agent_of(generator, stack).await;
    heartbeat(client, able, &[KEEP, "unheard-of"]).await;
    for agent in [able, old] {
        client.poll(agent).await;
    }
    let delete = async || stacks::delete(context, &admin(), stack, KEEPING).await;
    let refusal = delete().await.expect_err("one cannot");
    assert_eq!(refusal.kind(), ErrorKind::KeepNotSupported);
    let name = agents::fetch(context, &admin(), old, false).await.expect("it").name;
    assert!(refusal.to_string().contains(name.as_str()), "{refusal}");
    assert!(client.is_live(stack).await, "nothing was touched");
    heartbeat(client, old, &[KEEP]).await;
    let deletion = delete().await.expect("both can");
    heartbeat(client, old, &[]).await;
    assert_eq!(client.offered(old).await, [object], "it would remove everything");
    heartbeat(client, old, &[KEEP]).await;
    for agent in [able, old] {
        let offered = client.poll(agent).await;
        assert!(offered.len() == 1 && offered[0].is_marker && offered[0].keeps, "{offered:?}");
        client.report(agent, offered[0].id, "SUCCESS").await.expect("it let go");
        assert_eq!(client.offered(agent).await, []);
    }
    assert_eq!(client.offered(never).await, []);
    client.restore(deletion).await.expect("it comes back");
    assert_eq!(client.poll(able).await[0].content, content("one"));
    let whole = generators::delete(context, &admin(), generator, KEEPING).await;
    whole.expect("all of its holders can");
    assert!(client.poll(able).await[0].keeps);
    let template = CreateTemplate {
        name: client.name("template"),
        content: "kind: A".to_owned(),
        parameters_schema: r#"{"type": "object"}"#.to_owned(),
        ..CreateTemplate::default()
    };
    let template = templates::create(context, &admin(), template, None).await.expect("one");
    let refusal = templates::delete(context, &admin(), template, KEEPING).await;
    assert_eq!(refused(refusal), ErrorKind::KeepNotSupported, "nobody holds a template");
}

/// What was asked for is part of a deletion that waits for its grace.
pub(super) async fn keep_waits_with_the_grace(client: &Client) {
    let Client { context, .. } = client;
    let generator = client.generator().await;
    let (stack, _) = client.deployed(generator).await;
    let agent = client.agent_of(generator, stack).await;
    client.poll(agent).await;
    let later = DeleteOptions { grace: Some(Duration::from_secs(3_600)), ..KEEPING };
    let refusal = stacks::delete(context, &admin(), stack, later).await;
    assert_eq!(refused(refusal), ErrorKind::KeepNotSupported);
    let plain = DeleteOptions { keep: false, ..later };
    let waiting = stacks::delete(context, &admin(), stack, plain).await.expect("scheduled");
    heartbeat(client, agent, &[KEEP]).await;
    let refusal = stacks::delete(context, &admin(), stack, later).await;
    assert_eq!(refused(refusal), ErrorKind::Leaving, "that one does not keep");
    request::cancel(context, &admin(), waiting, None).await.expect("cancelled");
    let waiting = stacks::delete(context, &admin(), stack, later).await.expect("scheduled");
    let own = context.stores.deletion.deletion_fetch(waiting).await.expect("a read");
    assert!(own.expect("it").fleet.keep);
    // Its generator goes first: the deletion that waits has nothing left to do.
    client.delete_generator(generator).await.expect("a deletion");
    let own = context.stores.deletion.deletion_fetch(waiting).await.expect("a read");
    assert_eq!(own.expect("it").state, DeletionState::Cancelled);
}

pub(super) fn now(reason: &str) -> PurgeOptions<'_> {
    PurgeOptions { reason: Some(reason), now: true, ..PurgeOptions::default() }
}

fn runner(context: &Context) -> Runner {
    Runner::new(context.clone(), std::sync::Arc::new(Permits::default()))
}

/// Removes what may be removed, as the loop does it.
pub(super) async fn batches(client: &Client, id: DeletionId) -> DeletionState {
    let store = &client.context.stores.deletion;
    loop {
        let step = store.purge_batch(id, 50).await.expect("a batch");
        if step.waits || !step.is_left {
            break;
        }
    }
    let actor = Actor::new("loop:test");
    let mut end = |snapshot: &_| Ok(slipway_core::deletion::purge::end(snapshot, &actor));
    store.purge_decide(id, &mut end).await.expect("an end");
    store.deletion_fetch(id).await.expect("a read").expect("the record").state
}

/// The content is gone when the request is answered, and the marker is owed as before.
pub(super) async fn a_purge_at_once_leaves_the_marker(client: &Client) {
    let Client { context, .. } = client;
    let generator = client.generator().await;
    let (stack, object) = client.deployed(generator).await;
    let template = CreateTemplate {
        generator: Some(generator),
        name: client.name("template"),
        content: "kind: Hidden".to_owned(),
        parameters_schema: r#"{"type": "object"}"#.to_owned(),
        ..CreateTemplate::default()
    };
    let template = templates::create(context, &admin(), template, None).await.expect("one");
    for value in 0..60 {
        client.submit(stack, &format!("v{value}")).await.expect("an object");
    }
    let agent = client.agent_of(generator, stack).await;
    let held = client.offered(agent).await;
    client.report(agent, held[0], "FAILURE").await.expect("a report");
    let deletion = client.delete_generator(generator).await.expect("a deletion");
    let unsaid = PurgeOptions { now: true, ..PurgeOptions::default() };
    let refusal = purge(context, &admin(), deletion, unsaid).await;
    assert_eq!(refused(refusal), ErrorKind::InvalidInput, "it needs a reason");
    purge(context, &admin(), deletion, now("a leaked secret")).await.expect("it begins");
    for id in [object, held[0]] {
        let left = client.object(id).await;
        assert!(left.erased_at.is_some() && !left.content.contains("ConfigMap"), "{left:?}");
    }
    let left = templates::fetch(context, &admin(), template, true).await.expect("its row");
    assert_eq!(left.text.content, "");
    let told = reports::list(context, &admin(), agent, 10).await.expect("a list");
    assert_eq!(told, [], "what agents said of it, too");
    assert_eq!(refused(client.restore(deletion).await), ErrorKind::NotRestorable);
    assert_eq!(batches(client, deletion).await, DeletionState::Purging, "the marker is owed");
    let passed = runner(context).pass().await.expect("a pass");
    assert_eq!(passed.refused, 0, "it waits: {passed:?}");
    let offered = client.poll(agent).await;
    assert!(offered.len() == 1 && offered[0].is_marker, "{offered:?}");
    assert_eq!(batches(client, deletion).await, DeletionState::Purging);
    client.report(agent, offered[0].id, "SUCCESS").await.expect("it is removed");
    assert_eq!(batches(client, deletion).await, DeletionState::Purged);
    assert!(generators::fetch(context, &admin(), generator, true).await.is_err());
    purge(context, &admin(), deletion, now("again")).await.expect("repeated, nothing changes");
    let gone = agents::delete(context, &admin(), agent, DeleteOptions::default()).await;
    let refusal = purge(context, &admin(), gone.expect("it goes"), now("x")).await;
    assert_eq!(refused(refusal), ErrorKind::InvalidInput, "an agent has no content");
}

/// Also with a stack that was deleted before, by itself.
pub(super) async fn a_generator_is_purged_with_everything_under_it(client: &Client) {
    let Client { context, .. } = client;
    let generator = client.generator().await;
    let (early, _) = client.deployed(generator).await;
    client.deployed(generator).await;
    let first = client.delete_stack(early).await.expect("deleted by itself");
    let deletion = client.delete_generator(generator).await.expect("a deletion");
    let force = PurgeOptions { force: true, reason: Some("test data"), ..PurgeOptions::default() };
    purge(context, &admin(), deletion, force).await.expect("both begin");
    let state = async |id| {
        context.stores.deletion.deletion_fetch(id).await.expect("a read").expect("it").state
    };
    assert_eq!(state(first).await, DeletionState::Purging);
    assert_eq!(batches(client, deletion).await, DeletionState::Purging, "the stack goes first");
    assert_eq!(batches(client, first).await, DeletionState::Purged);
    assert_eq!(batches(client, deletion).await, DeletionState::Purged);
    assert!(stacks::fetch(context, &admin(), early, true).await.is_err());
}

/// What is kept how long, and what of test data goes with one request.
pub(super) async fn retention_is_of_the_generator_and_many_are_purged_at_once(client: &Client) {
    let Client { context, .. } = client;
    let generator = client.generator().await;
    let day = Duration::from_secs(86_400);
    let change = GeneratorChange { retention: Some(Some(day)), ..GeneratorChange::default() };
    generators::update(context, &admin(), generator, &change, Expected::Any).await.expect("a day");
    let (kept, _) = client.deployed(generator).await;
    let deletion = client.delete_stack(kept).await.expect("a deletion");
    let found = context.stores.deletion.deletion_fetch(deletion).await.expect("a read");
    assert_eq!(found.expect("it").retention, day);
    let long = GeneratorChange { retention: Some(Some(4_000 * day)), ..change };
    let refusal = generators::update(context, &admin(), generator, &long, Expected::Any).await;
    assert_eq!(refused(refusal), ErrorKind::InvalidInput);

    let prefix = client.name("e2e").replace(' ', "-");
    let mut gone = Vec::new();
    for number in 0..3 {
        let name = format!("{prefix}-{number}");
        let stack = client.stack_called(generator, &name).await.expect("a stack");
        tags::add_label(context, &admin(), stack.into(), &prefix).await.expect("a label");
        gone.push(client.delete_stack(stack).await.expect("a deletion"));
    }
    let stays = client.stack_called(generator, &format!("{prefix}-live")).await.expect("a stack");
    let by_name = PurgeFilter {
        generator: Some(generator),
        name_prefix: Some(prefix.clone()),
        ..PurgeFilter::default()
    };
    let many = async |filter: &PurgeFilter, force| -> Result<PurgedMany, crate::Error> {
        let reason = Some("end of the test");
        let options = PurgeOptions { force, reason, ..PurgeOptions::default() };
        purge_many(context, &admin(), filter, options).await
    };
    let counted = many(&by_name, false).await.expect("a count");
    assert_eq!((counted.found, counted.begun, counted.sample.len()), (3, 0, 3));
    let anything = PurgeFilter { name_prefix: None, ..by_name.clone() };
    assert_eq!(refused(many(&anything, true).await), ErrorKind::InvalidInput);
    let anywhere = PurgeFilter { generator: None, ..by_name };
    assert_eq!(refused(many(&anywhere, true).await), ErrorKind::InvalidInput);
    let by_label = PurgeFilter {
        project: Some("default".to_owned()),
        label: Some(prefix),
        kind: Some(SubjectKind::Stack),
        ..PurgeFilter::default()
    };
    let begun = many(&by_label, true).await.expect("they begin");
    assert_eq!((begun.found, begun.begun), (3, 3));
    for id in gone {
        assert_eq!(batches(client, id).await, DeletionState::Purged);
    }
    assert!(client.is_live(stays).await);
    client.restore(deletion).await.expect("another one is not touched");
}

struct InProject {
    project: String,
    generator: GeneratorId,
    stack: slipway_core::ids::StackId,
    agent: AgentId,
}

async fn in_project(client: &Client) -> InProject {
    let Client { context, .. } = client;
    let project = client.name("project").replace(' ', "-");
    let draft =
        Draft { name: &project, labels: BTreeMap::default(), mesh_cidr: None, protected: false };
    projects::create(context, &admin(), draft, None).await.expect("a project");
    let input = CreateGenerator {
        project: Some(project.clone()),
        name: client.name("gen"),
        ..CreateGenerator::default()
    };
    let (generator, _) = generators::create(context, &admin(), input, None).await.expect("one");
    let (stack, _) = client.deployed(generator).await;
    let input = CreateAgent {
        project: Some(project.clone()),
        name: client.name("agent"),
        cluster_name: "berlin".to_owned(),
        ..CreateAgent::default()
    };
    let (agent, _) = agents::create(context, &admin(), input, None).await.expect("an agent");
    links::register(context, &admin(), agent, generator).await.expect("consent");
    links::target(context, &admin(), agent, stack).await.expect("a target");
    InProject { project, generator, stack, agent }
}

/// With everything of Fleet in it, which the plan names, and back.
pub(super) async fn a_project_goes_and_comes_back_with_its_fleet(client: &Client) {
    let Client { context, .. } = client;
    let InProject { project, generator, stack, agent } = in_project(client).await;
    let template = CreateTemplate {
        project: Some(project.clone()),
        name: client.name("template"),
        content: "kind: A".to_owned(),
        parameters_schema: r#"{"type": "object"}"#.to_owned(),
        ..CreateTemplate::default()
    };
    let template = templates::create(context, &admin(), template, None).await.expect("one");
    assert_eq!(client.poll(agent).await.len(), 1);
    let delete =
        async |options| request::delete::<Project>(context, &admin(), &project, options).await;
    let alone = delete(DeleteOptions::default()).await;
    assert_eq!(refused(alone), ErrorKind::ProjectNotEmpty);
    let cascade = DeleteOptions { cascade: true, ..DeleteOptions::default() };

    let found = kind::fetch::<Project>(context, &admin(), &project, false).await.expect("it");
    let composed = slipway_core::deletion::plan::Composed::default();
    let planned = plan::make(context, &admin(), found.id.into(), true, composed).await;
    let planned = planned.expect("a plan");
    let parsed = planned.members.parse().expect("members");
    let kinds: Vec<_> = parsed.iter().map(|member| member.subject.kind).collect();
    for subject in
        [Subject::from(generator), stack.into(), agent.into(), template.into(), found.id.into()]
    {
        assert!(parsed.iter().any(|member| member.subject == subject), "{kinds:?}");
    }
    assert!(planned.shown.steps.iter().any(|step| step.kind == "agent"), "{:?}", planned.shown);

    let deletion = delete(DeleteOptions { plan: Some(planned.id), ..cascade }).await;
    let deletion = deletion.expect("as planned");
    assert!(!client.is_live(stack).await);
    for subject in [Subject::from(generator), stack.into(), agent.into(), template.into()] {
        let verb = format!("{}.delete", subject.kind);
        assert_eq!(super::deleting::audited(client, &verb, subject).await, ["key:fleet"]);
    }
    let page = Page { after: None, limit: 200 };
    let leaks = async || {
        let found = context.stores.deletion.leak_list(&LeakFilter::default(), page).await;
        let open = |leak: &&slipway_core::deletion::leak::Leak| {
            leak.subject == Subject::from(agent) && leak.resolved.is_none()
        };
        found.expect("a list").iter().filter(open).count()
    };
    assert_eq!(leaks().await, 1, "nobody removes what its agent has");
    let refusal = offers::offer(context, &admin(), agent).await;
    assert_eq!(refused(refusal), ErrorKind::AgentNotFound);
    let force = PurgeOptions { force: true, reason: Some("x"), ..PurgeOptions::default() };
    let refusal = purge(context, &admin(), deletion, force).await;
    assert_eq!(refused(refusal), ErrorKind::PurgeWithheld, "a leak is open");

    let restored = client.restore(deletion).await.expect("it comes back");
    assert_eq!(restored.returning.len(), 5, "{:?}", restored.returning);
    assert!(client.is_live(stack).await);
    assert_eq!(leaks().await, 0);
    let offered = client.poll(agent).await;
    assert_eq!((offered.len(), offered[0].content.clone()), (1, content("one")));

    // While it is leaving nothing new comes in, and the purge takes everything.
    let again = delete(DeleteOptions { grace: Some(Duration::from_secs(3_600)), ..cascade }).await;
    let again = again.expect("scheduled");
    assert!(client.is_live(stack).await, "its grace lasts");
    let input = CreateGenerator {
        project: Some(project.clone()),
        name: client.name("late"),
        ..CreateGenerator::default()
    };
    let refusal = generators::create(context, &admin(), input, None).await;
    assert_eq!(refused(refusal), ErrorKind::ProjectLeaving);
    let sooner = DeleteOptions { grace: Some(Duration::ZERO), ..cascade };
    assert_eq!(delete(sooner).await.expect("now"), again);
    agents::delete(context, &admin(), agent, DeleteOptions::default()).await.expect("it first");
    runner(context).pass().await.expect("a pass");
    assert!(!client.is_live(stack).await, "its grace is over");
}

/// A key that deletes stacks is stopped like one that deletes resources.
pub(super) async fn the_brake_counts_stacks(client: &Client) {
    let mut context = client.context.clone();
    context.settings.brake = Limits { resources: 3, window: Duration::from_secs(600) };
    let generator = client.generator().await;
    for _ in 0..4 {
        client.stack(generator).await;
    }
    let keyed = Caller {
        name: client.name("script").replace(' ', "-"),
        role: Role::Admin,
        key_id: Some(ApiKeyId::new(context.entropy.uuid())),
        ..admin()
    };
    let options = DeleteOptions::default();
    let refusal = generators::delete(&context, &keyed, generator, options).await;
    assert_eq!(refused(refusal), ErrorKind::DeletionBrake);
}

/// Objects that nothing needs go; the newest, those that agents have and content to go back to
/// stay.
pub(super) async fn superseded_objects_are_pruned(client: &Client) {
    let Client { context, .. } = client;
    let generator = client.generator().await;
    let (stack, first) = client.deployed(generator).await;
    let agent = client.agent_of(generator, stack).await;
    assert_eq!(client.offered(agent).await, [first]);
    client.report(agent, first, "SUCCESS").await.expect("a report");
    let second = client.submit(stack, "two").await.expect("an object");
    for _ in 0..KEPT_OBJECTS {
        let marker = objects::submit(context, &admin(), stack, ("", true), None).await;
        marker.expect("a marker");
    }
    let mut after = None;
    let store = &context.stores.fleet;
    loop {
        let step = store.object_prune(KEPT_OBJECTS, after, 3).await.expect("a batch");
        after = step.next;
        if after.is_none() {
            break;
        }
    }
    let page = Page { after: None, limit: 100 };
    let left = objects::list(context, &admin(), stack, page).await.expect("a list");
    let ids: Vec<_> = left.iter().map(|one| one.id).collect();
    assert_eq!(ids.len(), KEPT_OBJECTS as usize + 2, "{ids:?}");
    assert!(ids.contains(&first), "the agent has it");
    assert!(ids.contains(&second), "the newest content");
    for marker in client.poll(agent).await {
        client.report(agent, marker.id, "SUCCESS").await.expect("a report");
    }
    client.submit(stack, "three").await.expect("an object");
    store.object_prune(KEPT_OBJECTS, None, 1_000).await.expect("a batch");
    let left = objects::list(context, &admin(), stack, page).await.expect("a list");
    assert!(left.iter().all(|one| one.id != first && one.id != second), "{left:?}");
    let year = Duration::from_secs(365 * 86_400);
    assert_eq!(store.report_prune(year, 100).await.expect("a batch"), 0);
    assert!(store.report_prune(Duration::ZERO, 10_000).await.expect("a batch") > 0);
}

/// After a restore of the database every newest number is above what agents may have seen.
pub(super) async fn a_restored_database_lifts_numbers(client: &Client) {
    let Client { context, .. } = client;
    let generator = client.generator().await;
    let (stack, object) = client.deployed(generator).await;
    let (gone, _) = client.deployed(generator).await;
    let agent = client.agent_of(generator, stack).await;
    links::target(context, &admin(), agent, gone).await.expect("a target");
    client.poll(agent).await;
    client.delete_stack(gone).await.expect("a deletion");
    let before = client.poll(agent).await;
    let tag = offers::offer(context, &admin(), agent).await.expect("an offer").tag();
    let actor = Actor::new("key:fleet");
    let mut restored = |locked: &LockedControl| {
        Ok(Some(control::restored(&locked.control, "an older backup", &actor)))
    };
    context.stores.operations.control_decide(&mut restored).await.expect("it is noticed");
    let refusal = offers::offer(context, &admin(), agent).await;
    assert_eq!(refused(refusal), ErrorKind::Unavailable, "nobody is told anything");
    crate::operations::control::resume(context, &admin(), "checked").await.expect("resumed");
    let after = client.poll(agent).await;
    let day = 24 * 3_600 * 1_000_000;
    for (old, new) in before.iter().zip(&after) {
        let old = before.iter().find(|one| one.id == new.id).unwrap_or(old);
        assert_eq!(old.id, new.id, "the same object");
        assert!(new.sequence > old.sequence + day / 2, "{old:?} {new:?}");
    }
    let same = offers::offer(context, &admin(), agent).await.expect("an offer").tag();
    assert_eq!(tag, same, "what it has is what it should have");
    let newer = client.submit(stack, "two").await.expect("an object");
    let lifted = client.object(object).await.sequence;
    assert!(client.object(newer).await.sequence > lifted);
}

/// An agent that asks while content is erased gets the content, the marker or no answer, never
/// what is left of the content.
pub(super) async fn poll_with_purge_at_once(client: &Client) {
    let generator = client.generator().await;
    let (stack, _) = client.deployed(generator).await;
    let agent = client.agent_of(generator, stack).await;
    client.poll(agent).await;
    let deletion = client.delete_stack(stack).await.expect("a deletion");
    let (a, b) = (client.clone(), client.clone());
    let (offered, purged) = at_once(
        async move { offers::target_state(&a.context, &admin(), agent).await },
        async move { purge(&b.context, &admin(), deletion, now("a leaked secret")).await },
    )
    .await;
    purged.expect("it begins");
    match offered {
        Ok(offered) => assert!(offered.len() == 1 && offered[0].is_marker, "{offered:?}"),
        refusal => assert_eq!(refused(refusal), ErrorKind::Unavailable),
    }
    let offered = client.poll(agent).await;
    assert!(offered.len() == 1 && offered[0].is_marker, "still owed: {offered:?}");
    assert_eq!(batches(client, deletion).await, DeletionState::Purging);
}

/// Whoever comes first: nothing of Fleet is live in a deleted project.
pub(super) async fn create_with_delete_of_the_project(client: &Client) {
    let InProject { project, generator, .. } = in_project(client).await;
    let (a, b) = (client.clone(), client.clone());
    let (name, late) = (client.name("raced"), client.name("late"));
    let of = project.clone();
    let ((stack, made), deleted) = at_once(
        async move {
            let stack = a.stack_called(generator, &name).await;
            let project = Some(of);
            let input = CreateGenerator { project, name: late, ..CreateGenerator::default() };
            (stack, generators::create(&a.context, &admin(), input, None).await)
        },
        async move {
            let cascade = DeleteOptions { cascade: true, ..DeleteOptions::default() };
            request::delete::<Project>(&b.context, &admin(), &project, cascade).await
        },
    )
    .await;
    deleted.expect("it goes");
    match stack {
        Ok(stack) => assert!(!client.is_live(stack).await, "it went with its project"),
        refusal => assert_eq!(refused(refusal), ErrorKind::GeneratorNotFound),
    }
    match made {
        Ok((made, _)) => {
            let found = generators::fetch(&client.context, &admin(), made, false).await;
            assert_eq!(refused(found), ErrorKind::GeneratorNotFound, "it went, too");
        }
        refusal => {
            let kind = refused(refusal);
            let fits = [ErrorKind::ProjectNotFound, ErrorKind::ProjectLeaving].contains(&kind);
            assert!(fits, "{kind}");
        }
    }
}

/// An agent that starts to hold the stack while it is deleted with `keep` either keeps the
/// deletion back or is never told to remove anything.
pub(super) async fn poll_with_delete_that_keeps(client: &Client) {
    let generator = client.generator().await;
    let (stack, object) = client.deployed(generator).await;
    let agent = client.agent_of(generator, stack).await;
    let (a, b) = (client.clone(), client.clone());
    let (offered, deleted) = at_once(async move { a.offered(agent).await }, async move {
        stacks::delete(&b.context, &admin(), stack, KEEPING).await
    })
    .await;
    match deleted {
        Ok(_) => assert_eq!((offered, client.offered(agent).await), (vec![], vec![])),
        refusal => {
            assert_eq!(refused(refusal), ErrorKind::KeepNotSupported);
            assert_eq!(client.offered(agent).await, [object]);
        }
    }
}
