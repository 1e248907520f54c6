//! The demo on a cluster, as a newcomer runs it, compared with the records of
//! the API server and the agents.

use std::process::Stdio;

use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::Value;
use slipway_standin::AgentMode;
use slipway_testkit::kube::ADMIN;

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
