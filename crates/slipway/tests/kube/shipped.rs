//! The whole control plane under the shipped account, which is no admin.

use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Client;
use kube::api::{Api, ListParams};
use reqwest::Method;
use serde_json::json;
use slipway_testkit::kube::AuditRecord;
use slipway_testkit::wait;

use crate::account::{self, COMPOSED, USER};
use crate::control_plane::TIMEOUT;
use crate::world::{Account, PROJECT, Setup, World};

/// From an empty cluster to a removed project and namespace: no request is
/// refused but the one whose right the test withholds, and none reads a Secret.
#[tokio::test(flavor = "multi_thread")]
async fn the_shipped_account_carries_the_whole_control_plane() {
    let test = "the_shipped_account_carries_the_whole_control_plane";
    let setup = Setup {
        account: Account::Shipped,
        // With subjects, so that everything that can be made in a namespace is made.
        settings: &["--lease", "3s", "--namespace-subjects", "group:shop-team"],
        ..Setup::default()
    };
    let Some(world) = World::start(test, setup).await else { return };
    let namespace = world.namespace().await;
    for (version, kind, plural) in [
        ("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings"),
        ("v1", "ResourceQuota", "resourcequotas"),
    ] {
        let made = world.names_of(version, kind, plural).await;
        assert_eq!(made.len(), 1, "{kind}: {made:?}");
    }
    let (served, failed) =
        (world.declare("web-1", "").await, world.declare("web-2", "fail=no room").await);
    world.plane.wait_for_phase(&served, "Ready").await;
    world.plane.wait_for_phase(&failed, "Failed").await;
    for id in [&served, &failed] {
        world.plane.delete(id).await;
        world.plane.wait_for_phase(id, "Deleted").await;
    }
    let composites = world.composites().await;
    assert!(composites.list(&ListParams::default()).await.unwrap().items.is_empty());

    // The project is removed with everything made for it.
    wait::until(TIMEOUT, "the project to be removed", async || {
        let path = format!("/api/v1/projects/{PROJECT}?reason=test");
        match world.plane.call(Method::DELETE, &path, None).await {
            (200..300, _) => Ok(()),
            refused => Err(format!("{refused:?}\n{}", world.assignment().await)),
        }
    })
    .await;
    // A kind that it may not list keeps the namespace, and it names the remedy.
    wait::until(TIMEOUT, "the right that is missing to be named", async || {
        let assignments = world.plane.get("/api/v1/cluster-assignments").await;
        let remedy = format!("name {COMPOSED} in rbac.inspectedGroups");
        if assignments.to_string().contains(&remedy) {
            Ok(())
        } else {
            Err(assignments.to_string())
        }
    })
    .await;
    let namespaces = Api::<Namespace>::all(world.client.clone());
    assert!(namespaces.get_opt(&namespace).await.unwrap().is_some());
    account::inspect(&world.client).await;
    wait::until(TIMEOUT, "its namespace to be gone", async || {
        match namespaces.get_opt(&namespace).await.unwrap() {
            None => Ok(()),
            Some(found) => Err(format!(
                "{found:?}\n{}\n{}",
                world.plane.get("/api/v1/cluster-assignments").await,
                world.plane.log_tail()
            )),
        }
    })
    .await;

    let records = world.kubernetes.audit().unwrap();
    let ours: Vec<_> = records.iter().filter(|record| record.user == USER).collect();
    assert!(ours.iter().any(|record| record.verb == "delete"), "it was not this account");
    let inspected = |record: &AuditRecord| {
        let object = record.object.as_ref();
        record.verb == "list" && object.is_some_and(|object| object.group == COMPOSED)
    };
    let refused = ours.iter().filter(|record| record.code == Some(403) && !inspected(record));
    let refused = shown(refused);
    assert!(refused.is_empty(), "{refused:#?}");
    let secrets = shown(ours.iter().filter(|record| {
        record.object.as_ref().is_some_and(|object| object.resource == "secrets")
    }));
    assert!(secrets.is_empty(), "{secrets:#?}");

    // Nor could it have read one.
    let account = client_of(&world).await;
    let secrets = Api::<Secret>::namespaced(account.clone(), "slipway-system");
    assert_eq!(code(secrets.get("any").await), 403);
    assert_eq!(code(secrets.list(&ListParams::default()).await), 403);
    assert_eq!(code(Api::<Secret>::all(account).list(&ListParams::default()).await), 403);
    assert_eq!(world.plane.get("/api/v1/leaks").await, json!([]));
}

/// A client with the very kubeconfig that the control plane uses.
async fn client_of(world: &World) -> Client {
    let file = world.kubeconfig_file();
    let kubeconfig = kube::config::Kubeconfig::read_from(file).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await;
    Client::try_from(config.unwrap()).unwrap()
}

fn shown<'a>(records: impl Iterator<Item = &'a &'a AuditRecord>) -> Vec<String> {
    records.map(|record| format!("{} {} {:?}", record.verb, record.uri, record.code)).collect()
}

fn code<T: std::fmt::Debug>(answer: kube::Result<T>) -> u16 {
    match answer.expect_err("a refusal") {
        kube::Error::Api(status) => status.code,
        error => panic!("not an answer of the API server: {error:?}"),
    }
}
