//! Two control planes on one PostgreSQL and one cluster. Each uses its own
//! user, so that the API server's audit log shows who did what.

use slipway_testkit::kube::{ADMIN, OTHER_ADMIN};
use slipway_testkit::postgres;
use slipway_testkit::wait;

use crate::control_plane::{ControlPlane, TIMEOUT};
use crate::world::{BLUEPRINT, PROJECT, Setup, World};

/// Resources with a node.
const WITH_NODE: usize = 20;
/// Resources that wait for a node, so that they can be removed while no node
/// sends heartbeats.
const WITHOUT: usize = 6;

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_make_each_composite_once_and_delete_it_after_its_node() {
    let test = "two_replicas_make_each_composite_once_and_delete_it_after_its_node";
    let Some(server) = postgres::shared(test).await else { return };
    let mut first = ControlPlane::new(Some(server.database("replicas").await));
    // Nodes connect to the first, whichever replica rendered their configuration.
    let url = first.url();
    first.set(&["--public-url", &url, "--lease", "3s", "--deregistering-deadline", "10m"]);
    let Some(mut world) = World::start_with(test, Setup::default(), first).await else { return };
    let mut second = world.plane.beside();
    let folder = world.kubernetes.folder().join("kubeconfigs-of-the-second");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("east"), world.kubernetes.kubeconfig(OTHER_ADMIN)).unwrap();
    second.set(&["--kubeconfig-dir", folder.to_str().unwrap()]);
    second.start().await;
    second.wait_until_ready().await;

    // Declared at both, and one of them is killed meanwhile.
    let mut ids = Vec::new();
    for number in 0..WITH_NODE / 2 {
        let plane = if number % 2 == 0 { &world.plane } else { &second };
        ids.push(declare(plane, &format!("web-{number}"), "").await);
    }
    let makers = async |world: &World, ids: &[String]| {
        let mut makers = Vec::new();
        for id in ids {
            makers.extend(world.makers(&world.xr_name(id).await));
        }
        makers
    };
    // The first may make all of them before the second looks, so there is more to make.
    let mut more = 0;
    while !makers(&world, &ids).await.iter().any(|user| user == OTHER_ADMIN) {
        more += 1;
        assert!(more <= 40, "the second makes nothing");
        ids.push(declare(&second, &format!("more-{more}"), "").await);
        wait::until(TIMEOUT, "somebody to make it", async || {
            !world.makers(&world.xr_name(&ids[ids.len() - 1]).await).is_empty()
        })
        .await;
    }
    second.kill();
    for number in WITH_NODE / 2..WITH_NODE {
        ids.push(declare(&world.plane, &format!("web-{number}"), "").await);
    }
    let mut bare = Vec::new();
    for number in 0..WITHOUT {
        bare.push(declare(&world.plane, &format!("bare-{number}"), "no-node").await);
    }
    second.start().await;
    for id in &ids {
        world.wait_well(id).await;
    }
    for id in &bare {
        world.plane.wait_for_phase(id, "Enrolling").await;
    }
    assert!(makers(&world, &ids).await.iter().any(|user| user == ADMIN));

    // Deleted at both, and the other one is killed meanwhile.
    for (number, id) in ids.iter().enumerate() {
        let plane = if number % 2 == 0 { &world.plane } else { &second };
        plane.delete(id).await;
    }
    world.plane.kill();
    for id in &bare {
        second.delete(id).await;
    }
    for id in &bare {
        second.wait_for_phase(id, "Deleted").await;
    }
    world.plane.start().await;

    let mut deleters = Vec::new();
    for id in ids.iter().chain(&bare) {
        let proven = |gone: &serde_json::Value| gone["attempt"]["absence_proven_at"].is_string();
        second.wait_for(id, "Deleted, and proven gone a second time", proven).await;
        let name = world.xr_name(id).await;
        let nodes = usize::from(!bare.contains(id));
        assert_eq!((world.made(&name), world.booted(&name)), (1, nodes), "{name}");
        let deletes = world.all_deletes(&name);
        deleters.extend(deletes.iter().map(|delete| delete.user.clone()));
        assert!(!deletes.is_empty(), "{name} was deleted by nobody");
        world.assert_after_its_node(id, &deletes).await;
        world.assert_straight(id).await;
        let all = ["Requested", "Ready", "Deleting", "Deleted"];
        let events: Vec<_> =
            all.into_iter().filter(|event| nodes == 1 || *event != "Ready").collect();
        second.assert_each_event_once(id, &events).await;
    }
    assert!(deleters.iter().any(|user| user == OTHER_ADMIN), "{deleters:?}");
    world.assert_nothing_left().await;
    second.stop().await;
}

async fn declare(plane: &ControlPlane, handle: &str, script: &str) -> String {
    let body = serde_json::json!({
        "project": PROJECT, "handle": handle, "blueprint": BLUEPRINT,
        "parameters": { "standin": script },
    });
    let (status, declared) =
        plane.call(reqwest::Method::POST, "/api/v1/resources", Some(body)).await;
    assert_eq!(status, 202, "{declared}");
    declared["id"].as_str().unwrap().to_owned()
}
