//! Failures that stay on record, and retries that correct a declaration.

use serde_json::json;
use slipway_core::broker::event;
use slipway_core::{ErrorKind, Phase};

use crate::access::port::{AuditFilter, AuditOrder};
use crate::broker::port::AttemptFilter;
use crate::ports::store::Page;
use crate::testing::world::{World, refused};

/// The reason, what was observed and the history of a failed attempt stay when another
/// follows it, which has the corrected values; events say of which resource they are.
pub(super) async fn a_failure_stays_on_record_and_a_retry_corrects_it(world: &World) {
    let before = world.relay_all(0).await.last().map_or(0, |event| event.position);
    let declared = world.enrolling().await;
    let handle = world.snapshot(declared.attempt).await.resource.handle.to_string();
    assert_eq!(
        refused(world.correct(declared.resource, json!({ "size": 4 })).await),
        ErrorKind::NothingToRetry
    );
    world.fail(declared.attempt, "size 3 is sold out").await;

    for (corrections, kind) in [
        (json!({ "size": "four" }), ErrorKind::ParameterValuesInvalid),
        (json!({ "colour": 1 }), ErrorKind::ParameterValuesInvalid),
        (json!({ "version": "v9" }), ErrorKind::BlueprintNotFound),
    ] {
        let outcome = world.correct(declared.resource, corrections.clone()).await;
        assert_eq!(refused(outcome), kind, "{corrections}");
        let attempt = world.snapshot(declared.attempt).await.attempt;
        assert_eq!((attempt.phase(), attempt.correction()), (Phase::Failed, None), "{corrections}");
    }
    world.correct(declared.resource, json!({ "size": 4 })).await.expect("a retry");
    let leaving = world.snapshot(declared.attempt).await.attempt;
    let next = leaving.correction().expect("what the next one is made of");
    assert_eq!(next.parameter_values.as_map()["size"], 4);
    world.drive(declared.attempt, Phase::Deleted).await;

    let of = AttemptFilter { resource: Some(declared.resource), ..AttemptFilter::default() };
    let lines = world.store.broker.attempt_lines(of, 10).await.expect("lines");
    let [second, first] = &lines[..] else { panic!("two attempts: {lines:?}") };
    assert_eq!((second.number, second.failure.as_ref()), (2, None));
    assert_eq!((&second.parameters["size"], &first.parameters["size"]), (&json!(4), &json!(3)));
    assert_eq!(first.blueprint_version, "v1");
    let failure = first.failure.as_ref().expect("it is on record");
    assert_eq!(failure.reason, "size 3 is sold out");
    assert_eq!(failure.observed["evidence"]["conditions"][0]["type"], "ProvisioningFailed");
    assert!(failure.at >= first.created_at && failure.at <= first.now);
    let older = AttemptFilter { before: Some(2), ..of };
    let older = world.store.broker.attempt_lines(older, 10).await.expect("lines");
    assert_eq!(older.iter().map(|line| line.number).collect::<Vec<_>>(), [1]);
    let history = world.history(declared.attempt).await;
    assert!(history.iter().any(|line| line.to == "Failed"), "{history:?}");

    let audited = async |subject| {
        let filter = AuditFilter { subject: Some(subject), ..AuditFilter::default() };
        let page = Page { after: None, limit: 100 };
        let listed = world.store.access.audit_list(&filter, AuditOrder::OldestFirst, page).await;
        listed.expect("a list").items
    };
    let entries = audited(declared.attempt.as_uuid()).await;
    let entry = entries.iter().find(|line| line.details["to"] == "Failed").expect("an entry");
    assert_eq!(entry.reason.as_deref(), Some("size 3 is sold out"));
    let entries = audited(declared.resource.as_uuid()).await;
    let entry = entries.iter().find(|line| line.verb == "resource.retry").expect("an entry");
    assert_eq!(entry.details["changed"], json!({ "parameters": ["size"] }));

    let events = world.relay_all(before).await;
    let requested = events.iter().find(|event| event.aggregate_id == second.id.as_uuid());
    let requested = requested.expect("the second attempt is announced");
    assert_eq!(requested.event_type, event::REQUESTED.as_str());
    assert_eq!(requested.changed, ["parameters.size"]);
    let attempts = [first.id.as_uuid(), second.id.as_uuid()];
    let own = events.iter().filter(|event| attempts.contains(&event.aggregate_id));
    for event in own {
        assert_eq!(event.resource, Some((declared.resource, handle.clone())), "{event:?}");
        assert!(event.payload.get("Handle").is_none() && event.payload.get("handle").is_none());
        let says = !event.changed.is_empty();
        assert_eq!(says, event.position == requested.position, "{event:?}");
    }
}
