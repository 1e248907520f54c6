//! The shipped account suffices without cluster-admin, and cannot read Secrets.

use std::collections::BTreeSet;

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::authorization::v1::{SelfSubjectAccessReview, SubjectAccessReview};
use k8s_openapi::api::core::v1::{Namespace, Secret, ServiceAccount};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use serde_json::{Value, json};
use slipway_testkit::kube::{KubeEnvironment, shared};
use slipway_testkit::wait::until;

use super::documents::{api, apply, documents, text, word};
use crate::{TIMEOUT, mk_client};

const NAMESPACE: &str = "slipway-system";
const PROJECT: &str = "slipway-project-shop";
const LIST: &[&str] = &["list"];
const READ: &[&str] = &["get", "list", "watch"];
const INSTALL: &[&str] = &["get", "list", "watch", "create", "patch"];
const OWN: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];

/// The rights that the control plane uses: API group, resource (`*` for the
/// whole group), the only name if there is one, verbs. No other right is
/// shipped.
const NEEDED: [(&str, &str, Option<&str>, &[&str]); 34] = [
    ("", "namespaces", None, OWN),
    ("", "resourcequotas", None, OWN),
    ("rbac.authorization.k8s.io", "rolebindings", None, OWN),
    ("rbac.authorization.k8s.io", "clusterroles", Some("slipway-project-viewer"), &["bind"]),
    ("external-secrets.io", "externalsecrets", None, OWN),
    ("apiextensions.crossplane.io", "compositeresourcedefinitions", None, INSTALL),
    ("apiextensions.crossplane.io", "compositions", None, INSTALL),
    ("rbac.authorization.k8s.io", "clusterroles", None, &["get", "list"]),
    ("apiextensions.k8s.io", "customresourcedefinitions", None, READ),
    ("", "configmaps", None, LIST),
    ("", "limitranges", None, LIST),
    ("", "persistentvolumeclaims", None, LIST),
    ("", "pods", None, LIST),
    ("", "podtemplates", None, LIST),
    ("", "replicationcontrollers", None, LIST),
    ("", "serviceaccounts", None, LIST),
    ("", "services", None, LIST),
    ("apps", "*", None, LIST),
    ("autoscaling", "*", None, LIST),
    ("batch", "*", None, LIST),
    ("coordination.k8s.io", "*", None, LIST),
    ("extensions", "*", None, LIST),
    ("networking.k8s.io", "*", None, LIST),
    ("policy", "*", None, LIST),
    ("resource.k8s.io", "*", None, LIST),
    ("rbac.authorization.k8s.io", "roles", None, LIST),
    ("storage.k8s.io", "csistoragecapacities", None, LIST),
    ("external-secrets.io", "*", None, LIST),
    ("generators.external-secrets.io", "*", None, LIST),
    ("protection.crossplane.io", "*", None, LIST),
    ("platform.example.org", "*", None, OWN),
    ("platform.example.org", "*/finalizers", None, &["update"]),
    ("hcloud.crossplane.io", "providerconfigs", None, OWN),
    ("hcloud.crossplane.io", "*", None, &["get", "list"]),
];

/// Rights with which somebody could do harm. Resource, with its group after a
/// dot as kubectl writes it; a name after a space.
const REFUSED: [(&str, &[&str]); 15] = [
    ("secrets", &["get", "list", "watch", "create", "patch", "update", "delete"]),
    ("configmaps", &["get", "watch", "create", "patch"]),
    ("pods", &["get", "watch", "create"]),
    ("pods/exec", &["create", "get"]),
    ("pods/log", &["get"]),
    ("serviceaccounts", &["create", "impersonate"]),
    ("serviceaccounts/token", &["create"]),
    ("users", &["impersonate"]),
    ("nodes", &["get", "list"]),
    ("deployments.apps", &["get", "create", "patch"]),
    ("clusterroles.rbac.authorization.k8s.io", &["create", "patch", "escalate", "bind"]),
    ("clusterroles.rbac.authorization.k8s.io cluster-admin", &["bind", "escalate"]),
    ("clusterrolebindings.rbac.authorization.k8s.io", &["create", "patch"]),
    ("customresourcedefinitions.apiextensions.k8s.io", &["create", "patch", "delete"]),
    ("*.*", &["*"]),
];

fn rules(aggregated_to: &str) -> Vec<Value> {
    let files = [
        "deploy/rbac/control-plane.yaml",
        "deploy/rbac/definitions.yaml",
        "deploy/rbac/groups.example.yaml",
    ];
    files
        .into_iter()
        .flat_map(documents)
        .filter(|role| role["metadata"]["labels"][aggregated_to] == "true")
        .flat_map(|role| role["rules"].as_array().expect("rules").clone())
        .collect()
}

fn words(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().map(word).collect()
}

#[test]
fn the_account_has_the_rights_it_needs_and_no_others() {
    type Right = (String, String, Option<String>, String);
    let mut shipped: BTreeSet<Right> = BTreeSet::new();
    for rule in rules("slipway.dev/aggregate-to-control-plane") {
        let names = match words(&rule["resourceNames"]) {
            names if names.is_empty() => vec![None],
            names => names.into_iter().map(|name| Some(name.to_owned())).collect(),
        };
        for group in words(&rule["apiGroups"]) {
            for resource in words(&rule["resources"]) {
                for (verb, name) in words(&rule["verbs"])
                    .into_iter()
                    .flat_map(|verb| names.iter().map(move |name| (verb, name)))
                {
                    let (group, resource) = (group.to_owned(), resource.to_owned());
                    shipped.insert((group, resource, name.clone(), verb.to_owned()));
                }
            }
        }
    }
    let needed: BTreeSet<Right> = NEEDED
        .iter()
        .flat_map(|(group, resource, name, verbs)| {
            verbs.iter().map(|verb| {
                let name = name.map(str::to_owned);
                ((*group).to_owned(), (*resource).to_owned(), name, (*verb).to_owned())
            })
        })
        .collect();
    assert_eq!(shipped, needed);
}

#[test]
fn the_page_about_security_shows_the_rights() {
    let mut expected = String::from("| API group | resources | verbs |\n|---|---|---|\n");
    for rule in rules("slipway.dev/aggregate-to-control-plane") {
        let groups = match words(&rule["apiGroups"])[..] {
            [""] => "core".to_owned(),
            ref groups => groups.join(", "),
        };
        let mut resources = words(&rule["resources"]).join("`, `");
        if let [name] = words(&rule["resourceNames"])[..] {
            resources += &format!("` only `{name}");
        }
        let verbs = words(&rule["verbs"]).join(", ");
        expected += &format!("| {groups} | `{resources}` | {verbs} |\n");
    }
    let page = text("docs/access.md");
    let shown = page.split("<!-- rights -->\n").nth(1).unwrap();
    let shown = shown.split("<!-- /rights -->").next().unwrap();
    assert_eq!(shown, expected, "put this table between the marks of docs/access.md:\n{expected}");
}

#[tokio::test]
async fn the_shipped_account_suffices_and_reads_no_secrets() {
    const NAME: &str = "the_shipped_account_suffices_and_reads_no_secrets";
    let Some(kubernetes) = shared(NAME).await else { return };
    let admin = mk_client(&kubernetes.kubeconfig("admin")).await;
    let account = mk_account(kubernetes, &admin).await;

    // A controller fills the aggregated role a moment later.
    for (group, resource, name, verbs) in NEEDED {
        for verb in verbs {
            // For a whole group: a resource that only the wildcard covers.
            let resource = resource.replace('*', "xnodes");
            let wanted = format!("{verb} {resource}.{group}");
            until(TIMEOUT, &wanted, async || {
                may(&account, group, &resource, verb, name).await.then_some(())
            })
            .await;
        }
    }
    for (what, verbs) in REFUSED {
        let (resource, name) = what.split_once(' ').unwrap_or((what, ""));
        let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
        for verb in verbs {
            let name = Some(name).filter(|name| !name.is_empty());
            assert!(!may(&account, group, resource, verb, name).await, "{verb} {what}");
        }
    }

    // Not only by its own access review.
    let secret: Secret = serde_json::from_value(json!({
        "metadata": { "name": "credential" }, "stringData": { "token": "hidden" },
    }))
    .unwrap();
    let secrets = |client: &Client| Api::<Secret>::namespaced(client.clone(), NAMESPACE);
    secrets(&admin).create(&PostParams::default(), &secret).await.unwrap();
    assert_eq!(code(secrets(&account).get("credential").await), 403);
    assert_eq!(code(secrets(&account).list(&ListParams::default()).await), 403);
    assert_eq!(code(Api::<Secret>::all(account).list(&ListParams::default()).await), 403);
}

#[tokio::test]
async fn the_shipped_account_carries_a_project_from_beginning_to_end() {
    const NAME: &str = "the_shipped_account_carries_a_project_from_beginning_to_end";
    let Some(kubernetes) = shared(NAME).await else { return };
    let admin = mk_client(&kubernetes.kubeconfig("admin")).await;
    let account = mk_account(kubernetes, &admin).await;
    apply(&admin, &composite_definition(), &PatchParams::apply(NAME)).await.unwrap();
    let ours = PatchParams::apply("slipway-provisioning-broker");

    // This namespace identifies the cluster.
    let namespaces = Api::<Namespace>::all(account.clone());
    until(TIMEOUT, "kube-system to be read", async || namespaces.get("kube-system").await).await;
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": PROJECT },
    });
    apply(&account, &namespace, &ours).await.unwrap();
    apply(&account, &binding("viewer", "slipway-project-viewer"), &ours).await.unwrap();
    for role in ["view", "edit", "cluster-admin", "slipway-control-plane-base"] {
        // The last one is its own: it may grant the rights that it has itself.
        let expected = if role == "slipway-control-plane-base" { None } else { Some(403) };
        let bound = apply(&account, &binding("somebody", role), &ours).await;
        assert_eq!(bound.err().map(|error| status(&error)), expected, "{role}");
    }

    let composite = json!({
        "apiVersion": "platform.example.org/v1alpha1", "kind": "XNode",
        "metadata": { "name": "pr-1", "namespace": PROJECT, "finalizers": ["slipway.dev/drain"] },
        "spec": { "parameters": { "size": "small" } },
    });
    let applied = until(TIMEOUT, "the composite to be applied", async || {
        apply(&account, &composite, &ours).await
    })
    .await;

    // A user whom it bound sees the project's composites, no Secrets, nothing else.
    for (group, resource, namespace, expected) in [
        ("platform.example.org", "xnodes", PROJECT, true),
        ("", "resourcequotas", PROJECT, true),
        ("hcloud.crossplane.io", "providerconfigs", PROJECT, true),
        ("", "secrets", PROJECT, false),
        ("platform.example.org", "xnodes", "default", false),
    ] {
        let review: SubjectAccessReview = serde_json::from_value(json!({ "spec": {
            "user": "viewer",
            "resourceAttributes": {
                "group": group, "resource": resource, "namespace": namespace, "verb": "list",
            },
        } }))
        .unwrap();
        until(TIMEOUT, &format!("{resource} in {namespace}: {expected}"), async || {
            let reviews = Api::<SubjectAccessReview>::all(admin.clone());
            let answer = reviews.create(&PostParams::default(), &review).await.unwrap();
            answer.status.unwrap().allowed == expected
        })
        .await;
    }

    let composites = api(&account, &composite);
    let precondition = Preconditions { uid: applied.metadata.uid, ..Preconditions::default() };
    let deletion = DeleteParams { preconditions: Some(precondition), ..DeleteParams::default() };
    composites.delete("pr-1", &deletion).await.unwrap();
    let release = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    composites.patch("pr-1", &PatchParams::default(), &release).await.unwrap();
    until(TIMEOUT, "the composite to be gone", async || {
        composites.get_opt("pr-1").await.unwrap().is_none()
    })
    .await;
    namespaces.delete(PROJECT, &DeleteParams::default()).await.unwrap();
}

/// Installs what is shipped and returns a client of its account.
async fn mk_account(kubernetes: &KubeEnvironment, admin: &Client) -> Client {
    // Another test may do the same concurrently; the result is the same.
    let installer = PatchParams::apply("installer").force();
    for document in [
        "deploy/manifests/namespace.yaml",
        "deploy/rbac/control-plane.yaml",
        "deploy/rbac/definitions.yaml",
        "deploy/rbac/groups.example.yaml",
    ]
    .into_iter()
    .flat_map(documents)
    {
        until(TIMEOUT, "what is shipped to be applied", async || {
            apply(admin, &document, &installer).await
        })
        .await;
    }
    let accounts = Api::<ServiceAccount>::namespaced(admin.clone(), NAMESPACE);
    let request: TokenRequest = serde_json::from_value(
        json!({ "spec": { "audiences": [kubernetes.url()], "expirationSeconds": 600 } }),
    )
    .expect("a request");
    let parameters = PostParams::default();
    let answer = accounts.create_token_request("slipway", &parameters, &request).await;
    let token = answer.expect("an answer").status.expect("a token").token;
    mk_client(&kubernetes.kubeconfig_with_token("slipway", &token)).await
}

async fn may(client: &Client, group: &str, resource: &str, verb: &str, name: Option<&str>) -> bool {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let review: SelfSubjectAccessReview = serde_json::from_value(json!({ "spec": {
        "resourceAttributes": {
            "group": group, "resource": resource, "subresource": subresource, "verb": verb,
            "name": name,
        },
    } }))
    .expect("a review");
    let reviews = Api::<SelfSubjectAccessReview>::all(client.clone());
    let answer = reviews.create(&PostParams::default(), &review).await;
    answer.expect("an answer").status.expect("a verdict").allowed
}

fn binding(user: &str, role: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": { "name": format!("{user}-{role}"), "namespace": PROJECT },
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role,
        },
        "subjects": [
            { "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user },
        ],
    })
}

/// The CRD that Crossplane makes from an XRD.
fn composite_definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "xnodes.platform.example.org" },
        "spec": {
            "group": "platform.example.org",
            "scope": "Namespaced",
            "names": { "kind": "XNode", "plural": "xnodes" },
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                } },
            }],
        },
    })
}

fn status(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        error => panic!("not an answer of the API server: {error:?}"),
    }
}

fn code<T: std::fmt::Debug>(answer: kube::Result<T>) -> u16 {
    status(&answer.expect_err("a refusal"))
}
