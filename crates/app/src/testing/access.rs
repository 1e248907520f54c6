//! Keys, scopes, tokens by hand and the audit: the suite's part about access.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use slipway_core::access::api_key::{ApiKey, Principal};
use slipway_core::access::api_key_rules::{self, NewKey, NewSecret};
use slipway_core::access::role::Role;
use slipway_core::catalog::project::Project;
use slipway_core::error::ErrorKind;
use slipway_core::ids::{ApiKeyId, BootstrapTokenId, ProjectId};
use slipway_core::nodes::token::TokenKind;
use slipway_core::nodes::tokens_by_hand::{self, Issue};
use slipway_core::operations::explanation::ExplainedKind;
use slipway_core::precondition::Expected;
use slipway_core::subject::SubjectKind;
use slipway_core::{Phase, Timestamp};
use uuid::Uuid;

use crate::access::port::KeyTarget;
use crate::access::port::Owned;
use crate::access::port::{AuditFilter, AuditOrder};
use crate::broker::port::ResourceKey;
use crate::deletion::port::DeletionFilter;
use crate::ports::store::{Error, Page};
use crate::testing::world::{World, operator, refused};

const ALL: u32 = 10_000;

impl World {
    pub(super) fn new_key(&self, role: Role, project: Option<&str>) -> NewKey {
        NewKey {
            id: ApiKeyId::new(self.uuid()),
            name: self.fresh_name("key"),
            owner: "ada".to_owned(),
            reach: None,
            role,
            principal: Principal::Holder,
            project: project.map(str::to_owned),
            lifetime: None,
            secret: self.new_secret(),
        }
    }

    pub(super) async fn make_key(&self, new: &NewKey) -> Result<(), Error> {
        let target = KeyTarget::New { name: new.name.clone(), project: new.project.clone() };
        let mut rule = |snapshot: &_| api_key_rules::create(snapshot, new, &operator());
        self.store.kind::<ApiKey>().decide(&target, &mut rule).await
    }

    pub(super) async fn revoke_key(&self, id: ApiKeyId) -> Result<(), Error> {
        let mut rule =
            |snapshot: &_| api_key_rules::revoke(snapshot, Expected::Any, Some("why"), &operator());
        self.store.kind::<ApiKey>().decide(&KeyTarget::Existing(id), &mut rule).await
    }

    /// Gives the key another text.
    pub(super) async fn rotate_key(
        &self,
        id: ApiKeyId,
        secret: &NewSecret,
        overlap: u64,
        expected: Expected,
    ) -> Result<(), Error> {
        let overlap = Duration::from_secs(overlap);
        let mut rule =
            |snapshot: &_| api_key_rules::rotate(snapshot, secret, overlap, expected, &operator());
        self.store.kind::<ApiKey>().decide(&KeyTarget::Existing(id), &mut rule).await
    }

    pub(super) fn new_secret(&self) -> NewSecret {
        NewSecret { short: self.fresh_name("short"), hash: self.hash() }
    }

    /// The keys with this short part, now or before their last rotation.
    pub(super) async fn candidates(&self, short: &str) -> Vec<ApiKey> {
        let found = self.store.access.api_key_candidates(short).await.expect("candidates");
        let now = self.store.operations.database_now().await.expect("a clock");
        assert!(found.iter().all(|found| found.now <= now), "by the database's clock");
        found.into_iter().map(|found| found.key).collect()
    }

    pub(super) async fn key_is(&self, id: ApiKeyId) -> ApiKey {
        self.store
            .kind::<ApiKey>()
            .fetch(&id.to_string(), true)
            .await
            .expect("a fetch")
            .expect("the key is there")
    }
}

pub(super) async fn conformance(world: &World) {
    a_key_comes_back_as_it_was_made_and_goes_for_good(world).await;
    a_rotated_key_is_found_by_both_texts(world).await;
    a_bound_key_goes_with_its_project(world).await;
    what_belongs_to_a_project_is_told_apart(world).await;
    names_are_found_and_shown(world).await;
    a_token_by_hand_takes_the_place_of_the_one_before(world).await;
    the_audit_is_filtered_and_paged_from_both_ends(world).await;
}

async fn a_key_comes_back_as_it_was_made_and_goes_for_good(world: &World) {
    let lifetime = Some(Duration::from_secs(3_600));
    let new = NewKey { lifetime, ..world.new_key(Role::Operator, None) };
    world.make_key(&new).await.expect("a key");
    let key = world.key_is(new.id).await;
    assert_eq!((&key.name, key.role, key.project_id), (&new.name, Role::Operator, None));
    assert_eq!((&key.short, key.hash), (&new.secret.short, new.secret.hash));
    assert_eq!(key.created_by.as_deref(), Some(operator().name.as_str()));
    let expires_at = key.expires_at.expect("it expires");
    assert_eq!(expires_at.since(key.created_at), Duration::from_secs(3_600));
    assert_eq!(world.candidates(&new.secret.short).await, std::slice::from_ref(&key));

    let again = NewKey { id: ApiKeyId::new(world.uuid()), ..new.clone() };
    assert_eq!(refused(world.make_key(&again).await), ErrorKind::NameTaken);
    let stray = NewKey { project: Some("nowhere".to_owned()), ..world.new_key(Role::Viewer, None) };
    assert_eq!(refused(world.make_key(&stray).await), ErrorKind::ProjectNotFound);

    world.revoke_key(new.id).await.expect("a revocation");
    let revoked = world.key_is(new.id).await;
    assert!(revoked.revoked_at.is_some_and(|at| at >= key.created_at));
    assert!(revoked.revision > key.revision);
    world.revoke_key(new.id).await.expect("revoking twice is the same as once");
    assert_eq!(world.key_is(new.id).await, revoked);
    let gone = world.revoke_key(ApiKeyId::new(world.uuid())).await;
    assert_eq!(refused(gone), ErrorKind::KeyNotFound);
    assert_eq!(refused(world.make_key(&again).await), ErrorKind::NameTaken, "names stay taken");

    let page = Page { after: None, limit: ALL };
    let all = world.store.kind::<ApiKey>().page(&None, page).await.expect("a list");
    assert!(all.iter().any(|key| key.id == new.id) && all.is_sorted_by_key(|key| key.id));
    let first =
        world.store.kind::<ApiKey>().page(&None, Page { limit: 1, ..page }).await.expect("a page");
    assert_eq!(first[..], all[..1]);
}

async fn a_rotated_key_is_found_by_both_texts(world: &World) {
    let new = world.new_key(Role::Admin, None);
    world.make_key(&new).await.expect("a key");
    let second = world.new_secret();
    let rotate = async |secret: &NewSecret, overlap, expected| {
        world.rotate_key(new.id, secret, overlap, expected).await
    };
    let before = world.key_is(new.id).await.revision;
    rotate(&second, 60, Expected::Exactly(before)).await.expect("a rotation");
    let stale = rotate(&second, 60, Expected::Exactly(before)).await;
    assert_eq!(refused(stale), ErrorKind::RevisionStale);
    let key = world.key_is(new.id).await;
    let previous = key.previous.clone().expect("the text before is good for a while");
    assert_eq!(
        (previous.short.clone(), previous.hash),
        (new.secret.short.clone(), new.secret.hash)
    );
    for short in [&new.secret.short, &second.short] {
        assert_eq!(world.candidates(short).await, std::slice::from_ref(&key), "{short}");
    }
    let third = world.new_secret();
    rotate(&third, 0, Expected::Any).await.expect("a rotation");
    assert_eq!(world.candidates(&new.secret.short).await, [], "two rotations ago");
    let previous = world.key_is(new.id).await.previous.expect("the text before");
    assert_eq!((previous.hash, previous.until), (second.hash, Timestamp::ZERO));
}

async fn a_bound_key_goes_with_its_project(world: &World) {
    let project = world.fresh_name("project");
    let id = world.create_project(&project).await.expect("a project");
    let new = world.new_key(Role::Admin, Some(&project));
    world.make_key(&new).await.expect("a key");
    let key = world.key_is(new.id).await;
    assert_eq!((key.role, key.project_id), (Role::Admin, Some(id)));
    let page = Page { after: None, limit: ALL };
    let own = world.store.kind::<ApiKey>().page(&Some(id), page).await.expect("a list");
    assert_eq!(own.items, [key]);
    let usable = world.usable_admins().await;
    world.delete_project(&project).await.expect("a deletion");
    assert_eq!(world.candidates(&new.secret.short).await, [], "there is nothing that it reaches");
    assert_eq!(world.usable_admins().await, usable, "it was never counted");
}

async fn names_are_found_and_shown(world: &World) {
    let (project, _) = world.furnished().await;
    let found = world.store.kind::<Project>().fetch(&project, false).await.expect("a fetch");
    let project_id = found.expect("the project is there").id;
    let (ready, node) = world.ready().await;
    let snapshot = world.snapshot(ready.attempt).await;
    let handle = snapshot.resource.handle.to_string();
    let own = Some(snapshot.resource.project_id);
    let token = snapshot.node.expect("it is enrolled").bootstrap_token_id;
    let key = world.new_key(Role::Viewer, None);
    world.make_key(&key).await.expect("a key");
    let deletion = world.delete(ready.resource).await.expect("a deletion");

    let access = &world.store.access;
    let resource = ready.resource.as_uuid();
    let stranger = world.uuid();
    let ids = [
        (project_id.as_uuid(), Some(project.as_str())),
        (resource, Some(&handle)),
        (ready.attempt.as_uuid(), Some(&handle)),
        (token.as_uuid(), Some(&handle)),
        (node.as_uuid(), Some("node.example")),
        (key.id.as_uuid(), Some(&key.name)),
        (deletion.as_uuid(), None),
        (stranger, None),
    ];
    let names = access.names(&ids.map(|(id, _)| id)).await.expect("names");
    for (id, name) in ids {
        assert_eq!(names.get(&id).map(String::as_str), name, "{names:?}");
    }
    assert!(access.names(&[]).await.expect("names").is_empty());

    let nothing = Uuid::max()..=Uuid::nil();
    let named = async |kind, name: &str, within| {
        let found = access.candidates(kind, name, &nothing, within).await.expect("candidates");
        assert!(found.iter().all(|one| one.is_named), "{found:?}");
        found.into_iter().map(|one| (one.id, one.is_live)).collect::<Vec<_>>()
    };
    let node_id = node.as_uuid();
    for within in [None, own] {
        assert_eq!(named(SubjectKind::Resource, &handle, within).await, [(resource, true)]);
        assert_eq!(named(SubjectKind::Node, &handle, within).await, [(node_id, true)]);
    }
    let hosts = named(SubjectKind::Node, "node.example", None).await;
    assert!(hosts.first() == Some(&(node_id, true)) && hosts.len() <= 10, "{hosts:?}");
    assert_eq!(named(SubjectKind::ApiKey, &key.name, None).await, [(key.id.as_uuid(), true)]);
    let found = named(SubjectKind::Project, &project, None).await;
    assert_eq!(found, [(project_id.as_uuid(), true)]);
    let elsewhere = Some(project_id);
    assert_eq!(named(SubjectKind::Resource, &handle, elsewhere).await, [], "it is out of reach");
    assert_eq!(named(SubjectKind::Deletion, &handle, None).await, [], "it has no name");

    let whole = |id: Uuid| id..=id;
    for (kind, id) in [
        (SubjectKind::Resource, resource),
        (SubjectKind::ProvisionedResource, ready.attempt.as_uuid()),
        (SubjectKind::Node, node_id),
        (SubjectKind::BootstrapToken, token.as_uuid()),
        (SubjectKind::Deletion, deletion.as_uuid()),
    ] {
        for within in [None, own] {
            let found = access.candidates(kind, "0192", &whole(id), within).await;
            let found = found.expect("candidates");
            assert!(matches!(&found[..], [one] if one.id == id && !one.is_named), "{found:?}");
        }
        let found = access.candidates(kind, "0192", &whole(id), elsewhere).await;
        assert_eq!(found.expect("candidates"), [], "{kind} is out of reach");
    }
    for kind in SubjectKind::ALL {
        access.candidates(*kind, "nobody", &nothing, None).await.expect("a statement that works");
    }
}

async fn what_belongs_to_a_project_is_told_apart(world: &World) {
    let (own, _) = world.furnished().await;
    let (other, _) = world.furnished().await;
    let fetch = async |name: &str| -> ProjectId {
        let found = world.store.kind::<Project>().fetch(name, false).await.expect("a fetch");
        found.expect("the project is there").id
    };
    let (own_id, other_id) = (fetch(&own).await, fetch(&other).await);
    let mine = world.declare_in(&own).await.expect("a declaration");
    let theirs = world.declare_in(&other).await.expect("a declaration");
    let deletion = world.delete(mine.resource).await.expect("a deletion");
    world.delete(theirs.resource).await.expect("a deletion");
    while world.store.events.outbox_relay(100).await.expect("a relay") > 0 {}

    let of = async |owned| world.store.access.project_of(owned).await.expect("a project");
    assert_eq!(of(Owned::Resource(mine.resource)).await, Some(own_id));
    assert_eq!(of(Owned::Resource(theirs.resource)).await, Some(other_id));
    assert_eq!(of(Owned::Deletion(deletion)).await, Some(own_id));
    assert_eq!(of(Owned::Token(BootstrapTokenId::new(world.uuid()))).await, None);

    let store = &world.store;
    let find = async |ids: RangeInclusive<Uuid>, within| {
        store.access.id_find(&ids, within, 3).await.expect("subjects")
    };
    let exactly = |id: Uuid| id..=id;
    let resource = mine.resource.as_uuid();
    for within in [None, Some(own_id)] {
        let of = async |id| find(exactly(id), within).await;
        assert_eq!(of(resource).await, [(ExplainedKind::Resource, resource)]);
        let attempt = mine.attempt.as_uuid();
        assert_eq!(of(attempt).await, [(ExplainedKind::Attempt, attempt)]);
        let deletion = deletion.as_uuid();
        assert_eq!(of(deletion).await, [(ExplainedKind::Deletion, deletion)]);
        assert_eq!(of(own_id.as_uuid()).await, [(ExplainedKind::Project, own_id.as_uuid())]);
    }
    let theirs_id = theirs.resource.as_uuid();
    assert_eq!(find(exactly(theirs_id), Some(own_id)).await, [], "it is out of reach");
    assert_eq!(find(exactly(theirs_id), None).await.len(), 1);
    let every = find(Uuid::nil()..=Uuid::max(), None).await;
    let resources = every.iter().filter(|(kind, _)| *kind == ExplainedKind::Resource);
    assert_eq!(resources.count(), 3, "no more of a kind than was asked for");
    let events = store.events.event_list_in(own_id, Page { after: None, limit: ALL }).await;
    let events = events.expect("a list");
    assert!(events.len() >= 2 && events.iter().all(|event| event.project_id == Some(own_id)));
    assert!(events.is_sorted_by_key(|event| event.position));
    let after = Page { after: Some(events[0].position), limit: 1 };
    assert_eq!(store.events.event_list_in(own_id, after).await.expect("a page")[..], events[1..2]);
    let page = Page { after: None, limit: ALL };
    let own = DeletionFilter { own: Some(own_id), ..DeletionFilter::default() };
    let deletions = store.deletion.deletion_list(&own, page).await.expect("a list");
    assert_eq!(deletions.iter().map(|found| found.id).collect::<Vec<_>>(), [deletion]);
    let page = Page { after: Some(deletion), limit: ALL };
    assert_eq!(store.deletion.deletion_list(&own, page).await.expect("a list").items, []);
    let page = Page { after: None, limit: ALL };
    assert_eq!(store.nodes.node_list_in(own_id, page).await.expect("a list").items, []);
    let nodes = store.nodes.node_list(page).await.expect("a list");
    if let Some(node) = nodes.first() {
        assert_eq!(of(Owned::Node(node.id)).await, Some(node.project_id));
        let filter = store.nodes.node_list_in(node.project_id, page).await.expect("a list");
        assert!(filter.iter().all(|found| found.project_id == node.project_id));
        assert!(filter.contains(node));
    }
}

async fn a_token_by_hand_takes_the_place_of_the_one_before(world: &World) {
    let declared = world.declare(&world.handle()).await.expect("a declaration");
    let issue = |hash| Issue {
        id: BootstrapTokenId::new(world.uuid()),
        hash,
        kind: TokenKind::Node,
        lifetime: Duration::from_secs(600),
    };
    let ask = async |issue: Issue| {
        let mut rule = |snapshot: &_| tokens_by_hand::issue(snapshot, issue, &operator());
        world.store.broker.decide(ResourceKey::Resource(declared.resource), &mut rule).await
    };
    assert_eq!(refused(ask(issue(world.hash())).await), ErrorKind::NotEnrolling, "too early");
    world.drive(declared.attempt, Phase::Enrolling).await;
    let page = Page { after: None, limit: ALL };
    let list =
        async || world.store.nodes.token_list(declared.resource, page).await.expect("a list");
    let before = list().await;
    assert_eq!(before.len(), 1, "that of the loop");
    let second = issue(world.hash());
    ask(second).await.expect("a token");
    let after = list().await;
    let old = after.iter().find(|token| token.id == before[0].id).expect("it is kept");
    assert!(old.revoked_at.is_some());
    let token =
        world.store.nodes.token_fetch(second.id).await.expect("a fetch").expect("it is there");
    assert_eq!((token.hash, token.provisioned_resource_id), (second.hash, declared.attempt));
    assert_eq!(token.issued_by.as_deref(), Some(operator().name.as_str()));
    let snapshot = world.snapshot(declared.attempt).await;
    assert_eq!(snapshot.token.as_ref(), Some(&token), "the attempt records it");
    assert_eq!(
        world.store.access.project_of(Owned::Token(second.id)).await.expect("a project"),
        Some(token.project_id)
    );
    let revoke = async |id, hash| {
        let mut rule = |snapshot: &_| tokens_by_hand::revoke(snapshot, id, None, &operator());
        world.store.broker.decide(ResourceKey::Token(hash), &mut rule).await
    };
    let spent = revoke(before[0].id, before[0].hash).await;
    assert_eq!(refused(spent), ErrorKind::TokenNotRevocable);
    revoke(second.id, second.hash).await.expect("a revocation");
    assert_eq!(refused(revoke(second.id, second.hash).await), ErrorKind::TokenNotRevocable);
    // The loop continues with a token of its own.
    let claimed = world.claim_now(declared.attempt).await;
    world.tick(claimed).await.expect("an undisturbed tick succeeds");
    let snapshot = world.snapshot(declared.attempt).await;
    let token = snapshot.token.expect("an attempt that waits has a token");
    assert!(token.is_usable(snapshot.now) && token.issued_by.is_none(), "{token:?}");
}

async fn the_audit_is_filtered_and_paged_from_both_ends(world: &World) {
    let new = world.new_key(Role::Viewer, None);
    world.make_key(&new).await.expect("a key");
    world.revoke_key(new.id).await.expect("a revocation");
    let page = Page { after: None, limit: ALL };
    let list = async |filter: &AuditFilter, order, page| {
        world.store.access.audit_list(filter, order, page).await.expect("a list")
    };
    let subject = Some(new.id.as_uuid());
    let about = AuditFilter { subject, ..AuditFilter::default() };
    let lines = list(&about, AuditOrder::OldestFirst, page).await;
    let mut verbs: Vec<_> = lines.iter().map(|line| line.verb.as_str()).collect();
    verbs.sort_unstable();
    assert_eq!(verbs, ["api_key.create", "api_key.revoke"]);
    let revoked = AuditFilter { verb: Some("api_key.revoke".to_owned()), ..about.clone() };
    let line = &list(&revoked, AuditOrder::NewestFirst, page).await[0];
    assert_eq!((line.reason.as_deref(), &line.actor), (Some("why"), &operator().name));
    assert_eq!(line.details["name"], new.name.as_str());

    for (filter, found) in [
        (AuditFilter { actor: Some("key:nobody".to_owned()), ..about.clone() }, 0),
        (AuditFilter { actor: Some(operator().name), ..about.clone() }, 2),
        (AuditFilter { kind: Some(ApiKeyId::KIND.to_owned()), ..about.clone() }, 2),
        (AuditFilter { kind: Some("project".to_owned()), ..about.clone() }, 0),
        (AuditFilter { project: Some("nowhere".to_owned()), ..about.clone() }, 0),
        (AuditFilter { within: Some(ProjectId::new(world.uuid())), ..about.clone() }, 0),
        (AuditFilter { since: Some(Timestamp::from_micros(1)), ..about.clone() }, 2),
        (AuditFilter { until: Some(Timestamp::from_micros(1)), ..about.clone() }, 0),
        (AuditFilter { since: Some(line.at), until: Some(line.at), ..about.clone() }, 0),
    ] {
        let lines = list(&filter, AuditOrder::OldestFirst, page).await;
        assert_eq!(lines.len(), found, "{filter:?}");
    }

    let all = AuditFilter::default();
    for order in [AuditOrder::OldestFirst, AuditOrder::NewestFirst] {
        let whole = list(&all, order, page).await;
        let mut paged = Vec::new();
        loop {
            let after = paged.last().map(|line: &crate::access::port::AuditLine| line.id);
            let next = list(&all, order, Page { after, limit: 97 }).await;
            if next.is_empty() {
                break;
            }
            paged.extend(next);
        }
        assert_eq!(paged, whole.items, "{order:?}");
    }
}

/// If the last two admin keys are revoked at the same moment, one stays.
pub(super) async fn races(world: &Arc<World>) {
    while usable_admins(world).await.len() < 2 {
        world.make_key(&world.new_key(Role::Admin, None)).await.expect("a key");
    }
    let both = usable_admins(world).await;
    let revoke = |id: &ApiKeyId| {
        let (world, id) = (Arc::clone(world), *id);
        tokio::spawn(async move { world.revoke_key(id).await })
    };
    let attempts: Vec<_> = both.iter().map(revoke).collect();
    let mut kept = 0;
    for attempt in attempts {
        let outcome = attempt.await.expect("no panic");
        if outcome.is_err() {
            assert_eq!(refused(outcome), ErrorKind::LastAdminKey);
            kept += 1;
        }
    }
    assert_eq!((kept, usable_admins(world).await.len()), (1, 1), "somebody has to be left");
}

async fn usable_admins(world: &World) -> Vec<ApiKeyId> {
    let page = Page { after: None, limit: ALL };
    let all = world.store.kind::<ApiKey>().page(&None, page).await.expect("a list");
    let now = world.store.operations.database_now().await.expect("a clock");
    all.into_iter().filter(|key| key.keeps_administration(now)).map(|key| key.id).collect()
}
