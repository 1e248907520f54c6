//! Settings of deletions, and the purge of what is past its retention.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use slipway_core::broker::observation::CompositeReport;
use slipway_core::broker::retry;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::catalog::cloud::Cloud;
use slipway_core::catalog::credential::Credential;
use slipway_core::catalog::project::Project;
use slipway_core::commit::{Commit, Write};
use slipway_core::deletion::DeletionWrite;
use slipway_core::deletion::door::Ask;
use slipway_core::deletion::leak::LeakRecord;
use slipway_core::deletion::purge::{self, PurgeSnapshot, Trigger};
use slipway_core::deletion::record::{Deletion, DeletionState};
use slipway_core::deletion::request::DeletionSnapshot;
use slipway_core::deletion::settings::{self, SettingScope, SettingSnapshot, Values};
use slipway_core::ids::{
    AuditEntryId, DeletionId, LeakRecordId, ProjectId, ProvisionedResourceId, SubscriptionId,
};
use slipway_core::operations::control::{self, LockedControl};
use slipway_core::subject::SubjectKind;
use slipway_core::text::Reason;
use slipway_core::{ErrorKind, Phase};

use super::races::at_once;
use super::world::{Declared, World, operator, refused};
use crate::broker::port::{AttemptFilter, ResourceKey};
use crate::catalog::port::CredentialKey;
use crate::ports::store::Error;

const HOUR: Duration = Duration::from_secs(3_600);

fn why() -> Reason {
    Reason::parse("the suite wants it").expect("a valid reason")
}

fn nothing_kept() -> Values {
    Values { retention: Some(Duration::ZERO), ..Values::default() }
}

impl World {
    async fn set(&self, scope: SettingScope, values: Values) -> Result<(), Error> {
        let mut rule = |snapshot: &SettingSnapshot| {
            settings::set(snapshot, scope, values, &why(), &operator())
        };
        self.store.deletion.setting_decide(scope, &mut rule).await
    }

    async fn unset(&self, scope: SettingScope) {
        let mut rule =
            |snapshot: &SettingSnapshot| Ok(settings::remove(snapshot, scope, &why(), &operator()));
        self.store.deletion.setting_decide(scope, &mut rule).await.expect("it is removed");
    }

    async fn id_of(&self, project: &str) -> ProjectId {
        let found = self.store.kind::<Project>().fetch(project, false).await.expect("a fetch");
        found.expect("the project").id
    }

    /// A project in which something can be declared, and of which nothing is kept once it is
    /// deleted.
    async fn forgetful(&self) -> (String, ProjectId) {
        let (project, _) = self.furnished().await;
        let id = self.id_of(&project).await;
        let scope = SettingScope { project: Some(id), kind: None };
        self.set(scope, nothing_kept()).await.expect("a setting");
        (project, id)
    }

    /// One that had a node and is deleted, in the project.
    pub(in crate::testing) async fn deleted_in(&self, project: &str) -> (Declared, DeletionId) {
        let declared = self.declare_in(project).await.expect("a declaration");
        self.drive(declared.attempt, Phase::Enrolling).await;
        let token = self.token(declared.attempt).await;
        self.enrol(token, self.public_key()).await.expect("an enrolment");
        self.drive(declared.attempt, Phase::Ready).await;
        let id = self.delete(declared.resource).await.expect("a deletion");
        self.force(declared.resource).await.expect("nobody waits for the node");
        self.drive(declared.attempt, Phase::Deleted).await;
        (declared, id)
    }

    /// The same, and its absence is proven.
    async fn gone_in(&self, project: &str) -> (Declared, DeletionId) {
        let (declared, id) = self.deleted_in(project).await;
        self.prove(declared.attempt).await;
        (declared, id)
    }

    async fn prove(&self, attempt: ProvisionedResourceId) {
        let claimed = self.claim_now(attempt).await;
        self.tick_proving(claimed, &CompositeReport::Absent).await.expect("a tick");
        assert!(self.snapshot(attempt).await.attempt.absence_proven_at().is_some());
    }

    async fn begin_purge(&self, id: DeletionId, trigger: Trigger<'_>) -> Result<(), Error> {
        let mut rule = |snapshot: &PurgeSnapshot| purge::begin(snapshot, trigger, &operator());
        self.store.deletion.purge_decide(id, &mut rule).await
    }

    /// Removes batch after batch, and answers how many there were.
    async fn remove_all(&self, id: DeletionId, limit: u32) -> usize {
        let mut batches = 0;
        loop {
            batches += 1;
            let step = self.store.deletion.purge_batch(id, limit).await.expect("a batch");
            assert!(!step.withheld);
            if !step.is_left {
                break;
            }
        }
        let mut rule = |snapshot: &PurgeSnapshot| Ok(purge::end(snapshot, &operator()));
        // Another purger at the same moment may have ended it.
        if let Err(error) = self.store.deletion.purge_decide(id, &mut rule).await {
            assert_eq!(refused::<()>(Err(error)), ErrorKind::RevisionStale);
        }
        batches
    }

    async fn purge(&self, id: DeletionId) {
        let due = self.store.deletion.purge_due(Duration::ZERO, 10_000).await.expect("the due");
        assert!(due.iter().any(|deletion| deletion.id == id), "it is due");
        self.begin_purge(id, Trigger::Retention).await.expect("it begins");
        assert_eq!(self.deletion(id).await.state, DeletionState::Purging);
        self.remove_all(id, 50).await;
        assert_eq!(self.deletion(id).await.state, DeletionState::Purged);
    }

    async fn purge_is_due(&self, id: DeletionId) -> bool {
        let due = self.store.deletion.purge_due(HOUR, 10_000).await.expect("what is due");
        due.iter().any(|deletion| deletion.id == id)
    }

    /// Why the loop does not purge it.
    async fn withheld(&self, id: DeletionId) -> Vec<&'static str> {
        let mut codes = Vec::new();
        let mut rule = |snapshot: &PurgeSnapshot| {
            codes = snapshot.withheld(false).iter().map(|one| one.code).collect();
            Ok(Commit::default())
        };
        self.store.deletion.purge_decide(id, &mut rule).await.expect("an answer");
        let begun = self.begin_purge(id, Trigger::Retention).await;
        assert_eq!(refused(begun), ErrorKind::PurgeWithheld);
        assert_eq!(self.deletion(id).await.state, DeletionState::Done, "nothing is written");
        codes
    }

    async fn counts(&self, id: DeletionId) -> Vec<(&'static str, u64)> {
        self.store.deletion.purge_counts(id).await.expect("counts")
    }

    async fn lines(&self, resource: slipway_core::ids::ResourceId) -> usize {
        let of = AttemptFilter { resource: Some(resource), ..AttemptFilter::default() };
        self.store.broker.attempt_lines(of, 10).await.expect("lines").len()
    }
}

pub(super) async fn conformance(world: &World) {
    settings_hold_at_the_door(world).await;
    what_is_past_its_retention_is_purged_and_nothing_else(world).await;
    what_may_be_needed_is_not_purged(world).await;
    a_container_is_purged_in_batches_after_what_is_in_it(world).await;
    rows_that_others_refer_to_wait_for_them(world).await;
    an_old_attempt_is_purged_and_its_resource_lives(world).await;
    records_of_deletions_that_ended_are_pruned(world).await;
}

/// The most specific one, field by field, and the record keeps what held at its request.
async fn settings_hold_at_the_door(world: &World) {
    let (project, _) = world.furnished().await;
    let id = world.id_of(&project).await;
    let of_project = SettingScope { project: Some(id), kind: None };
    let of_kind = SettingScope { project: None, kind: Some(SubjectKind::Resource) };
    let values = Values {
        grace: Some(HOUR),
        retention: Some(7 * HOUR),
        approve_above: Some(3),
        purge_protected: Some(true),
    };
    world.set(of_project, values).await.expect("a setting");
    world.set(of_project, values).await.expect("again changes nothing");
    let general = Values { grace: Some(2 * HOUR), ..Values::default() };
    world.set(of_kind, general).await.expect("a setting");
    let too_long = Values { grace: Some(HOUR * 24 * 366), ..Values::default() };
    assert_eq!(refused(world.set(of_kind, too_long).await), ErrorKind::InvalidInput);
    let listed = world.store.deletion.setting_list(Some(id)).await.expect("a list");
    assert!(listed.iter().any(|one| one.scope == of_project && one.values == values));
    assert!(listed.iter().any(|one| one.scope == of_kind), "the general ones hold, too");
    let other = ProjectId::new(world.uuid());
    let listed = world.store.deletion.setting_list(Some(other)).await.expect("a list");
    assert!(!listed.iter().any(|one| one.scope == of_project), "that of a project is its own");
    let unknown = SettingScope { project: Some(other), kind: None };
    let missing = world.set(unknown, general).await;
    assert!(matches!(missing, Err(Error::NotFound { .. })), "{missing:?}");

    let declared = world.declare_in(&project).await.expect("a declaration");
    let deletion = world.delete_as(declared.resource, &world.ask()).await.expect("a deletion");
    let found = world.deletion(deletion).await;
    assert_eq!(found.state, DeletionState::Scheduled);
    assert_eq!((found.retention, found.purge_protected), (7 * HOUR, true));
    world.cancel(deletion).await.expect("it stays");
    assert!(world.deletion(deletion).await.ended_at.is_some());

    let own = SettingScope { kind: Some(SubjectKind::Resource), ..of_project };
    let at_once = Values { grace: Some(Duration::ZERO), ..Values::default() };
    world.set(own, at_once).await.expect("a setting");
    world.set(own, Values { purge_protected: Some(false), ..at_once }).await.expect("a change");
    let second = world.delete(declared.resource).await.expect("a deletion");
    let found = world.deletion(second).await;
    assert_eq!(found.state, DeletionState::Running, "a more specific one says now");
    assert_eq!((found.retention, found.purge_protected), (7 * HOUR, false));
    for scope in [own, of_project, of_kind] {
        world.unset(scope).await;
        world.unset(scope).await;
    }
    let left = world.store.deletion.setting_list(None).await.expect("a list");
    assert!(left.is_empty(), "{left:?}");
}

/// Its name was free before and is free after; a neighbour stays as it is.
async fn what_is_past_its_retention_is_purged_and_nothing_else(world: &World) {
    let (project, _) = world.forgetful().await;
    let (neighbour, kept) = world.gone_in(&project).await;
    let (declared, id) = world.gone_in(&project).await;
    let before = world.counts(kept).await;
    let handle = world.snapshot(declared.attempt).await.resource.handle.to_string();
    let key = |project: &str| crate::broker::port::DeclareKey {
        project: project.to_owned(),
        ..world.declare_key(&handle)
    };
    let again = world.declare_by(&key(&project)).await.expect("its name is free");
    let counts = world.counts(id).await;
    for table in ["nodes", "bootstrap_tokens", "provisioned_resources", "resources"] {
        let found = counts.iter().find(|(name, _)| *name == table);
        assert_eq!(found, Some(&(table, 1)), "{counts:?}");
    }
    world.protect(again.resource.into()).await.expect("a protection");
    world.purge(id).await;
    assert_eq!(world.counts(id).await, []);
    let gone = world.store.broker.resource_fetch(declared.resource).await.expect("a fetch");
    assert!(gone.is_none());
    assert_eq!(world.lines(declared.resource).await, 0);
    assert!(world.history(declared.attempt).await.is_empty());
    assert_eq!(world.counts(kept).await, before, "the neighbour is untouched");
    assert_eq!(world.lines(neighbour.resource).await, 1);
    assert_eq!(world.lines(again.resource).await, 1, "the new one of its name lives");
    assert!(!world.purge_is_due(id).await);
    world.begin_purge(id, Trigger::Retention).await.expect("again changes nothing");
    assert!(world.deletion(id).await.ended_at.is_some());

    // What is kept is not due, and nobody purges it but a person.
    let (other, _) = world.furnished().await;
    let (young, id) = world.gone_in(&other).await;
    assert!(!world.purge_is_due(id).await);
    world.begin_purge(id, Trigger::Retention).await.expect("the loop does nothing");
    assert_eq!(world.deletion(id).await.state, DeletionState::Done);
    let reason = why();
    let by_hand = Trigger::ByHand { reason: &reason, despite_protection: false, now: false };
    world.begin_purge(id, by_hand).await.expect("by hand");
    world.remove_all(id, 50).await;
    assert_eq!(world.lines(young.resource).await, 0);
}

/// Each reason by itself, and it goes on when that is gone.
async fn what_may_be_needed_is_not_purged(world: &World) {
    let (project, project_id) = world.forgetful().await;
    let (declared, id) = world.deleted_in(&project).await;
    assert_eq!(world.withheld(id).await, ["not_proven_gone"]);
    let mut earlier = |snapshot: &DeletionSnapshot| {
        let until = Some(snapshot.now.minus(HOUR));
        let over = Deletion { restorable_until: until, ..snapshot.deletion.clone() };
        Ok(Commit {
            writes: vec![Write::Deletion(DeletionWrite::DeletionUpdate(over))],
            ..Commit::default()
        })
    };
    world.store.deletion.deletion_decide(id, &mut earlier).await.expect("it is due for an hour");
    assert!(world.purge_is_due(id).await);
    world.store.deletion.purge_checked(id).await.expect("noted");
    assert!(!world.purge_is_due(id).await, "it is looked at again later");
    let all = world.store.deletion.purge_due(Duration::ZERO, 10_000).await.expect("what is due");
    assert!(all.iter().any(|deletion| deletion.id == id), "then it is due");
    world.prove(declared.attempt).await;

    let leak = LeakRecord {
        id: LeakRecordId::new(world.uuid()),
        kind: "composite",
        subject: declared.attempt.into(),
        found_at: world.store.operations.database_now().await.expect("a clock"),
        last_known: None,
        evidence: json!({}),
    };
    world.store.deletion.leak_record(&leak).await.expect("a leak");
    assert_eq!(world.withheld(id).await, ["open_leak"]);
    let resolve = Commit {
        writes: vec![Write::Deletion(DeletionWrite::LeaksResolve(declared.attempt.into()))],
        ..Commit::default()
    };
    let mut rule = |_: &ResourceSnapshot| Ok(resolve.clone());
    let key = ResourceKey::Resource(declared.resource);
    world.store.broker.decide(key, &mut rule).await.expect("it is resolved");

    let name = world.fresh_name("purge");
    let subscription = SubscriptionId::new(world.uuid());
    world.store.events.subscription_open(subscription, &name).await.expect("a subscription");
    assert_eq!(world.withheld(id).await, ["owed_delivery"], "its events have no position yet");
    world.relay_all(world.store.events.event_span().await.expect("a span").last).await;
    assert_eq!(world.withheld(id).await, ["owed_delivery"], "and are behind a cursor then");
    let audit = AuditEntryId::new(world.uuid());
    world.store.events.subscription_remove(&name, audit, &operator()).await.expect("it goes");

    let mut freeze = |locked: &LockedControl| {
        control::freeze(&locked.control, HOUR, &why(), &operator()).map(Some)
    };
    world.store.operations.control_decide(&mut freeze).await.expect("a freeze");
    assert_eq!(world.withheld(id).await, ["frozen"]);
    let mut unfreeze =
        |locked: &LockedControl| control::unfreeze(&locked.control, &why(), &operator()).map(Some);
    world.store.operations.control_decide(&mut unfreeze).await.expect("it is lifted");

    // Protection against people, until the retention is over.
    let scope = SettingScope { project: Some(project_id), kind: None };
    let protected = Values { purge_protected: Some(true), ..Values::default() };
    world.set(scope, protected).await.expect("a setting");
    let (_, covered) = world.gone_in(&project).await;
    world.unset(scope).await;
    let reason = why();
    let ask =
        |despite_protection| Trigger::ByHand { reason: &reason, despite_protection, now: false };
    let refusal = world.begin_purge(covered, ask(false)).await;
    assert_eq!(refused(refusal), ErrorKind::PurgeWithheld, "whatever the setting is now");
    world.begin_purge(covered, ask(true)).await.expect("with a reason");

    world.purge(id).await;
    world.begin_purge(id, ask(false)).await.expect("again changes nothing");
}

/// Members first, a few in a transaction; whoever is killed in between, another goes on.
/// A child that somebody deleted earlier waits until its parent cannot come back.
async fn a_container_is_purged_in_batches_after_what_is_in_it(world: &World) {
    let (project, project_id) = world.forgetful().await;
    let kept = Values { retention: Some(HOUR), ..Values::default() };
    let (earlier, own) = world.gone_in(&project).await;
    let mut members = Vec::new();
    for _ in 0..3 {
        members.push(world.declare_in(&project).await.expect("a declaration"));
    }
    let child = world.delete_as(members[2].resource, &world.ask_with(HOUR)).await;
    let child = child.expect("a deletion");
    let of_project = SettingScope { project: Some(project_id), kind: Some(SubjectKind::Project) };
    world.set(of_project, kept).await.expect("a setting");
    let ask = Ask { cascade: true, ..world.ask() };
    let id = world.remove::<Project>(&project, &ask).await.expect("a deletion");
    world.begin(members[2].resource).await.expect("the child begins");
    world.advance(id).await;
    let attempts: Vec<_> = members.iter().map(|member| member.attempt).collect();
    world.drive_many(&attempts, Phase::Deleted).await;
    for attempt in &attempts {
        world.prove(*attempt).await;
    }
    world.advance(id).await;
    assert_eq!(world.deletion(id).await.state, DeletionState::Done);
    assert_eq!(world.withheld(child).await, ["parent_kept"]);

    let reason = why();
    let by_hand = Trigger::ByHand { reason: &reason, despite_protection: false, now: false };
    let refusal = world.begin_purge(id, by_hand).await;
    assert_eq!(refused(refusal), ErrorKind::PurgeWithheld, "two in it are not purged");
    world.purge(own).await;
    assert_eq!(world.lines(earlier.resource).await, 0);
    // By hand the child does not wait for the end of its own retention, but for its parent.
    assert_eq!(refused(world.begin_purge(child, by_hand).await), ErrorKind::PurgeWithheld);
    let mut release = |snapshot: &DeletionSnapshot| {
        let over = Deletion { restorable_until: Some(snapshot.now), ..snapshot.deletion.clone() };
        Ok(Commit {
            writes: vec![Write::Deletion(DeletionWrite::DeletionUpdate(over))],
            ..Commit::default()
        })
    };
    world.store.deletion.deletion_decide(id, &mut release).await.expect("its time is over");
    assert_eq!(world.withheld(id).await, ["in_use"], "the child is in it");
    world.purge(child).await;

    world.begin_purge(id, Trigger::Retention).await.expect("it begins");
    let step = world.store.deletion.purge_batch(id, 1).await.expect("a batch");
    assert!(step.is_left && step.removed > 0, "{step:?}");
    let left = members.iter().take(2).map(|member| member.resource);
    let mut found = 0;
    for resource in left {
        found += world.lines(resource).await;
    }
    assert_eq!(found, 1, "one of two is gone, and the rest waits for the next batch");
    assert_eq!(refused(world.cancel(id).await), ErrorKind::NotCancellable);
    assert!(world.remove_all(id, 1).await > 1);
    assert_eq!(world.deletion(id).await.state, DeletionState::Purged);
    let gone = world.store.kind::<Project>().fetch(&project_id.to_string(), true).await;
    assert!(gone.expect("a fetch").is_none());
    let settings = world.store.deletion.setting_list(Some(project_id)).await.expect("a list");
    assert!(settings.iter().all(|setting| setting.scope.project.is_none()), "they go with it");
    world.create_project(&project).await.expect("its name is free");
}

/// A cloud waits for its credentials, a credential for the resources made with it, whether
/// those are deleted or not: no foreign key ever fails.
async fn rows_that_others_refer_to_wait_for_them(world: &World) {
    let scopes = [SubjectKind::Cloud, SubjectKind::Credential]
        .map(|kind| SettingScope { project: None, kind: Some(kind) });
    for scope in scopes {
        world.set(scope, nothing_kept()).await.expect("a setting");
    }
    let named = world.fresh_name("cloud");
    world.create_cloud(&named).await.expect("a cloud");
    let credential = world.create_credential(&named, "old").await.expect("a credential");
    let of_credential =
        world.remove::<Credential>(&CredentialKey::Existing(credential), &world.ask()).await;
    let of_credential = of_credential.expect("a deletion");
    let of_cloud = world.remove::<Cloud>(&named, &world.ask()).await.expect("a deletion");
    assert_eq!(world.withheld(of_cloud).await, ["in_use"]);
    world.purge(of_credential).await;
    world.purge(of_cloud).await;

    let (project, used) = world.furnished().await;
    let id = world.id_of(&project).await;
    let scope = SettingScope { project: Some(id), kind: None };
    world.set(scope, nothing_kept()).await.expect("a setting");
    let (_, of_resource) = world.gone_in(&project).await;
    world.withdraw(&project, used).await.expect("it is withdrawn");
    let of_credential =
        world.remove::<Credential>(&CredentialKey::Existing(used), &world.ask()).await;
    let of_credential = of_credential.expect("a deletion");
    assert_eq!(world.withheld(of_credential).await, ["in_use"]);
    world.purge(of_resource).await;
    world.purge(of_credential).await;
    for scope in scopes {
        world.unset(scope).await;
    }
}

async fn an_old_attempt_is_purged_and_its_resource_lives(world: &World) {
    let declared = world.enrolling().await;
    world.fail(declared.attempt, "quota").await;
    let id = DeletionId::new(world.uuid());
    let mut rule = |snapshot: &ResourceSnapshot| {
        retry::request(snapshot, id, Duration::ZERO, &why(), &operator())
    };
    let key = ResourceKey::Resource(declared.resource);
    world.store.broker.decide(key, &mut rule).await.expect("a retry");
    world.drive(declared.attempt, Phase::Deleted).await;
    assert_eq!(world.withheld(id).await, ["not_proven_gone"]);
    world.prove(declared.attempt).await;
    assert_eq!(world.lines(declared.resource).await, 2);
    world.purge(id).await;
    let fetched = world.store.broker.resource_fetch(declared.resource).await.expect("a fetch");
    let successor = fetched.expect("the resource lives").attempt;
    assert_eq!(successor.attempt(), 2);
    assert_eq!(world.lines(declared.resource).await, 1);
    world.drive(successor.id(), Phase::Enrolling).await;
}

/// The record outlives what it purged, for as long as the audit is kept.
async fn records_of_deletions_that_ended_are_pruned(world: &World) {
    let (project, _) = world.forgetful().await;
    let (_, id) = world.gone_in(&project).await;
    world.purge(id).await;
    let (_, kept) = world.gone_in(&project).await;
    world.store.deletion.deletion_prune(HOUR, 500).await.expect("an answer");
    assert_eq!(world.deletion(id).await.state, DeletionState::Purged, "it is young");
    while world.store.deletion.deletion_prune(Duration::ZERO, 500).await.expect("it") > 0 {}
    assert!(world.store.deletion.deletion_fetch(id).await.expect("a fetch").is_none());
    assert_eq!(world.deletion(kept).await.state, DeletionState::Done, "it has not ended");
}

pub(super) async fn races(world: &Arc<World>) {
    purge_with_restore(world).await;
    purge_with_purge(world).await;
}

/// It comes back whole, or it is purged.
async fn purge_with_restore(world: &Arc<World>) {
    let (project, _) = world.forgetful().await;
    let (declared, id) = world.gone_in(&project).await;
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (purged, restored) =
        at_once(async move { a.begin_purge(id, Trigger::Retention).await }, async move {
            let mut restore = |snapshot: &DeletionSnapshot| {
                let deletion = &snapshot.deletion;
                if !deletion.state.may_become(DeletionState::Restored) {
                    return Ok(Commit::default());
                }
                let after = Deletion { state: DeletionState::Restored, ..deletion.clone() };
                Ok(Commit {
                    writes: vec![
                        Write::Deletion(DeletionWrite::DeletionUpdate(after)),
                        Write::Deletion(DeletionWrite::Unmark(id, SubjectKind::Resource)),
                    ],
                    ..Commit::default()
                })
            };
            b.store.deletion.deletion_decide(id, &mut restore).await
        })
        .await;
    purged.expect("it begins, or there is nothing to begin");
    restored.expect("it is restored, or comes too late");
    match world.deletion(id).await.state {
        DeletionState::Restored => {
            let step = world.store.deletion.purge_batch(id, 50).await.expect("an answer");
            assert_eq!(step.removed, 0, "what came back is not purged");
            assert_eq!(world.lines(declared.resource).await, 1);
        }
        state => {
            assert_eq!(state, DeletionState::Purging);
            world.remove_all(id, 50).await;
            assert_eq!(world.lines(declared.resource).await, 0);
        }
    }
}

/// Two loops at once do no harm.
async fn purge_with_purge(world: &Arc<World>) {
    let (project, _) = world.forgetful().await;
    let (declared, id) = world.gone_in(&project).await;
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let work = |world: Arc<World>| async move {
        let begun = world.begin_purge(id, Trigger::Retention).await;
        world.remove_all(id, 1).await;
        begun
    };
    let (first, second) = at_once(work(a), work(b)).await;
    for begun in [first, second] {
        if let Err(error) = begun {
            assert_eq!(refused::<()>(Err(error)), ErrorKind::RevisionStale);
        }
    }
    assert_eq!(world.deletion(id).await.state, DeletionState::Purged);
    assert_eq!(world.lines(declared.resource).await, 0);
}
