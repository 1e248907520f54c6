//! Changes of what is declared: in place, by another attempt, and in races.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use slipway_core::broker::redeclare::{Corrections, RedeclareSnapshot};
use slipway_core::broker::update::{self, Changes};
use slipway_core::broker::{event, replace};
use slipway_core::deletion::door::{Defaults, Doored};
use slipway_core::deletion::record::DeletionState;
use slipway_core::ids::ResourceId;
use slipway_core::precondition::Expected;
use slipway_core::subject::Subject;
use slipway_core::{ErrorKind, Phase};

use super::races::at_once;
use super::world::{World, operator, refused};
use crate::access::port::{AuditFilter, AuditOrder};
use crate::broker::port::{AttemptFilter, RedeclareKey, Redeclared};
use crate::ports::store::{Error, Page};

/// `version`, and parameters.
fn corrections(asked: Value) -> Corrections {
    let mut parameters: BTreeMap<String, Value> = serde_json::from_value(asked).expect("an object");
    let version = parameters.remove("version");
    Corrections { version: version.and_then(|v| v.as_str().map(str::to_owned)), parameters }
}

impl World {
    async fn update(&self, resource: ResourceId, asked: Value) -> Result<(), Error> {
        self.update_if(resource, asked, Expected::Any).await
    }

    async fn update_if(
        &self,
        resource: ResourceId,
        asked: Value,
        expected: Expected,
    ) -> Result<(), Error> {
        let Corrections { version, parameters } = corrections(asked);
        let key = RedeclareKey { resource, version: version.clone(), of: Redeclared::InUse };
        let changes = Changes { version, parameters, labels: None };
        let mut rule = |snapshot: &RedeclareSnapshot| {
            Ok(update::update(snapshot, &changes, expected, &operator())?.commit)
        };
        self.store.broker.decide_redeclaration(&key, &mut rule).await
    }

    async fn replace(&self, resource: ResourceId, asked: Value) -> Result<(), Error> {
        let corrections = corrections(asked);
        let version = corrections.version.clone();
        let key = RedeclareKey { resource, version, of: Redeclared::InUse };
        let ask = self.ask();
        let mut rule = |snapshot: &Doored<RedeclareSnapshot>| {
            Ok(replace::request(snapshot, &corrections, &ask, &operator())?.commit)
        };
        let input = ask.input(Defaults::default());
        self.store.broker.decide_replacement(&key, input, &mut rule).await
    }
}

pub(super) async fn conformance(world: &World) {
    Box::pin(an_update_is_stored_whole_and_once(world)).await;
    no_tick_that_read_the_older_declaration_writes(world).await;
    a_replacement_follows_in_the_same_slot(world).await;
}

async fn an_update_is_stored_whole_and_once(world: &World) {
    let (declared, _) = world.ready().await;
    let events = world.relay_all(0).await.last().map_or(0, |event| event.position);
    let before = world.snapshot(declared.attempt).await;
    assert_eq!(before.update_pending_since(), None);

    world.update(declared.resource, json!({ "size": 4 })).await.expect("an update");
    let after = world.snapshot(declared.attempt).await;
    assert_eq!(after.attempt.parameter_values().as_map()["size"], 4);
    assert_eq!(after.attempt.phase(), Phase::Ready);
    assert_eq!(after.attempt.revision(), before.attempt.revision().next());
    assert_eq!(after.resource.revision, before.resource.revision.next());
    assert!(after.update_pending_since().is_some());
    assert!(after.due_at.is_some_and(|due| due <= after.now), "the loop is woken");

    // Neither the same once more nor what is refused writes anything.
    let stale = Expected::Exactly(before.resource.revision);
    world.update(declared.resource, json!({ "size": 4 })).await.expect("no difference");
    for (asked, expected, kind) in [
        (json!({ "size": "four" }), Expected::Any, ErrorKind::ParameterValuesInvalid),
        (json!({ "version": "v9" }), Expected::Any, ErrorKind::BlueprintNotFound),
        (json!({ "zone": 2, "size": 5 }), Expected::Any, ErrorKind::ParameterImmutable),
        (json!({ "size": 5 }), stale, ErrorKind::RevisionStale),
    ] {
        let refusal = world.update_if(declared.resource, asked.clone(), expected).await;
        assert_eq!(refused(refusal), kind, "{asked}");
    }
    let same = world.snapshot(declared.attempt).await;
    assert_eq!(
        (same.attempt.revision(), same.resource.revision),
        (after.attempt.revision(), after.resource.revision)
    );

    let said = world.relay_all(events).await;
    let said: Vec<_> =
        said.iter().filter(|event| event.aggregate_id == declared.attempt.as_uuid()).collect();
    let [said] = said[..] else { panic!("one event: {said:?}") };
    assert_eq!(said.event_type, event::UPDATED.as_str());
    assert_eq!(said.changed, ["parameters.size"]);
    let filter = AuditFilter {
        subject: Some(declared.resource.as_uuid()),
        verb: Some("resource.update".to_owned()),
        ..AuditFilter::default()
    };
    let page = Page { after: None, limit: 10 };
    let listed = world.store.access.audit_list(&filter, AuditOrder::OldestFirst, page).await;
    let entries = listed.expect("a list").items;
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!(entries[0].details["changed"], json!({ "parameters": ["size"] }));

    world.delete(declared.resource).await.expect("a deletion");
    let late = world.update(declared.resource, json!({ "size": 6 })).await;
    assert_eq!(refused(late), ErrorKind::Leaving);
}

/// Its record would say that the substrate is as declared.
async fn no_tick_that_read_the_older_declaration_writes(world: &World) {
    let declared = world.enrolling().await;
    let token = world.token(declared.attempt).await;
    world.enrol(token, world.public_key()).await.expect("an enrolment");
    let claimed = world.claim_now(declared.attempt).await;
    let record = world.record_of(claimed).await;
    world.update(declared.resource, json!({ "size": 4 })).await.expect("an update");
    let written = world.store.broker.attempt_record(&[record]).await.expect("an answer");
    assert!(written.is_empty(), "without a lock");
    let pending = world.snapshot(declared.attempt).await;
    assert!(pending.update_pending_since().is_some());
    assert_eq!(pending.attempt.phase(), Phase::Enrolling);
    world.tick(claimed).await.expect("a tick of what is declared now");
    let applied = world.snapshot(declared.attempt).await;
    assert_eq!((applied.update_pending_since(), applied.attempt.phase()), (None, Phase::Ready));
}

async fn a_replacement_follows_in_the_same_slot(world: &World) {
    let held = world.declare(&world.handle()).await.expect("a declaration");
    world.protect(Subject::from(held.resource)).await.expect("a protection");
    let refusal = world.replace(held.resource, json!({ "zone": 2 })).await;
    assert_eq!(refused(refusal), ErrorKind::Protected);
    let (declared, node) = world.ready().await;
    world.replace(declared.resource, json!({ "zone": 2 })).await.expect("a replacement");
    let again = world.replace(declared.resource, json!({ "zone": 3 })).await;
    assert_eq!(refused(again), ErrorKind::Leaving);
    let claimed = world.claim_now(declared.attempt).await;
    world.tick(claimed).await.expect("the tick that asks for the drain");
    let asked = world.snapshot(declared.attempt).await.node.and_then(|node| node.drain);
    world.acknowledge(node, asked.expect("a drain").id).await.expect("it drained");
    world.drive(declared.attempt, Phase::Deleted).await;

    let of = AttemptFilter { resource: Some(declared.resource), ..AttemptFilter::default() };
    let lines = world.store.broker.attempt_lines(of, 10).await.expect("lines");
    let [second, first] = &lines[..] else { panic!("two attempts: {lines:?}") };
    assert_eq!((second.number, &second.parameters["zone"]), (2, &json!(2)));
    assert_eq!((&second.parameters["size"], first.parameters.get("zone")), (&json!(3), None));
    let slot = world.snapshot(second.id).await.resource;
    assert_eq!((slot.id, slot.deletion_id, slot.deleted_at), (declared.resource, None, None));
}

pub(super) async fn races(world: &Arc<World>) {
    update_with_update(world).await;
    update_with_delete(world).await;
    update_with_tick(world).await;
    replace_with_replace(world).await;
    replace_with_delete(world).await;
}

async fn size(world: &World, declared: super::world::Declared) -> Value {
    world.snapshot(declared.attempt).await.attempt.parameter_values().as_map()["size"].clone()
}

/// Of two that read the same, one is stale; without a condition both happen, in some order.
async fn update_with_update(world: &Arc<World>) {
    let (declared, _) = world.ready().await;
    for conditional in [true, false] {
        let revision = world.snapshot(declared.attempt).await.resource.revision;
        let expected = if conditional { Expected::Exactly(revision) } else { Expected::Any };
        let update = |size: i64| {
            let world = Arc::clone(world);
            let size = size + i64::from(conditional) * 10;
            async move { world.update_if(declared.resource, json!({ "size": size }), expected).await }
        };
        let (one, other) = at_once(update(1), update(2)).await;
        let after = world.snapshot(declared.attempt).await.resource.revision;
        if conditional {
            let lost = [one, other].into_iter().filter_map(Result::err).collect::<Vec<_>>();
            let [lost] = <[_; 1]>::try_from(lost).expect("one of them wins");
            assert_eq!(refused::<()>(Err(lost)), ErrorKind::RevisionStale);
            assert_eq!(after, revision.next());
        } else {
            one.expect("an update");
            other.expect("an update");
            assert_eq!(after, revision.next().next());
        }
        let size = size(world, declared).await.as_i64().expect("a number");
        assert!([1, 2].contains(&(size % 10)), "{size}");
    }
}

/// It is changed and then goes, or goes unchanged.
async fn update_with_delete(world: &Arc<World>) {
    let (declared, _) = world.ready().await;
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (updated, deleted) = at_once(
        async move { a.update(declared.resource, json!({ "size": 4 })).await },
        async move { b.delete(declared.resource).await },
    )
    .await;
    deleted.expect("a deletion");
    let expected = match updated {
        Ok(()) => 4,
        error => {
            assert_eq!(refused(error), ErrorKind::Leaving);
            3
        }
    };
    assert_eq!(size(world, declared).await, expected);
    let phase = world.snapshot(declared.attempt).await.attempt.phase();
    assert_eq!(phase, Phase::Deregistering);
}

/// Whatever a tick writes beside an update, another tick applies the update.
async fn update_with_tick(world: &Arc<World>) {
    let (declared, _) = world.ready().await;
    let claimed = world.claim_now(declared.attempt).await;
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (updated, ticked) = at_once(
        async move { a.update(declared.resource, json!({ "size": 4 })).await },
        async move { b.tick(claimed).await },
    )
    .await;
    updated.expect("an update");
    if ticked.is_err() {
        assert_eq!(refused(ticked), ErrorKind::RevisionStale);
    }
    assert_eq!(size(world, declared).await, 4);
    let snapshot = world.snapshot(declared.attempt).await;
    if snapshot.update_pending_since().is_some() {
        let claimed = world.claim(declared.attempt).await.expect("it is due");
        world.tick(claimed).await.expect("a tick");
    }
    let snapshot = world.snapshot(declared.attempt).await;
    assert_eq!(snapshot.update_pending_since(), None);
}

async fn replace_with_replace(world: &Arc<World>) {
    let (declared, _) = world.ready().await;
    let replace = |zone: i64| {
        let world = Arc::clone(world);
        async move { world.replace(declared.resource, json!({ "zone": zone })).await }
    };
    let (one, other) = at_once(replace(1), replace(2)).await;
    let lost = [one, other].into_iter().filter_map(Result::err).collect::<Vec<_>>();
    let [lost] = <[_; 1]>::try_from(lost).expect("one of them wins");
    assert_eq!(refused::<()>(Err(lost)), ErrorKind::Leaving);
}

/// A deletion takes a replacement over; what is being deleted is not replaced.
async fn replace_with_delete(world: &Arc<World>) {
    let (declared, _) = world.ready().await;
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (replaced, deleted) = at_once(
        async move { a.replace(declared.resource, json!({ "zone": 2 })).await },
        async move { b.delete(declared.resource).await },
    )
    .await;
    let deletion = deleted.expect("a deletion");
    if replaced.is_err() {
        assert_eq!(refused(replaced), ErrorKind::Leaving);
    }
    let snapshot = world.snapshot(declared.attempt).await;
    assert_eq!(snapshot.resource.deletion_id, Some(deletion));
    let record = world.deletion(deletion).await;
    assert_eq!(
        (record.target, record.state),
        (declared.resource.into(), DeletionState::Running),
        "the slot goes"
    );
}
