//! The API server and etcd stop in the middle of everything, and come back.

use slipway_testkit::kube::Part;
use slipway_testkit::wait;

use crate::cast::Cast;
use crate::control_plane::TIMEOUT;
use crate::stage::{Environment, HEARTBEAT};
use crate::world::{Account, CLUSTER, Setup, World};

/// A long deadline, so that only the outage shows and not a drain that it delays.
const LONG_TIMEOUT: Setup<'_> = Setup {
    agent: slipway_standin::AgentMode::InProcess,
    strategy: "cloud-init-user-data",
    settings: &["--deregistering-deadline", "10m"],
    account: Account::Admin,
    heartbeat: HEARTBEAT,
    install_definitions: false,
    environment: Environment::Own,
};

/// With a resource in every phase, and one that is declared and one that is
/// deleted during the outage, in which the control plane is killed too.
#[tokio::test(flavor = "multi_thread")]
async fn an_outage_in_every_phase_loses_nothing_and_doubles_nothing() {
    let test = "an_outage_in_every_phase_loses_nothing_and_doubles_nothing";
    let Some(mut world) = World::start(test, LONG_TIMEOUT).await else { return };
    for (part, prefix) in [(Part::ApiServer, "api"), (Part::Etcd, "etcd")] {
        let cast = Cast::gather(&world, prefix).await;
        let leaving = world.declare(&format!("{prefix}-leaving"), "").await;
        world.plane.wait_for_phase(&leaving, "Ready").await;
        world.kubernetes.kill(part).await.unwrap();
        let held = async |id: &str, phase: &str| {
            let seen = world.wait_blocked(id, "substrate_unknown", "API server").await;
            assert_eq!(seen["phase"], phase, "{seen}");
        };
        for (id, phase) in cast.all().into_iter().filter(|(_, phase)| *phase != "Failed") {
            held(id, phase).await;
        }
        let explained = world.plane.says(&["explain", "resource", &cast.provisioning]);
        assert!(explained.contains("substrate_unknown"), "{explained}");

        // The control plane still serves nodes.
        let (status, said) = world.plane.readiness().await;
        assert_eq!(status, 200, "{said}");

        world.plane.kill();
        world.plane.start().await;
        let late = world.declare(&format!("{prefix}-late"), "").await;
        world.plane.delete(&leaving).await;
        let held = async |id: &str, phase: &str| {
            let seen = world.wait_blocked(id, "substrate_unknown", "API server").await;
            assert_eq!(seen["phase"], phase, "{seen}");
            seen
        };
        held(&late, "Pending").await;
        // Its node can leave all the same.
        let drained = |seen: &serde_json::Value| seen["node"]["deregistered_at"].is_string();
        world.plane.wait_for(&leaving, "drained", drained).await;
        held(&leaving, "Deregistering").await;
        for (id, phase) in cast.all() {
            let seen = world.plane.resource(id).await;
            assert_eq!(seen["phase"], phase, "{seen}");
        }

        world.kubernetes.start_part(part).await.unwrap();
        cast.release(&world).await;
        cast.wait_released(&world).await;
        world.wait_well(&late).await;
        world.plane.wait_for_phase(&leaving, "Deleted").await;
        assert_eq!(world.plane.resource(&cast.failed).await["phase"], "Failed");
        let here = [&cast.provisioning, &cast.enrolling, &cast.ready, &late, &cast.failed];
        for id in here {
            world.plane.delete(id).await;
        }
        for id in here {
            world.plane.wait_for_phase(id, "Deleted").await;
        }
        for id in here.into_iter().chain([&leaving, &cast.deregistering, &cast.deprovisioning]) {
            let name = world.xr_name(id).await;
            let machines = usize::from(*id != cast.failed);
            assert_eq!((world.made(&name), world.booted(&name)), (1, machines), "{name}");
            world.assert_node_went_first(id).await;
            if *id != cast.failed {
                world.assert_straight(id).await;
            }
        }
        world.assert_nothing_left().await;
    }
}

/// The server is killed right after the first composite was made, and again
/// right after the first deletion: requests are in flight, and their outcome is
/// unknown.
#[tokio::test(flavor = "multi_thread")]
async fn killed_amid_requests_each_is_made_once_and_goes_in_order() {
    let test = "killed_amid_requests_each_is_made_once_and_goes_in_order";
    let Some(world) = World::start(test, LONG_TIMEOUT).await else { return };
    for (part, prefix) in [(Part::ApiServer, "api"), (Part::Etcd, "etcd")] {
        let mut ids = Vec::new();
        for number in 0..8 {
            ids.push(world.declare(&format!("{prefix}-{number}"), "").await);
        }
        let mut names = Vec::new();
        for id in &ids {
            names.push(world.xr_name(id).await);
        }
        wait::until(TIMEOUT, "the first composite", async || {
            names.iter().any(|name| world.made(name) > 0)
        })
        .await;
        world.kubernetes.restart(part).await.unwrap();
        for id in &ids {
            world.wait_well(id).await;
            world.assert_straight(id).await;
        }
        for id in &ids {
            world.plane.delete(id).await;
        }
        wait::until(TIMEOUT, "the first deletion", async || {
            names.iter().any(|name| !world.deletes(name).is_empty())
        })
        .await;
        world.kubernetes.restart(part).await.unwrap();
        for (id, name) in ids.iter().zip(&names) {
            world.plane.wait_for_phase(id, "Deleted").await;
            world.assert_straight(id).await;
            // The log may lack what was made or deleted when the server was killed.
            world.assert_after_its_node(id, &world.deletes(name)).await;
            world.assert_drained_before_it_stopped(name);
            assert!(world.made(name) <= 1, "{:?}", world.asked(name));
            assert_eq!(world.booted(name), 1, "{name}");
            let all = ["Requested", "Ready", "Deleting", "Deleted"];
            world.plane.assert_each_event_once(id, &all).await;
        }
        world.assert_nothing_left().await;
    }
}

/// One line when the cluster goes and one when it is back, whatever asks it
/// meanwhile; one for the blocker of a resource there, and one for its end.
#[tokio::test(flavor = "multi_thread")]
async fn an_outage_is_logged_when_it_begins_and_when_it_ends() {
    let test = "an_outage_is_logged_when_it_begins_and_when_it_ends";
    let Some(world) = World::start(test, LONG_TIMEOUT).await else { return };
    let id = world.declare("web-1", "").await;
    world.plane.wait_for_phase(&id, "Ready").await;
    let before = world.plane.log_text().len();
    world.kubernetes.kill(Part::ApiServer).await.unwrap();
    world.wait_blocked(&id, "substrate_unknown", "API server").await;
    let log = || world.plane.log_text()[before..].to_owned();
    wait::until(TIMEOUT, "the outage is logged", async || {
        log().contains("a cluster does not answer").then_some(())
    })
    .await;
    world.kubernetes.start_part(Part::ApiServer).await.unwrap();
    world.wait_well(&id).await;
    wait::until(TIMEOUT, "the end of the outage is logged", async || {
        log().contains("a cluster answers again").then_some(())
    })
    .await;
    let log = log();
    let holding = |parts: &[&str]| {
        let has = |line: &&str| parts.iter().all(|part| line.contains(part));
        log.lines().filter(has).collect::<Vec<_>>()
    };
    let cluster = format!("cluster=\"{}\"", CLUSTER);
    assert_eq!(holding(&[" WARN ", "a cluster does not answer", &cluster]).len(), 1, "{log}");
    assert_eq!(holding(&[" INFO ", "a cluster answers again", &cluster]).len(), 1, "{log}");
    let blocked = ["web-1", "substrate_unknown"];
    let raised = holding(&[" WARN ", "is blocked", "remedy", blocked[0], blocked[1]]);
    assert_eq!(raised.len(), 1, "{log}");
    let cleared = holding(&[" INFO ", "no longer blocked", blocked[0], blocked[1]]);
    assert_eq!(cleared.len(), 1, "{log}");
    assert_eq!(holding(&[" WARN "]).len(), 2, "{log}");
    assert!(holding(&[" ERROR "]).is_empty(), "{log}");
}
