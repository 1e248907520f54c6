//! Mesh addresses: dense, one node each, free again when it leaves; what nodes
//! see of each other; and the races that could assign an address twice.

use std::collections::BTreeSet;
use std::sync::Arc;

use slipway_core::catalog::project::{self, Project, ProjectChange};
use slipway_core::ids::NodeId;
use slipway_core::nodes::mesh::MeshCidr;
use slipway_core::nodes::node::{Node, Reported};
use slipway_core::nodes::token::SecretHash;
use slipway_core::precondition::Expected;
use slipway_core::{ErrorKind, Phase};

use super::races::{at_once, one_winner};
use super::world::{Declared, World, operator, refused};
use crate::ports::store::Error;

impl World {
    /// A new project with this mesh.
    async fn meshed(&self, cidr: &str) -> String {
        let (project, _) = self.furnished().await;
        self.move_mesh(&project, cidr).await.expect("nobody lives there yet");
        project
    }

    async fn move_mesh(&self, project: &str, cidr: &str) -> Result<(), Error> {
        let cidr = MeshCidr::parse("mesh_cidr", cidr).expect("the suite's meshes are valid");
        let change = ProjectChange { labels: None, mesh_cidr: Some(cidr) };
        let mut rule =
            |snapshot: &_| project::update(snapshot, &change, Expected::Any, &operator());
        self.store.kind::<Project>().decide(project, &mut rule).await
    }

    /// A resource of the project in Enrolling, and its token.
    async fn waiting_in(&self, project: &str) -> (Declared, SecretHash) {
        let declared = self.declare_in(project).await.expect("a declaration");
        self.drive(declared.attempt, Phase::Enrolling).await;
        (declared, self.token(declared.attempt).await)
    }

    async fn node_in(&self, project: &str) -> Node {
        let (_, token) = self.waiting_in(project).await;
        let id = self.enrol(token, self.public_key()).await.expect("an enrolment");
        self.node(id).await
    }

    async fn node(&self, id: NodeId) -> Node {
        self.store.nodes.node_fetch(id).await.expect("a fetch").expect("the node")
    }
}

fn address(node: &Node) -> String {
    node.mesh.ip.to_string()
}

pub(super) async fn addresses_are_dense_given_back_and_run_out(world: &World) {
    for (cidr, expected) in [
        ("10.7.0.0/29", ["10.7.0.2", "10.7.0.3", "10.7.0.4", "10.7.0.5", "10.7.0.6"]),
        ("fd07::/125", ["fd07::2", "fd07::3", "fd07::4", "fd07::5", "fd07::6"]),
    ] {
        let project = world.meshed(cidr).await;
        let mut nodes = Vec::new();
        for expected in expected {
            let node = world.node_in(&project).await;
            assert_eq!(address(&node), expected);
            nodes.push(node);
        }

        // The mesh is full; the refused enrolment keeps its token.
        let (declared, token) = world.waiting_in(&project).await;
        let full = world.enrol(token, world.public_key()).await;
        assert_eq!(refused(full), ErrorKind::PoolExhausted);
        let snapshot = world.snapshot(declared.attempt).await;
        assert!(snapshot.token.expect("the token").consumed.is_none(), "nothing is consumed");
        assert!(snapshot.node.is_none());

        // The lowest free address is the next one.
        world.leave(nodes[3].id).await.expect("it leaves");
        world.leave(nodes[1].id).await.expect("it leaves");
        let heir = world.enrol(token, world.public_key()).await.expect("there is room again");
        assert_eq!(address(&world.node(heir).await), expected[1]);
        let gone = world.node(nodes[1].id).await;
        assert_eq!(gone.mesh, nodes[1].mesh, "a node that left still shows its address");
        let seen = world.store.nodes.node_mesh(nodes[0].id, 10).await.expect("a read");
        let peers = seen.expect("the node").peers;
        let there: Vec<_> =
            peers.iter().filter(|peer| peer.ip.to_string() == expected[1]).collect();
        assert!(matches!(&there[..], [peer] if peer.id == heir), "one node has it: {there:?}");
        assert_eq!(address(&world.node_in(&project).await), expected[3]);
    }
    // Another project has a mesh of its own, with the same addresses.
    let (one, other) = (world.meshed("10.7.0.0/30").await, world.meshed("10.7.0.0/30").await);
    assert_eq!(address(&world.node_in(&one).await), address(&world.node_in(&other).await));
}

pub(super) async fn a_nonce_registers_once_in_a_project(world: &World) {
    let (project, other) = (world.meshed("10.8.0.0/24").await, world.meshed("10.8.0.0/24").await);
    let nonce = format!("nonce-{}", world.uuid());
    let (_, first) = world.waiting_in(&project).await;
    let (declared, second) = world.waiting_in(&project).await;
    let key = world.public_key();
    let node = world.enrol_with_nonce(first, key, &nonce).await.expect("an enrolment");
    let again = world.enrol_with_nonce(first, key, &nonce).await.expect("a lost answer");
    assert_eq!(again, node, "the same registration, answered again");
    let collided = world.enrol_with_nonce(second, world.public_key(), &nonce).await;
    assert_eq!(refused(collided), ErrorKind::NonceCollision);
    let snapshot = world.snapshot(declared.attempt).await;
    assert!(snapshot.token.expect("the token").consumed.is_none(), "nothing is consumed");
    world.enrol(second, world.public_key()).await.expect("with a fresh one");
    let (_, elsewhere) = world.waiting_in(&other).await;
    let elsewhere = world.enrol_with_nonce(elsewhere, world.public_key(), &nonce).await;
    elsewhere.expect("another project has nonces of its own");
}

pub(super) async fn a_public_key_has_one_registered_node_in_a_project(world: &World) {
    let (project, other) = (world.meshed("10.12.0.0/24").await, world.meshed("10.12.0.0/24").await);
    let (_, first) = world.waiting_in(&project).await;
    let (declared, second) = world.waiting_in(&project).await;
    let key = world.public_key();
    let node = world.enrol(first, key).await.expect("an enrolment");
    assert_eq!(world.enrol(first, key).await.expect("a lost answer"), node, "no second node");
    assert_eq!(refused(world.enrol(second, key).await), ErrorKind::PublicKeyTaken);
    let snapshot = world.snapshot(declared.attempt).await;
    assert!(snapshot.token.expect("the token").consumed.is_none(), "nothing is consumed");
    let (_, elsewhere) = world.waiting_in(&other).await;
    world.enrol(elsewhere, key).await.expect("another project has keys of its own");
    world.leave(node).await.expect("it leaves");
    world.enrol(second, key).await.expect("nobody is registered with it any more");
}

pub(super) async fn a_mesh_moves_only_while_nobody_lives_in_it(world: &World) {
    let project = world.meshed("10.9.0.0/29").await;
    let nodes = [world.node_in(&project).await, world.node_in(&project).await];
    assert_eq!(refused(world.move_mesh(&project, "10.10.0.0/30").await), ErrorKind::MeshInUse);
    for node in &nodes {
        world.leave(node.id).await.expect("it leaves");
    }
    world.move_mesh(&project, "10.10.0.0/30").await.expect("nobody lives there");
    let found = world.store.kind::<Project>().fetch(&project, false).await.expect("a fetch");
    assert_eq!(found.expect("the project").mesh_cidr.to_string(), "10.10.0.0/30");
    assert_eq!(address(&world.node_in(&project).await), "10.10.0.2");
    let (_, token) = world.waiting_in(&project).await;
    let full = world.enrol(token, world.public_key()).await;
    assert_eq!(refused(full), ErrorKind::PoolExhausted, "what the larger one had is no room here");
}

pub(super) async fn a_node_sees_its_live_peers_and_is_shown_as_it_says(world: &World) {
    let project = world.meshed("10.11.0.0/24").await;
    let mut nodes = Vec::new();
    for _ in 0..4 {
        nodes.push(world.node_in(&project).await);
    }
    world.node_in(&world.meshed("10.11.0.0/24").await).await;
    world.leave(nodes[1].id).await.expect("it leaves");
    let seen =
        world.store.nodes.node_mesh(nodes[0].id, 10).await.expect("a look").expect("the node");
    assert_eq!((seen.node.id, seen.cidr.to_string().as_str()), (nodes[0].id, "10.11.0.0/24"));
    let peers: Vec<_> = seen.peers.iter().map(|peer| peer.id).collect();
    assert_eq!(peers, [nodes[2].id, nodes[3].id], "the live ones of the project");
    let few = world.store.nodes.node_mesh(nodes[3].id, 1).await.expect("a look").expect("the node");
    assert_eq!(few.peers.iter().map(|peer| peer.id).collect::<Vec<_>>(), [nodes[0].id]);
    let unknown = NodeId::new(world.uuid());
    assert!(world.store.nodes.node_mesh(unknown, 1).await.expect("a look").is_none());

    assert_eq!(nodes[0].reported, Reported::of(Some("1.0.0"), None, None));
    let said = Reported::of(None, Some("sha256:1"), Some("ok"));
    world.store.nodes.node_heartbeat(nodes[0].id, &said).await.expect("a heartbeat");
    let shown = world.node(nodes[0].id).await;
    assert_eq!(shown.reported, Reported::of(Some("1.0.0"), Some("sha256:1"), Some("ok")));
    assert_eq!(shown.revision, nodes[0].revision, "a heartbeat decides nothing");
}

/// Two enrol while a third leaves: no address is assigned twice, and none is lost.
pub(super) async fn enrol_with_enrol_and_leave_of_the_same_mesh(world: &Arc<World>) {
    let project = world.meshed("10.12.0.0/29").await;
    let old = world.node_in(&project).await;
    let (one, first) = world.waiting_in(&project).await;
    let (other, second) = world.waiting_in(&project).await;
    let (a, b, c) = (Arc::clone(world), Arc::clone(world), Arc::clone(world));
    let ((left, right), leaving) = at_once(
        at_once(async move { a.enrol(first, a.public_key()).await }, async move {
            b.enrol(second, b.public_key()).await
        }),
        async move { c.leave(old.id).await },
    )
    .await;
    leaving.expect("it leaves");
    let nodes = [world.node(left.expect("room")).await, world.node(right.expect("room")).await];
    let given: BTreeSet<_> = nodes.iter().map(address).collect();
    assert_eq!(given.len(), 2, "one address for two nodes: {nodes:?}");
    // The leaving node had 2. If it left too late for both, they get 3 and 4.
    let dense = ["10.12.0.2", "10.12.0.3", "10.12.0.4"];
    assert!(given.iter().all(|given| dense.contains(&given.as_str())), "{given:?}");
    for declared in [one, other] {
        let snapshot = world.snapshot(declared.attempt).await;
        assert!(snapshot.token.expect("the token").consumed.is_some());
    }
    // The next node gets the free one of the three: no address is lost.
    let next = address(&world.node_in(&project).await);
    let free = dense.iter().find(|address| !given.contains(**address));
    assert_eq!(Some(&next.as_str()), free, "{given:?}");
}

/// Two machines with one key: the first to enrol is the node.
pub(super) async fn enrol_with_enrol_of_the_same_key(world: &Arc<World>) {
    let project = world.meshed("10.14.0.0/24").await;
    let (_, first) = world.waiting_in(&project).await;
    let (_, second) = world.waiting_in(&project).await;
    let key = world.public_key();
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (left, right) =
        at_once(
            async move { a.enrol(first, key).await },
            async move { b.enrol(second, key).await },
        )
        .await;
    let (enrolled, late): (Vec<_>, Vec<_>) = [left, right].into_iter().partition(Result::is_ok);
    assert_eq!((enrolled.len(), late.len()), (1, 1), "{enrolled:?} {late:?}");
    for late in late {
        assert_eq!(refused(late), ErrorKind::PublicKeyTaken);
    }
}

/// Two machines with one nonce: the first to enrol is the node.
pub(super) async fn enrol_with_enrol_of_the_same_nonce(world: &Arc<World>) {
    let project = world.meshed("10.15.0.0/24").await;
    let (_, first) = world.waiting_in(&project).await;
    let (_, second) = world.waiting_in(&project).await;
    let nonce = format!("nonce-{}", world.uuid());
    let (a, b, of_b) = (Arc::clone(world), Arc::clone(world), nonce.clone());
    let outcome = at_once(
        async move { a.enrol_with_nonce(first, a.public_key(), &nonce).await },
        async move { b.enrol_with_nonce(second, b.public_key(), &of_b).await },
    )
    .await;
    let (node, late) = one_winner(outcome);
    assert_eq!(late, ErrorKind::NonceCollision);
    // The refused one keeps no address: the next node gets the one that is free.
    let mut given = [address(&world.node(node).await), address(&world.node_in(&project).await)];
    given.sort();
    assert_eq!(given, ["10.15.0.2", "10.15.0.3"]);
}

/// Nobody has an address yet, and there are two: the pool grows once, and each
/// gets its own.
pub(super) async fn enrol_with_enrol_into_an_empty_mesh(world: &Arc<World>) {
    let project = world.meshed("10.16.0.0/24").await;
    let outcome = enrol_two(world, &project).await;
    let (Ok(first), Ok(second)) = outcome else { panic!("both enrol: {outcome:?}") };
    let mut given = [address(&world.node(first).await), address(&world.node(second).await)];
    given.sort();
    assert_eq!(given, ["10.16.0.2", "10.16.0.3"]);
}

/// One address for two: one of them enrols.
pub(super) async fn enrol_with_enrol_of_the_last_address(world: &Arc<World>) {
    let project = world.meshed("10.17.0.0/30").await;
    let (node, late) = one_winner(enrol_two(world, &project).await);
    assert_eq!(late, ErrorKind::PoolExhausted);
    assert_eq!(address(&world.node(node).await), "10.17.0.2");
}

/// The last address is that of an enrolment which is refused: the other one gets it.
pub(super) async fn enrol_with_a_refused_enrol_of_the_last_address(world: &Arc<World>) {
    let project = world.meshed("10.18.0.0/30").await;
    let (_, expected) = world.waiting_in(&project).await;
    let (left, used) = world.waiting_in(&project).await;
    let gone = world.enrol(used, world.public_key()).await.expect("room for one");
    world.leave(gone).await.expect("it leaves");
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let (enrolled, again) =
        at_once(async move { a.enrol(expected, a.public_key()).await }, async move {
            b.enrol(used, b.public_key()).await
        })
        .await;
    assert_eq!(refused(again), ErrorKind::TokenConsumed, "{left:?}");
    assert_eq!(address(&world.node(enrolled.expect("there is room")).await), "10.18.0.2");
}

async fn enrol_two(
    world: &Arc<World>,
    project: &str,
) -> (Result<NodeId, Error>, Result<NodeId, Error>) {
    let (_, first) = world.waiting_in(project).await;
    let (_, second) = world.waiting_in(project).await;
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    at_once(async move { a.enrol(first, a.public_key()).await }, async move {
        b.enrol(second, b.public_key()).await
    })
    .await
}

/// In either order, a node gets an address in its project's mesh.
pub(super) async fn enrol_with_another_mesh(world: &Arc<World>) {
    let project = world.meshed("10.13.0.0/24").await;
    let (_, token) = world.waiting_in(&project).await;
    let (a, b) = (Arc::clone(world), Arc::clone(world));
    let of_b = project.clone();
    let (enrolled, moved) =
        at_once(async move { a.enrol(token, a.public_key()).await }, async move {
            b.move_mesh(&of_b, "10.14.0.0/24").await
        })
        .await;
    let node = world.node(enrolled.expect("there is room in both")).await;
    match moved {
        Ok(()) => assert_eq!(address(&node), "10.14.0.2"),
        Err(_) => {
            assert_eq!(refused(moved), ErrorKind::MeshInUse);
            assert_eq!(address(&node), "10.13.0.2");
        }
    }
}
