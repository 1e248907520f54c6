//! Whole lives, from declaration to deletion.

use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::commit::{Commit, Write};
use slipway_core::deletion::record::DeletionState;
use slipway_core::ids::{ClaimToken, Partition, ProvisionedResourceId};
use slipway_core::nodes::NodesWrite;
use slipway_core::nodes::machine::Machine;
use slipway_core::nodes::node::{DeregisteredHow, Reported};
use slipway_core::{ErrorKind, Phase};

use crate::broker::port::ResourceKey;
use crate::ports::store::Page;
use crate::testing::world::{World, refused};

pub(super) async fn a_resource_walks_to_ready_and_out_again(world: &World) {
    let mark = world.mark().await;
    let handle = world.handle();
    let declared = world.declare(&handle).await.expect("a declaration");
    world.drive(declared.attempt, Phase::Enrolling).await;

    let token = world.token(declared.attempt).await;
    let key = world.public_key();
    let node_id = world.enrol(token, key).await.expect("an enrolment");
    let snapshot = world.snapshot(declared.attempt).await;
    let consumed = snapshot.token.and_then(|token| token.consumed).expect("it is consumed");
    assert_eq!((consumed.node_id, consumed.public_key), (node_id, key));
    assert!(consumed.nonce.is_some_and(|nonce| nonce.starts_with("nonce-")));
    let node = snapshot.node.expect("the node is registered");
    assert_eq!((node.id, node.public_key, node.hostname.as_str()), (node_id, key, "node.example"));
    assert!(node.is_registered() && node.can_drain() && node.key_hash.is_some());
    assert_eq!(node.last_heartbeat_at, None);
    assert_eq!(world.store.nodes.node_fetch(node_id).await.expect("a fetch"), Some(node));

    world.drive(declared.attempt, Phase::Ready).await;
    let heartbeat =
        world.store.nodes.node_heartbeat(node_id, &Reported::default()).await.expect("a heartbeat");
    assert!(heartbeat.expect("it is registered").drain.is_none());
    let counted = world.store.nodes.node_fetch(node_id).await.expect("a fetch").expect("the node");
    assert!(counted.last_heartbeat_at.is_some());

    let deletion_id = world.delete(declared.resource).await.expect("a deletion");
    let claimed = world.claim_now(declared.attempt).await;
    world.tick(claimed).await.expect("a tick");
    let deletion = world.store.deletion.deletion_fetch(deletion_id).await.expect("a fetch");
    assert_eq!(deletion.expect("the deletion").state, DeletionState::Running);
    let heartbeat =
        world.store.nodes.node_heartbeat(node_id, &Reported::default()).await.expect("a heartbeat");
    let drain = heartbeat.and_then(|heartbeat| heartbeat.drain).expect("it is asked to drain");
    let wrong = slipway_core::ids::DrainId::new(world.uuid());
    assert_eq!(refused(world.acknowledge(node_id, wrong).await), ErrorKind::DrainNotRequested);
    world.acknowledge(node_id, drain.id).await.expect("an acknowledgement");
    assert!(
        world
            .store
            .nodes
            .node_heartbeat(node_id, &Reported::default())
            .await
            .expect("an answer")
            .is_none()
    );

    world.drive(declared.attempt, Phase::Deleted).await;
    let gone = world.snapshot(declared.attempt).await;
    assert!(gone.resource.deleted_at.is_some());
    let deletion = gone.deletion.expect("the deletion stays");
    assert_eq!((deletion.id, deletion.state), (deletion_id, DeletionState::Done));
    assert!(deletion.done_at.is_some());
    let members = world.store.deletion.deletion_members(deletion_id, 10).await.expect("members");
    assert_eq!(members.shown[0].subject, declared.resource.into());
    assert_eq!(members.count, 1);
    assert_eq!(world.delete(declared.resource).await.expect("again"), deletion_id);

    let events = world.relay_all(0).await;
    let own: Vec<_> = events
        .iter()
        .filter(|event| event.aggregate_id == declared.attempt.as_uuid())
        .map(|event| event.event_type.trim_start_matches("broker.ProvisionedResource"))
        .collect();
    assert_eq!(own, ["Requested", "Ready", "Deleting", "Deleted"]);
    world.check(mark, declared, "a whole life").await;

    let successor = world.declare(&handle).await.expect("the handle is free again");
    world.check(mark, successor, "the next life").await;
}

pub(super) async fn a_lost_answer_to_register_is_given_again(world: &World) {
    let declared = world.enrolling().await;
    let token = world.token(declared.attempt).await;
    let key = world.public_key();
    let node = world.enrol(token, key).await.expect("an enrolment");
    let first_key = world.snapshot(declared.attempt).await.node.and_then(|node| node.key_hash);
    assert_eq!(world.enrol(token, key).await.expect("the same answer"), node);
    let second_key = world.snapshot(declared.attempt).await.node.and_then(|node| node.key_hash);
    assert_ne!(first_key, second_key, "with a fresh key");
    assert_eq!(refused(world.enrol(token, world.public_key()).await), ErrorKind::TokenConsumed);

    world
        .store
        .nodes
        .node_heartbeat(node, &Reported::default())
        .await
        .expect("a heartbeat")
        .expect("it is registered");
    assert_eq!(refused(world.enrol(token, key).await), ErrorKind::TokenConsumed);
}

pub(super) async fn a_lost_substrate_gets_a_new_token_and_a_new_node(world: &World) {
    let mark = world.mark().await;
    let (declared, old_node) = world.ready().await;
    let old_token = world.token(declared.attempt).await;
    world.substrate.remove(declared.attempt);
    let claimed = world.claim_now(declared.attempt).await;
    world.tick(claimed).await.expect("a tick");
    let old = world.store.nodes.node_fetch(old_node).await.expect("a fetch").expect("the old node");
    let how = old.deregistration.map(|deregistration| deregistration.how);
    assert_eq!(how, Some(DeregisteredHow::SubstrateAbsent));

    world.drive(declared.attempt, Phase::Enrolling).await;
    assert_eq!(refused(world.enrol(old_token, old.public_key).await), ErrorKind::TokenConsumed);
    let token = world.token(declared.attempt).await;
    let node = world.enrol(token, world.public_key()).await.expect("an enrolment");
    world.drive(declared.attempt, Phase::Ready).await;
    let last = world.snapshot(declared.attempt).await.node.map(|node| node.id);
    assert_eq!(last, Some(node), "the snapshot shows the node that enrolled last");
    world.check(mark, declared, "a lost substrate").await;
}

pub(super) async fn force_revokes_the_key(world: &World) {
    let (ready, _) = world.ready().await;
    assert_eq!(refused(world.force(ready.resource).await), ErrorKind::NothingToForce);

    let (declared, node, _) = world.draining().await;
    world.force(declared.resource).await.expect("a force");
    let forced = world.store.nodes.node_fetch(node).await.expect("a fetch").expect("the node");
    assert_eq!(forced.key_hash, None);
    let deregistration = forced.deregistration.expect("it is deregistered");
    assert_eq!(deregistration.how, DeregisteredHow::Forced);
    assert_eq!(deregistration.by, "key:suite");
    assert_eq!(deregistration.reason.as_deref(), Some("the node is lost"));
    world.drive(declared.attempt, Phase::Deleted).await;
}

pub(super) async fn a_machine_enrols_again(world: &World) {
    let mark = world.mark().await;
    let (declared, old) = world.ready().await;
    let old_token = world.token(declared.attempt).await;
    let fetch = async |id| world.store.nodes.node_fetch(id).await.expect("a fetch").expect("it");
    let before = fetch(old).await;
    assert_eq!(before.former_key_hash, None);

    let first = world.reenrol(declared.resource).await.expect("once");
    let second = world.reenrol(declared.resource).await.expect("twice");
    let ended = fetch(old).await;
    assert_eq!((ended.key_hash, ended.former_key_hash), (None, before.key_hash));
    let gone = ended.deregistration.expect("it is deregistered");
    assert_eq!(
        (gone.how, gone.reason.as_deref()),
        (DeregisteredHow::Reenrolled, Some("its disk was full"))
    );
    world.drive(declared.attempt, Phase::Enrolling).await;
    world.leave(old).await.expect("a late deregister changes nothing");

    for (token, key, expected) in [
        (old_token, before.public_key, ErrorKind::TokenConsumed),
        (first, world.public_key(), ErrorKind::TokenRevoked),
    ] {
        assert_eq!(refused(world.enrol(token, key).await), expected);
    }
    let node = world.enrol(second, world.public_key()).await.expect("an enrolment");
    world.drive(declared.attempt, Phase::Ready).await;
    let names = world.store.nodes.node_names(&[old, node]).await.expect("names");
    assert_eq!((names.len(), &names[&old]), (2, &names[&node]));
    let heard = world.store.nodes.node_heartbeat(node, &Reported::default()).await;
    heard.expect("a heartbeat").expect("it is registered");
    assert_eq!(refused(world.reenrol(declared.resource).await), ErrorKind::NothingToReenrol);
    world.delete(declared.resource).await.expect("a deletion");
    assert_eq!(refused(world.reenrol(declared.resource).await), ErrorKind::NotEnrolling);
    world.check(mark, declared, "a machine that enrolled again").await;
}

/// The rows behind engine manual.
pub(super) async fn a_machine_is_there_until_somebody_says_it_is_gone(world: &World) {
    let nodes = &world.store.nodes;
    let partition = Partition::new(world.uuid());
    let mut machines = Vec::new();
    for confirm_gone in [true, false] {
        let declared = world.declare(&world.handle()).await.expect("a declaration");
        let machine = Machine {
            provisioned_resource_id: declared.attempt,
            namespace: "n".to_owned(),
            name: declared.attempt.to_string(),
            owned_hash: "a".to_owned(),
            claim_token: ClaimToken(5),
            confirm_gone,
            terminating_at: None,
        };
        assert_eq!(nodes.machine_put(partition, &machine).await.expect("a put"), machine);
        machines.push(machine);
    }
    let [kept, at_once] = &machines[..] else { panic!("two") };
    let of = |machine: &Machine| [machine.provisioned_resource_id];
    let changed = Machine { owned_hash: "b".to_owned(), ..kept.clone() };
    assert_eq!(nodes.machine_put(partition, &changed).await.expect("a put"), changed);
    let late = Machine { claim_token: ClaimToken(4), ..kept.clone() };
    assert_eq!(nodes.machine_put(partition, &late).await.expect("a put"), changed, "too old");
    let page = |after| Page { after, limit: 1 };
    let first = nodes.machine_list(partition, page(None)).await.expect("a page");
    let cursor = first.next.map(ProvisionedResourceId::new);
    let second = nodes.machine_list(partition, page(cursor)).await.expect("a page");
    assert_eq!([&first.items[..], &second.items[..]].concat(), [changed.clone(), at_once.clone()]);

    for machine in &machines {
        let id = machine.provisioned_resource_id;
        nodes.machine_release(id).await.expect("a release");
        nodes.machine_release(id).await.expect("a second one");
    }
    assert_eq!(nodes.machine_load(&of(at_once)).await.expect("a load"), [], "gone at once");
    let leaving = nodes.machine_load(&of(kept)).await.expect("a load").remove(0);
    assert!(leaving.terminating_at.is_some());
    assert_eq!(nodes.machine_put(partition, &changed).await.expect("a put"), leaving, "it stays");
    for _ in 0..2 {
        let mut rule = |snapshot: &ResourceSnapshot| {
            let writes = vec![Write::Nodes(NodesWrite::MachineRemove(snapshot.attempt.id()))];
            Ok(Commit { writes, ..Commit::default() })
        };
        let key = ResourceKey::Attempt(kept.provisioned_resource_id);
        world.store.broker.decide(key, &mut rule).await.expect("a decision");
    }
    assert_eq!(nodes.machine_load(&of(kept)).await.expect("a load"), []);
}

pub(super) async fn a_revoked_token_enrols_nobody(world: &World) {
    let mark = world.mark().await;
    let declared = world.enrolling().await;
    let token = world.token(declared.attempt).await;
    world.delete(declared.resource).await.expect("a deletion");
    let revoked = world.snapshot(declared.attempt).await.token.expect("the token stays on record");
    assert!(revoked.revoked_at.is_some());
    assert_eq!(refused(world.enrol(token, world.public_key()).await), ErrorKind::NotEnrolling);
    world.drive(declared.attempt, Phase::Deleted).await;
    world.check(mark, declared, "a revoked token").await;
}
