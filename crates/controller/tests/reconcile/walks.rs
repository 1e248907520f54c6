//! The ways through the phases.

use slipway_app::nodes::node;
use slipway_core::ErrorKind;
use slipway_core::blocker::BlockerCode;
use slipway_core::broker::phase::Phase;
use slipway_core::nodes::node::DeregisteredHow;
use slipway_render::composite::injected;

use crate::simulated::Behaviour;
use crate::world::World;

const CALM: Behaviour = Behaviour {
    unreadable: false,
    apply_fails: false,
    delete_fails: false,
    twice: false,
    comes_up: true,
};

#[tokio::test(flavor = "multi_thread")]
async fn declared_ready_drained_deleted_each_event_once() {
    for world in World::each("declared_ready_drained_deleted_each_event_once").await {
        let id = world.ready("web").await;
        let name = world.name(id).await;
        world.delete(id).await;
        world.delete(id).await;
        world.acknowledge(id).await;
        let gone = world.run_until_phase(id, Phase::Deleted).await;
        assert!(gone.resource.deleted_at.is_some());
        assert_eq!(gone.deletion.unwrap().state.as_str(), "done");
        assert_eq!(world.events(id).await, ["Requested", "Ready", "Deleting", "Deleted"]);
        assert_eq!(
            world.walk(id).await,
            [
                "Pending",
                "Provisioning",
                "Enrolling",
                "Ready",
                "Deregistering",
                "Deprovisioning",
                "Deleted"
            ]
            .into_iter()
            .filter(|phase| *phase != "Provisioning")
            .collect::<Vec<_>>(),
            "an instant substrate is never seen unready"
        );
        assert_eq!(world.substrate.journal(), [format!("apply {name}"), format!("delete {name}")]);
        // The handle is free again.
        world.ready("web").await;
    }
}

/// Every outside action twice: the same end, the same events.
#[tokio::test(flavor = "multi_thread")]
async fn every_action_may_be_done_twice() {
    for world in World::each("every_action_may_be_done_twice").await {
        world.substrate.behave(Behaviour { twice: true, ..CALM });
        let id = world.ready("web").await;
        world.delete(id).await;
        world.acknowledge(id).await;
        world.run_until_phase(id, Phase::Deleted).await;
        assert_eq!(world.events(id).await, ["Requested", "Ready", "Deleting", "Deleted"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_composite_deleted_by_hand_is_made_anew_and_its_node_replaced() {
    for world in World::each("a_composite_deleted_by_hand").await {
        let id = world.ready("web").await;
        let name = world.name(id).await;
        let old_token = world.token(&name);
        let old_node = world.get(id).await.node.unwrap().id;
        world.substrate.remove(&name);
        let seen = world.run_until_phase(id, Phase::Enrolling).await;
        let old = world.context.stores.nodes.node_fetch(old_node).await.unwrap().unwrap();
        assert_eq!(old.deregistration.unwrap().how, DeregisteredHow::SubstrateAbsent);
        assert!(seen.token.unwrap().consumed.is_none(), "a new token was minted");
        // Neither the old token nor the old key is accepted.
        assert!(world.enrol(&old_token, 1).await.is_err());
        world.enrol(&world.token(&name), 2).await.unwrap();
        let back = world.run_until_phase(id, Phase::Ready).await;
        assert_ne!(back.node.unwrap().id, old_node);
        assert_eq!(world.events(id).await, ["Requested", "Ready", "Ready"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deliberate_failure_is_final_until_deleted() {
    for world in World::each("a_deliberate_failure_is_final").await {
        let id = world.declare("web").await;
        world.run_until_phase(id, Phase::Enrolling).await;
        let name = world.name(id).await;
        world.substrate.change(&name, |object| object.failure = Some("quota".to_owned()));
        let failed = world.run_until_phase(id, Phase::Failed).await;
        assert_eq!(failed.attempt.failure_reason(), Some("quota"));
        // Recovery does not bring it back.
        world.substrate.change(&name, |object| object.failure = None);
        world.context.stores.broker.attempt_wake_all(world.partition).await.unwrap();
        world.round().await;
        assert_eq!(world.get(id).await.attempt.phase(), Phase::Failed);
        assert_eq!(
            world.enrol(&world.token(&name), 1).await.unwrap_err().kind(),
            ErrorKind::NotEnrolling
        );
        world.delete(id).await;
        world.run_until_phase(id, Phase::Deleted).await;
        assert_eq!(world.events(id).await, ["Requested", "Failed", "Deleting", "Deleted"]);
        assert!(world.substrate.object(&name).is_none());
    }
}

/// Invariant 3, over the whole path.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_not_gone() {
    for world in World::each("what_cannot_be_read_is_not_gone").await {
        let id = world.ready("web").await;
        let name = world.name(id).await;
        world.substrate.behave(Behaviour { unreadable: true, ..CALM });
        world.context.stores.broker.attempt_wake_all(world.partition).await.unwrap();
        let held = world.run_until_blocked(id, BlockerCode::SubstrateUnknown).await;
        assert_eq!(held.attempt.phase(), Phase::Ready);
        // A drain continues all the same; the substrate does not count as absent.
        world.delete(id).await;
        world.acknowledge(id).await;
        let drained = |seen: &slipway_core::broker::snapshot::ResourceSnapshot| {
            seen.node.as_ref().is_some_and(|node| !node.is_registered())
                && seen.blockers.iter().any(|b| b.code == BlockerCode::SubstrateUnknown)
        };
        let seen = world.run_until(id, "drained and held", drained).await;
        assert_eq!(seen.attempt.phase(), Phase::Deregistering);
        assert!(world.substrate.object(&name).is_some());
        world.substrate.behave(CALM);
        world.run_until_phase(id, Phase::Deleted).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_that_fails_is_shown_and_tried_again() {
    for world in World::each("an_action_that_fails_is_shown").await {
        world.substrate.behave(Behaviour { apply_fails: true, ..CALM });
        let id = world.declare("web").await;
        let held = world.run_until_blocked(id, BlockerCode::ApplyFailed).await;
        assert_eq!(held.attempt.phase(), Phase::Pending);
        assert!(held.blockers[0].message.contains("no room"));
        let first = held.token.unwrap().id;
        // Minted, never applied: the next attempt revokes it and mints another.
        world.substrate.behave(CALM);
        let seen = world.run_until_phase(id, Phase::Enrolling).await;
        assert_ne!(seen.token.unwrap().id, first);
        assert!(seen.blockers.is_empty());
        world.enrol(&world.token(&world.name(id).await), 1).await.unwrap();
        world.run_until_phase(id, Phase::Ready).await;

        world.delete(id).await;
        world.substrate.behave(Behaviour { delete_fails: true, ..CALM });
        world.acknowledge(id).await;
        let held = world.run_until_blocked(id, BlockerCode::DeleteFailed).await;
        assert_eq!(held.attempt.phase(), Phase::Deprovisioning);
        world.substrate.behave(CALM);
        world.run_until_phase(id, Phase::Deleted).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_leaves_by_itself_waits_for_a_person() {
    for world in World::each("a_node_that_leaves_by_itself").await {
        let id = world.ready("web").await;
        let left = world.get(id).await.node.unwrap().id;
        node::leave(&world.context, left).await.unwrap();
        let seen = world.run_until_blocked(id, BlockerCode::NodeLeft).await;
        assert_eq!(seen.attempt.phase(), Phase::Enrolling);
        assert_eq!(world.events(id).await, ["Requested", "Ready"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_repaired_and_the_injected_document_kept() {
    for world in World::each("drift_is_repaired").await {
        let id = world.ready("web").await;
        let name = world.name(id).await;
        let before = world.substrate.object(&name).unwrap();
        world.substrate.change(&name, |object| {
            object.object["spec"]["parameters"]["busy_seconds"] = serde_json::json!(99);
        });
        world.context.stores.broker.attempt_wake_all(world.partition).await.unwrap();
        let repaired = || {
            let object = world.substrate.object(&name).unwrap().object;
            object["spec"]["parameters"] == before.object["spec"]["parameters"]
        };
        let seen = world.run_until(id, "the drift to be repaired", |_| repaired()).await;
        assert_eq!(seen.attempt.phase(), Phase::Ready);
        let after = world.substrate.object(&name).unwrap();
        assert_eq!(after.uid, before.uid, "repaired in place");
        assert_eq!(
            injected(&after.object).unwrap().expose(),
            injected(&before.object).unwrap().expose()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_what_has_not_begun_needs_no_substrate() {
    for world in World::each("deleting_what_has_not_begun").await {
        let id = world.declare("web").await;
        world.delete(id).await;
        world.run_until_phase(id, Phase::Deleted).await;
        assert_eq!(world.substrate.journal(), Vec::<String>::new());
        assert_eq!(world.events(id).await, ["Requested", "Deleting", "Deleted"]);
    }
}

/// Invariants 4 and 16: the request revokes the token, a silent node blocks the
/// drain with a blocker, and only force gets past it.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_node_holds_the_drain_until_it_is_forced() {
    for world in World::each("a_silent_node_holds_the_drain").await {
        let id = world.ready("web").await;
        let name = world.name(id).await;
        world.delete(id).await;
        let held = world.run_until_blocked(id, BlockerCode::NodeNotDraining).await;
        assert_eq!(held.attempt.phase(), Phase::Deregistering);
        assert!(held.blockers[0].message.contains(&held.node.unwrap().id.to_string()));
        assert!(world.substrate.object(&name).is_some(), "never the substrate before the node");
        world.force(id, "it is frozen").await;
        let gone = world.run_until_phase(id, Phase::Deleted).await;
        let how = gone.node.unwrap().deregistration.unwrap();
        assert_eq!(
            (how.how, how.reason.as_deref()),
            (DeregisteredHow::Forced, Some("it is frozen"))
        );
        assert!(gone.blockers.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminating_composite_is_waited_for_and_made_anew() {
    for world in World::each("a_terminating_composite").await {
        let id = world.ready("web").await;
        let name = world.name(id).await;
        world.substrate.change(&name, |object| object.terminating = true);
        world.context.stores.broker.attempt_wake_all(world.partition).await.unwrap();
        let held = world.run_until_blocked(id, BlockerCode::SubstrateTerminating).await;
        assert_eq!(held.attempt.phase(), Phase::Ready);
        assert!(held.node.unwrap().drain.is_some(), "its node is asked to drain first");
        world.substrate.remove(&name);
        let seen = world.run_until_phase(id, Phase::Enrolling).await;
        assert!(seen.blockers.is_empty());
    }
}

/// Failed is final, but the object has our finalizer: a deletion by hand must
/// not hang on it, even if the object could not be read at first.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_one_that_is_deleted_by_hand_is_let_go_after_its_node() {
    for world in World::each("a_failed_one_that_is_deleted").await {
        let id = world.ready("web").await;
        let name = world.name(id).await;
        world.substrate.change(&name, |object| object.failure = Some("quota".to_owned()));
        world.context.stores.broker.attempt_wake_all(world.partition).await.unwrap();
        let failed = world.run_until_phase(id, Phase::Failed).await;
        world.substrate.change(&name, |object| object.terminating = true);
        world.substrate.behave(Behaviour { unreadable: true, ..CALM });
        // As the watch of an engine does, once.
        world.context.stores.broker.attempt_wake(&[failed.attempt.id()]).await.unwrap();
        let unread = |seen: &slipway_core::broker::snapshot::ResourceSnapshot| {
            seen.observed.as_ref().is_some_and(|seen| seen["reason"].is_string())
        };
        world.run_until(id, "unreadable", unread).await;
        world.substrate.behave(CALM);
        let held = world.run_until_blocked(id, BlockerCode::SubstrateTerminating).await;
        assert!(held.node.unwrap().drain.is_some(), "its node is asked to drain first");
        assert!(world.substrate.object(&name).is_some());
        world.acknowledge(id).await;
        let gone = |_: &_| world.substrate.object(&name).is_none();
        world.run_until(id, "let go", gone).await;
        world.context.stores.broker.attempt_wake(&[failed.attempt.id()]).await.unwrap();
        let well =
            |seen: &slipway_core::broker::snapshot::ResourceSnapshot| seen.blockers.is_empty();
        let seen = world.run_until(id, "without a blocker", well).await;
        assert_eq!(seen.attempt.phase(), Phase::Failed);
        assert_eq!(world.events(id).await, ["Requested", "Ready", "Failed"]);
        world.delete(id).await;
        world.run_until_phase(id, Phase::Deleted).await;
    }
}
