//! What an API server does with conditional writes. The engine relies on each of
//! these lines, for custom resources and for the kinds that a project shares.

use serde_json::{Value, json};
use slipway_cluster::{
    Access, Connection, DynamicObject, Error, ObjectRef, Reason, Version, api_resource,
};

use crate::support::{Bench, loose};

const MANAGER: &str = "writer";

/// An object of each kind, with a field that the test may change. No quota: a
/// controller writes its status, so that its version moves at any time.
fn objects(bench: &Bench, name: &str) -> Vec<(ObjectRef, Value, Value)> {
    let namespace = Some(bench.namespace.clone());
    let object = |version: &str, kind: &str, plural: &str, namespace: Option<String>| ObjectRef {
        resource: api_resource(version, kind, plural),
        namespace,
        name: name.to_owned(),
    };
    let binding = |user: &str| {
        json!({
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view",
            },
            "subjects": [
                { "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user },
            ],
        })
    };
    let rules = |verb: &str| json!({ "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": [verb] }] });
    let custom = |size: u8| json!({ "spec": { "parameters": { "size": size } } });
    let labelled = |value: &str| json!({ "metadata": { "labels": { "value": value } } });
    let data = |value: &str| json!({ "data": { "key": value } });
    let kind = loose();
    let rbac = "rbac.authorization.k8s.io/v1";
    vec![
        (
            object(&kind.api_version(), &kind.kind, &kind.plural, namespace.clone()),
            custom(1),
            custom(2),
        ),
        (object("v1", "Namespace", "namespaces", None), labelled("a"), labelled("b")),
        (object("v1", "ConfigMap", "configmaps", namespace.clone()), data("a"), data("b")),
        (object(rbac, "RoleBinding", "rolebindings", namespace), binding("a"), binding("b")),
        (object(rbac, "ClusterRole", "clusterroles", None), rules("get"), rules("list")),
    ]
}

fn body(object: &ObjectRef, content: &Value) -> Value {
    let mut body = content.clone();
    body["apiVersion"] = json!(object.resource.api_version);
    body["kind"] = json!(object.resource.kind);
    body["metadata"]["name"] = json!(object.name);
    body
}

fn version(object: &DynamicObject) -> Version {
    Version::of(&object.metadata).unwrap()
}

fn connection(bench: &Bench) -> std::sync::Arc<Connection> {
    Connection::new(Access::Kubeconfig(bench.kubeconfig.clone()), "test")
}

#[track_caller]
fn assert_conflict<T: std::fmt::Debug>(answer: Result<T, Error>, object: &ObjectRef) {
    let error = answer.expect_err(&object.to_string());
    assert_eq!(*error.reason(), Reason::Conflict, "{object}: {error}");
}

#[tokio::test]
async fn a_create_fails_if_anything_is_there_and_is_an_apply() {
    const NAME: &str = "a_create_fails_if_anything_is_there_and_is_an_apply";
    let Some(bench) = Bench::new(NAME).await else { return };
    let connection = connection(&bench);
    for (object, one, other) in objects(&bench, "write-create") {
        let made = connection.create_applied(&object, &body(&object, &one), MANAGER).await.unwrap();
        let managers = made.metadata.managed_fields.clone().unwrap();
        let ours = managers.iter().find(|entry| entry.manager.as_deref() == Some(MANAGER));
        assert_eq!(ours.and_then(|entry| entry.operation.as_deref()), Some("Apply"), "{object}");
        for content in [&one, &other] {
            let body = body(&object, content);
            assert_conflict(connection.create_applied(&object, &body, MANAGER).await, &object);
        }
        let found = connection.get(&object).await.unwrap().unwrap();
        assert_eq!(version(&found), version(&made), "{object}");
        // No conflict with ourselves, which a POST would cause.
        let body = body(&object, &other);
        let updated = connection.update(&object, &version(&made), &body, MANAGER).await.unwrap();
        assert!(updated.taken_over.is_empty(), "{object}");
        connection.delete(&object, &version(&made).uid).await.unwrap();
    }
}

#[tokio::test]
async fn an_update_lands_on_what_was_read_and_on_nothing_else() {
    const NAME: &str = "an_update_lands_on_what_was_read_and_on_nothing_else";
    let Some(bench) = Bench::new(NAME).await else { return };
    let connection = connection(&bench);
    for (object, one, other) in objects(&bench, "write-update") {
        let (one, other) = (body(&object, &one), body(&object, &other));
        let first = connection.create_applied(&object, &one, MANAGER).await.unwrap();
        let read = version(&first);
        let same = connection.update(&object, &read, &one, MANAGER).await.unwrap();
        assert_eq!(version(&same.object), read, "{object}: a write that changes nothing");
        let second = connection.update(&object, &read, &other, MANAGER).await.unwrap().object;
        assert_ne!(version(&second), read, "{object}");
        assert_conflict(connection.update(&object, &read, &one, MANAGER).await, &object);

        // Gone: a uid keeps the update from making it again.
        connection.delete(&object, &read.uid).await.unwrap();
        if object.resource.kind == "Namespace" {
            continue;
        }
        let late = connection.update(&object, &version(&second), &one, MANAGER).await;
        assert_conflict(late, &object);
        assert!(connection.get(&object).await.unwrap().is_none(), "{object}");

        // Made anew.
        let third = connection.create_applied(&object, &one, MANAGER).await.unwrap();
        let late = connection.update(&object, &version(&second), &other, MANAGER).await;
        assert_conflict(late, &object);
        connection.delete(&object, &version(&third).uid).await.unwrap();
    }
}

/// The second request, which takes fields over, has the conditions of the first.
#[tokio::test]
async fn fields_are_taken_over_only_on_what_was_read() {
    const NAME: &str = "fields_are_taken_over_only_on_what_was_read";
    let Some(bench) = Bench::new(NAME).await else { return };
    let connection = connection(&bench);
    for (object, one, other) in objects(&bench, "write-force") {
        if object.resource.kind == "RoleBinding" || object.resource.kind == "ClusterRole" {
            // Their lists are atomic, and an equal value is no conflict.
            continue;
        }
        let (one, other) = (body(&object, &one), body(&object, &other));
        let made = connection.create_applied(&object, &one, "somebody").await.unwrap();
        let updated = connection.update(&object, &version(&made), &other, MANAGER).await.unwrap();
        assert_eq!(updated.taken_over.len(), 1, "{object}: {:?}", updated.taken_over);
        let late = connection.update(&object, &version(&made), &one, "third").await;
        assert!(late.unwrap_err().is_conflict(), "{object}");
        let found = connection.get(&object).await.unwrap().unwrap();
        assert_eq!(version(&found), version(&updated.object), "{object}");
        connection.delete(&object, &version(&made).uid).await.unwrap();
    }
}

#[tokio::test]
async fn a_delete_of_what_was_read_is_fended_off_by_a_change_and_by_nothing_less() {
    const NAME: &str = "a_delete_of_what_was_read_is_fended_off_by_a_change_and_by_nothing_less";
    let Some(bench) = Bench::new(NAME).await else { return };
    let connection = connection(&bench);
    for (object, one, other) in objects(&bench, "write-delete") {
        let (one, other) = (body(&object, &one), body(&object, &other));
        let made = connection.create_applied(&object, &one, MANAGER).await.unwrap();
        let read = version(&made);
        let changed = connection.update(&object, &read, &other, MANAGER).await.unwrap().object;
        assert_conflict(connection.delete_unchanged(&object, &read).await, &object);
        let found = connection.get(&object).await.unwrap().unwrap();
        assert!(found.metadata.deletion_timestamp.is_none(), "{object}");
        let same = connection.update(&object, &version(&changed), &other, MANAGER).await.unwrap();
        assert_eq!(version(&same.object), version(&changed));
        connection.delete_unchanged(&object, &version(&changed)).await.unwrap();
        if object.resource.kind == "Namespace" {
            continue;
        }
        assert!(connection.get(&object).await.unwrap().is_none(), "{object}");
        let anew = connection.create_applied(&object, &one, MANAGER).await.unwrap();
        for late in [&read, &version(&changed)] {
            assert_conflict(connection.delete_unchanged(&object, late).await, &object);
            assert_conflict(connection.delete(&object, &late.uid).await, &object);
        }
        connection.delete(&object, &version(&anew).uid).await.unwrap();
    }
}
