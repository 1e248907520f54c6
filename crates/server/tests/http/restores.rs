//! Deletions are listed by filters, and what they took comes back.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_app::access::authorise::Role;
use slipway_app::operations::port::OperationsIntercept;
use slipway_app::ports::store::Error;
use slipway_app::ports::{OperationsStore, Stores};

use crate::world::{Answer, KEY, World};

async fn restore(world: &World, deletion: &Value, key: &str, body: &Value) -> Answer {
    let path = format!("/api/v1/deletions/{}/restore", deletion["id"].as_str().unwrap());
    world.ask("POST", &path, key, &body.to_string()).await
}

async fn delete(world: &World, path: &str) -> Value {
    let answer = world.ask("DELETE", &format!("/api/v1/{path}"), KEY, "").await;
    assert!(answer.status.is_success(), "{path}: {answer:?}");
    answer.json()
}

#[tokio::test]
async fn what_was_deleted_comes_back_for_who_may_delete_it() {
    let world = World::new().await;
    world.project("shop").await;
    let (_, operator) = world.key("operator", Role::Operator, None).await;
    let (_, viewer) = world.key("viewer", Role::Viewer, None).await;
    let deleted = delete(&world, "projects/shop").await;
    for key in [&operator, &viewer] {
        restore(&world, &deleted, key, &json!({})).await.refused(403, "forbidden");
    }
    let unknown = restore(&world, &deleted, KEY, &json!({ "rename": "a b" })).await;
    assert_eq!(unknown.refused(400, "invalid_input").as_deref(), Some("rename"));

    let planned = restore(&world, &deleted, KEY, &json!({ "dry_run": true })).await.json();
    assert_eq!(
        (&planned["dry_run"], &planned["deletion"]["state"]),
        (&json!(true), &json!("done"))
    );
    assert_eq!(planned["restored"][0]["name"], "shop", "{planned}");
    assert_eq!(world.get("/api/v1/projects/shop").await.status.as_u16(), 404, "nothing happened");

    world.create("/api/v1/projects", &json!({ "name": "shop" })).await;
    let refused = restore(&world, &deleted, KEY, &json!({ "redeclare": true })).await;
    refused.refused(409, "restore_conflict");
    assert_eq!(refused.json()["details"]["conflicts"][0]["code"], "name_taken", "{refused:?}");
    assert!(refused.json()["message"].as_str().unwrap().contains("--rename"), "{refused:?}");
    let planned = restore(&world, &deleted, KEY, &json!({ "dry_run": true })).await.json();
    assert_eq!(planned["conflict_count"], 1, "{planned}");

    let body = json!({ "rename": "shop-2", "reason": "it was the wrong one" });
    let restored = restore(&world, &deleted, KEY, &body).await.json();
    assert_eq!(restored["deletion"]["state"], "restored", "{restored}");
    assert_eq!(world.get("/api/v1/projects/shop-2").await.json()["id"], deleted["target_id"]);
    let again = restore(&world, &deleted, KEY, &body).await.json();
    assert_eq!(
        (&again["restored_count"], &again["deletion"]["state"]),
        (&json!(0), &json!("restored"))
    );
    let audit = world.get("/api/v1/audit?verb=deletion.restore").await.json();
    assert_eq!(audit.as_array().unwrap().len(), 1, "{audit}");
    assert_eq!(audit[0]["reason"], "it was the wrong one");
}

/// A key of one project restores its resources, and sees only its deletions.
#[tokio::test]
async fn a_bound_key_restores_what_is_its_own() {
    let world = World::new().await;
    let (_, _) = (world.project("own").await, world.project("foreign").await);
    let mut deletions = Vec::new();
    for project in ["own", "foreign"] {
        let id = world.declare_in(project, "a").await;
        deletions.push(delete(&world, &format!("resources/{id}")).await);
    }
    let (_, key) = world.key("bound", Role::Operator, Some("own")).await;
    restore(&world, &deletions[1], &key, &json!({})).await.refused(404, "deletion_not_found");
    let refused = restore(&world, &deletions[0], &key, &json!({})).await;
    refused.refused(409, "not_restorable");
    assert!(refused.json()["message"].as_str().unwrap().contains("wait until"), "{refused:?}");
    let listed = world.ask("GET", "/api/v1/deletions?project=foreign", &key, "").await.json();
    assert_eq!(listed, json!([]));
}

#[tokio::test]
async fn deletions_are_listed_by_what_they_are_of() {
    let world = World::new().await;
    world.project("shop").await;
    let cloud = json!({ "name": "berlin", "provider": "p" });
    world.create("/api/v1/clouds", &cloud).await;
    let project = delete(&world, "projects/shop?reason=closed").await;
    let cloud = delete(&world, "clouds/berlin?grace=1h").await;
    let one = async |query: &str| {
        let listed = world.get(&format!("/api/v1/deletions?{query}")).await.json();
        assert_eq!(listed.as_array().unwrap().len(), 1, "{query}: {listed}");
        listed[0]["id"].clone()
    };
    for query in ["kind=project", "state=done", "name=shop", "project=shop", "restorable=true"] {
        assert_eq!(one(query).await, project["id"], "{query}");
    }
    for query in
        ["kind=cloud", "state=scheduled", "name=berlin", "requested_by=key:admin&kind=cloud"]
    {
        assert_eq!(one(query).await, cloud["id"], "{query}");
    }
    let listed = world.get("/api/v1/deletions?name=shop").await.json();
    assert_eq!(listed[0]["project"], "shop");
    for (query, field) in
        [("state=gone", "state"), ("kind=ship", "kind"), ("restorable=1", "restorable")]
    {
        let refused = world.get(&format!("/api/v1/deletions?{query}")).await;
        assert_eq!(refused.refused(400, "invalid_input").as_deref(), Some(field), "{query}");
    }
    let status = world.get("/api/v1/status").await.json();
    assert_eq!(status["scheduled_deletions"], 1, "{status}");
    assert_eq!(status["next_deletion"]["name"], "berlin", "{status}");
}

/// A store in which no task can be woken.
#[derive(Debug)]
struct Deaf(Arc<dyn OperationsStore>);

#[async_trait]
impl OperationsIntercept for Deaf {
    fn inner(&self) -> &dyn OperationsStore {
        &*self.0
    }

    async fn task_wake(&self, _name: &str) -> Result<(), Error> {
        Err(Error::Unavailable("the database went away".to_owned()))
    }
}

/// It is committed, and the loop finds it by itself.
#[tokio::test]
async fn a_deletion_is_answered_even_if_nobody_could_be_woken() {
    let world = World::new().await;
    let deaf = |stores: Stores| Stores {
        operations: Arc::new(Deaf(Arc::clone(&stores.operations))),
        ..stores
    };
    let world = world.intercepted(deaf);
    world.project("shop").await;
    let scheduled = delete(&world, "projects/shop?grace=1h").await;
    let cancel = format!("/api/v1/deletions/{}/cancel", scheduled["id"].as_str().unwrap());
    assert_eq!(world.post(&cancel, "{}").await.json()["state"], "cancelled");
    let deleted = delete(&world, "projects/shop").await;
    let restored = restore(&world, &deleted, KEY, &json!({})).await.json();
    assert_eq!(restored["deletion"]["state"], "restored", "{restored}");
}
