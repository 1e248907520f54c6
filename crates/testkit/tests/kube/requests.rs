//! What the API server permits each user, and its audit records.

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::json;
use slipway_testkit::kube::{KubeEnvironment, Options, User, shared};
use slipway_testkit::wait::until;

use crate::{TIMEOUT, apply, mk_client, value_of};

fn code(error: kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        error => panic!("not an answer of the API server: {error:?}"),
    }
}

#[tokio::test]
async fn server_side_apply_works_and_the_audit_log_shows_it() {
    const NAME: &str = "server_side_apply_works_and_the_audit_log_shows_it";
    let Some(kubernetes) = shared(NAME).await else { return };
    let client = mk_client(&kubernetes.kubeconfig("admin")).await;
    apply(&client, "one", "applied", "1").await.unwrap();
    // The other manager owns the field now.
    assert_eq!(code(apply(&client, "two", "applied", "2").await.unwrap_err()), 409);
    assert_eq!(value_of(&client, "applied").await.unwrap().as_deref(), Some("1"));

    let patches = until(TIMEOUT, "both patches in the audit log", async || {
        let records = kubernetes.audit().map_err(|error| error.to_string())?;
        let about_it = |name: &str| name == "applied";
        let patches: Vec<_> = records
            .iter()
            .filter(|record| record.verb == "patch" && record.is_about("configmaps"))
            .filter(|record| record.object.as_ref().is_some_and(|found| about_it(&found.name)))
            .cloned()
            .collect();
        if patches.len() == 2 { Ok(patches) } else { Err(format!("{patches:?}")) }
    })
    .await;
    let codes: Vec<_> = patches.iter().map(|record| record.code).collect();
    assert_eq!(codes, [Some(201), Some(409)]);
    assert!(patches.iter().all(|record| record.user == "admin"), "{patches:?}");
    assert!(patches[0].uri.contains("fieldManager=one"), "{patches:?}");
    assert!(patches[0].received <= patches[0].reached, "{patches:?}");
    assert!(patches[0].reached <= patches[1].received, "{patches:?}");
}

#[tokio::test]
async fn who_has_no_rights_is_refused_and_a_role_gives_them() {
    const NAME: &str = "who_has_no_rights_is_refused_and_a_role_gives_them";
    let users = vec![User::named("reader").in_group("readers"), User::named("nobody")];
    // `view` is an aggregated role, which a controller fills.
    let options = Options { users, controller_manager: true, ..Options::default() };
    let Some(kubernetes) = KubeEnvironment::for_test(NAME, options).await else { return };
    let admin = mk_client(&kubernetes.kubeconfig("admin")).await;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": { "name": "readers" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "readers" }],
    });
    Api::all(admin).create(&PostParams::default(), &binding_of(binding)).await.unwrap();

    let reader = mk_client(&kubernetes.kubeconfig("reader")).await;
    let list = |client| async move {
        Api::<ConfigMap>::namespaced(client, "default").list(&ListParams::default()).await
    };
    // The authorizer sees a binding a moment after it was written.
    until(TIMEOUT, "the reader to read", async || list(reader.clone()).await).await;
    assert_eq!(code(apply(&reader, "reader", "x", "1").await.unwrap_err()), 403);
    let nobody = mk_client(&kubernetes.kubeconfig("nobody")).await;
    assert_eq!(code(list(nobody).await.unwrap_err()), 403);

    // A file works like the text, and a new token invalidates it.
    let file = kubernetes.kubeconfig_file("reader").unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text, kubernetes.kubeconfig("reader"));
    kubernetes.rotate_token("reader").await.unwrap();
    let outdated = mk_client(&text).await;
    assert_eq!(code(list(outdated).await.unwrap_err()), 401);
    let reader = mk_client(&kubernetes.kubeconfig("reader")).await;
    until(TIMEOUT, "the reader to read again", async || list(reader.clone()).await).await;
}

fn binding_of(value: serde_json::Value) -> k8s_openapi::api::rbac::v1::ClusterRoleBinding {
    serde_json::from_value(value).expect("a binding")
}

#[tokio::test]
async fn namespaces_go_and_service_accounts_get_tokens() {
    const NAME: &str = "namespaces_go_and_service_accounts_get_tokens";
    let Some(kubernetes) = shared(NAME).await else { return };
    let client = mk_client(&kubernetes.kubeconfig("admin")).await;
    let namespaces = Api::<Namespace>::all(client.clone());
    let namespace: Namespace =
        serde_json::from_value(json!({ "metadata": { "name": "short-lived" } })).unwrap();
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), "short-lived");
    until(TIMEOUT, "the account that a controller makes", async || accounts.get("default").await)
        .await;

    let request: TokenRequest = serde_json::from_value(
        json!({ "spec": { "audiences": [kubernetes.url()], "expirationSeconds": 600 } }),
    )
    .unwrap();
    let answer =
        accounts.create_token_request("default", &PostParams::default(), &request).await.unwrap();
    let token = answer.status.unwrap().token;
    let account = mk_client(&kubernetes.kubeconfig_with_token("account", &token)).await;
    // Known, and without rights: 403 and not 401.
    assert_eq!(code(value_of(&account, "any").await.unwrap_err()), 403);

    namespaces.delete("short-lived", &DeleteParams::default()).await.unwrap();
    until(TIMEOUT, "the end of the namespace", async || {
        match namespaces.get_opt("short-lived").await {
            Ok(None) => Ok(()),
            other => Err(format!("{:?}", other.map(|found| found.map(|found| found.status)))),
        }
    })
    .await;
}
