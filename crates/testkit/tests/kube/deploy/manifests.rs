//! An API server accepts the manifests.

use kube::api::PatchParams;
use serde_json::{Value, json};
use slipway_testkit::kube::shared;

use super::documents::{apply, documents, text, title, word};
use crate::mk_client;

const FILES: [&str; 5] = [
    "deploy/manifests/slipway.yaml",
    "deploy/manifests/agent.yaml",
    "deploy/rbac/control-plane.yaml",
    "deploy/rbac/groups.example.yaml",
    // The chart with everything that those leave out.
    "crates/testkit/tests/kube/deploy/everything.yaml",
];

#[tokio::test]
async fn an_api_server_takes_every_manifest() {
    const NAME: &str = "an_api_server_takes_every_manifest";
    let Some(kubernetes) = shared(NAME).await else { return };
    let admin = mk_client(&kubernetes.kubeconfig("admin")).await;
    // Really applied: an API server accepts nothing into a missing namespace.
    let mut namespace = documents("deploy/manifests/namespace.yaml").remove(0);
    apply(&admin, &namespace, &PatchParams::apply(NAME)).await.unwrap();
    // That of the agent, which people create as its chart's page says.
    namespace["metadata"]["name"] = json!("slipway-agent");
    apply(&admin, &namespace, &PatchParams::apply(NAME)).await.unwrap();

    // Forced, since another test may have installed the roles meanwhile.
    let dry_run = PatchParams::apply(NAME).dry_run().force();
    let mut kinds = Vec::new();
    for mut document in FILES.into_iter().flat_map(documents) {
        let title = title(&document);
        // The API server of the tests is 1.20 and has no policy/v1; the fields
        // used here are the same in policy/v1beta1.
        if document["apiVersion"] == "policy/v1" {
            document["apiVersion"] = "policy/v1beta1".into();
        }
        let taken = apply(&admin, &document, &dry_run).await;
        assert!(taken.is_ok(), "{title}: {taken:?}");
        kinds.push(document["kind"].as_str().unwrap().to_owned());

        // Shows that the test can fail: a misspelt field is reported, not dropped.
        let part = if document["spec"].is_object() { "spec" } else { "metadata" };
        document[part]["replicsa"] = json!(1);
        assert!(apply(&admin, &document, &dry_run).await.is_err(), "{title}");
    }
    kinds.sort();
    kinds.dedup();
    let expected = [
        "ClusterRole",
        "ClusterRoleBinding",
        "Deployment",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Role",
        "RoleBinding",
        "Service",
        "ServiceAccount",
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn the_pods_are_kept_as_small_as_they_can_be() {
    let deployment = deployment();
    let spec = &deployment["spec"]["template"]["spec"];
    let container = &spec["containers"][0];
    assert_eq!(spec["securityContext"]["runAsNonRoot"], true);
    assert_eq!(spec["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    let expected = json!({
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "capabilities": { "drop": ["ALL"] },
    });
    assert_eq!(container["securityContext"], expected);
    assert!(container["resources"]["limits"]["memory"].is_string());
    assert_eq!(container["livenessProbe"]["httpGet"]["path"], "/healthz");
    assert_eq!(container["readinessProbe"]["httpGet"]["path"], "/readyz");

    // Secrets come by reference, and the data folder is writable.
    for variable in container["env"].as_array().unwrap() {
        let name = variable["name"].as_str().unwrap();
        let secret = ["SLIPWAY_DATABASE_URL", "SLIPWAY_ADMIN_KEY"].contains(&name);
        assert_eq!(variable["value"].is_null(), secret, "{name}");
        assert_eq!(variable["valueFrom"]["secretKeyRef"].is_object(), secret, "{name}");
    }
    assert!(volume(spec, "data")["emptyDir"].is_object());
    assert_eq!(mount(container, "data")["mountPath"], value_of(container, "SLIPWAY_DATA_DIR"));
    assert_eq!(
        mount(container, "kubeconfigs")["mountPath"],
        value_of(container, "SLIPWAY_KUBECONFIG_DIR")
    );

    // The delay of preStop and the drain end before Kubernetes kills.
    let delay: u64 = container["lifecycle"]["preStop"]["exec"]["command"][1]
        .as_str()
        .and_then(|seconds| seconds.parse().ok())
        .unwrap();
    let drain: u64 = value_of(container, "SLIPWAY_DRAIN_TIMEOUT")
        .strip_suffix('s')
        .and_then(|seconds| seconds.parse().ok())
        .unwrap();
    assert!(spec["terminationGracePeriodSeconds"].as_u64().unwrap() > delay + drain);
}

#[test]
fn the_image_is_that_of_the_pods() {
    let dockerfile = text("deploy/docker/Dockerfile");
    let deployment = deployment();
    let spec = &deployment["spec"]["template"]["spec"];
    let user = &spec["securityContext"]["runAsUser"];
    assert!(dockerfile.contains(&format!("\nUSER {user}:{user}\n")), "{user}");
    let port = &spec["containers"][0]["ports"][0]["containerPort"];
    assert!(dockerfile.contains(&format!("\nEXPOSE {port}\n")), "{port}");
    assert_eq!(spec["containers"][0]["args"], json!(["up"]));
}

fn deployment() -> Value {
    let all = documents("deploy/manifests/slipway.yaml");
    all.into_iter().find(|document| document["kind"] == "Deployment").expect("a Deployment")
}

fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    let found = list.as_array().into_iter().flatten().find(|item| item["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {list}"))
}

fn volume<'a>(spec: &'a Value, name: &str) -> &'a Value {
    named(&spec["volumes"], name)
}

fn mount<'a>(container: &'a Value, name: &str) -> &'a Value {
    named(&container["volumeMounts"], name)
}

fn value_of<'a>(container: &'a Value, variable: &str) -> &'a str {
    word(&named(&container["env"], variable)["value"])
}
