//! The demos on a cluster, as a newcomer runs them, compared with the records of
//! the API server and the agents.

use std::process::Stdio;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use slipway_standin::AgentMode;
use slipway_testkit::kube::{ADMIN, AuditRecord, shared};

use crate::control_plane::binary;
use crate::order;
use crate::stage::{self, HEARTBEAT, Stage};

const XRD: &str = include_str!("../../../../deploy/demo/catalog/demo-server/xrd.yaml");

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_verifies_every_fact_on_a_cluster() {
    let test = "the_demo_verifies_every_fact_on_a_cluster";
    let Some(stage) = Stage::start(test, AgentMode::Process, None, HEARTBEAT).await else {
        return;
    };
    stage::define(&stage.client, &serde_yaml_ng::from_str(XRD).unwrap()).await;
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = stage.kubernetes.kubeconfig_file(ADMIN).unwrap();
    let mut command = tokio::process::Command::from(binary());
    // Its temporary folder is here, so that the test sees what it leaves.
    command
        .args(["demo", "--substrate", "crossplane", "--kubeconfig"])
        .arg(kubeconfig)
        .env("TMPDIR", folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let output = command.output().await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert!(left.is_empty(), "it left {left:?}");
    assert!(text.contains("deploy/demo/catalog/demo-server/xrd.yaml"), "what is needed: {text}");

    let summary: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    for (count, expected) in [("provisioned", 3), ("ready", 3), ("deleted", 3), ("forced", 0)] {
        assert_eq!(summary[count], expected, "{count}: {text}");
    }
    assert_eq!(summary["substrate"], "crossplane");
    let (journal, records) = (stage::read_lines(&stage.journal), stage.kubernetes.audit().unwrap());
    for resource in summary["resources"].as_array().unwrap() {
        let composite = resource["composite"].as_str().unwrap();
        let deregistered_at = &resource["deregistered_at"];
        order::assert_left_first(composite, deregistered_at, &journal, &records, "xdemoservers");
    }
    let namespaces: Api<Namespace> = Api::all(stage.client.clone());
    let namespaces = namespaces.list(&ListParams::default()).await.unwrap();
    let names: Vec<_> = namespaces.iter().map(ResourceExt::name_any).collect();
    assert!(!names.iter().any(|name| name.starts_with("slipway-project-")), "{names:?}");
}

/// One of its three agents is a cluster agent. The audit log has each object of the stack: made,
/// changed, deleted, made again by the restore, and deleted for good.
#[tokio::test(flavor = "multi_thread")]
async fn the_demo_of_fleet_verifies_every_fact_on_a_cluster() {
    let test = "the_demo_of_fleet_verifies_every_fact_on_a_cluster";
    let Some(kubernetes) = shared(test).await else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut command = tokio::process::Command::from(binary());
    command
        .args(["fleet", "demo", "--kubeconfig"])
        .arg(kubernetes.kubeconfig_file(ADMIN).unwrap())
        .env("TMPDIR", folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let output = command.output().await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert!(left.is_empty(), "it left {left:?}");

    let summary: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(summary["agents"], json!(["directory", "directory", "cluster"]), "{text}");
    assert_eq!((&summary["removed_later"], &summary["restored"]), (&json!(1), &json!(3)), "{text}");
    // Other tests use other namespaces.
    let maps: Api<ConfigMap> = Api::default_namespaced(kubernetes.client(ADMIN).await.unwrap());
    let left = maps.list(&ListParams::default()).await.unwrap();
    let left: Vec<_> = left.iter().map(ResourceExt::name_any).collect();
    let is_ours = |name: &String| name.starts_with("demo-") || name.starts_with("slipway-");
    assert!(!left.iter().any(is_ours), "it left {left:?}");

    let records = kubernetes.audit().unwrap();
    let deletions = |end: &str| {
        let of_demo = |record: &&AuditRecord| {
            let name = record.object.as_ref().map_or("", |object| &object.name);
            let is_done = record.verb == "delete" && record.code == Some(200);
            is_done && name.starts_with("demo-") && name.ends_with(end)
        };
        records.iter().filter(of_demo).count()
    };
    // What the second version does not have goes once, the rest with each deletion.
    assert_eq!((deletions("-settings"), deletions("-page"), deletions("-banner")), (1, 2, 2));
}
