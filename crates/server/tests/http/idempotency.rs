//! `Idempotency-Key`: the same request is one create and one answer.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_app::access::port::{AccessIntercept, AnsweredEntry};
use slipway_app::ports::kind::KindIntercept;
use slipway_app::ports::store::Error;
use slipway_app::ports::{AccessStore, Stores};
use slipway_core::access::idempotency;
use sqlx::Connection as _;

use crate::world::{Answer, KEY, World};

async fn send(world: &World, path: &str, key: &str, body: &Value) -> Answer {
    world.ask_with("POST", path, ("idempotency-key", key), &body.to_string()).await
}

/// A valid body for each create.
fn creates() -> Vec<(&'static str, Value)> {
    let version = json!({
        "version": "v2", "injection_strategy": "cloud-init-user-data",
        "provider_kinds": ["local"],
    });
    let blueprint = json!({ "slug": "x", "display_name": "X", "engine": "local" });
    vec![
        ("/api/v1/projects", json!({ "name": "x" })),
        ("/api/v1/clouds", json!({ "name": "x", "provider": "p" })),
        ("/api/v1/credentials", json!({ "cloud": "local", "name": "x" })),
        ("/api/v1/blueprints", blueprint),
        ("/api/v1/blueprints/local-node/versions", version),
        ("/api/v1/labels", json!({ "key": "x" })),
        ("/api/v1/clusters", json!({ "name": "x", "engine": "local" })),
        ("/api/v1/resources", json!({ "handle": "x", "blueprint": "local-node", "version": "v1" })),
    ]
}

#[tokio::test]
async fn every_create_happens_once_and_is_answered_alike() {
    let world = World::new().await;
    for (path, body) in creates() {
        let key = format!("key of {path}");
        let first = send(&world, path, &key, &body).await;
        assert!(first.status.is_success(), "{path}: {first:?}");
        let again = send(&world, path, &key, &body).await;
        assert_eq!((again.status, &again.text), (first.status, &first.text), "{path}");
        for header in ["location", "etag", "content-type"] {
            assert_eq!(again.header(header), first.header(header), "{path} {header}");
        }
        // Another body under the same key, valid or not.
        let mut renamed = body.clone();
        let name = ["name", "slug", "version", "key", "handle"]
            .into_iter()
            .find(|name| renamed.get(*name).is_some())
            .unwrap();
        renamed[name] = json!("y");
        let reused = send(&world, path, &key, &renamed).await;
        let field = reused.refused(409, "idempotency_key_reused");
        assert_eq!(field.as_deref(), Some("idempotency-key"), "{path}");
    }
}

#[tokio::test]
async fn a_key_is_bound_to_its_route_and_a_refusal_binds_nothing() {
    let world = World::new().await;
    let bad = json!({ "name": "UP" });
    send(&world, "/api/v1/projects", "k", &bad).await.refused(400, "invalid_input");
    let taken = json!({ "name": "default" });
    send(&world, "/api/v1/projects", "k", &taken).await.refused(409, "name_taken");
    let good = json!({ "name": "team-a" });
    assert_eq!(send(&world, "/api/v1/projects", "k", &good).await.status.as_u16(), 201);
    let elsewhere = json!({ "name": "team-a", "provider": "p" });
    let reused = send(&world, "/api/v1/clouds", "k", &elsewhere).await;
    reused.refused(409, "idempotency_key_reused");
    // Under another key the real conflict shows: the name is taken.
    send(&world, "/api/v1/projects", "k2", &good).await.refused(409, "name_taken");
    let odd = send(&world, "/api/v1/projects", &"x".repeat(256), &good).await;
    assert_eq!(odd.refused(400, "invalid_input").as_deref(), Some("idempotency-key"));
}

/// The first answer is stored: later changes of the object do not change it.
#[tokio::test]
async fn the_first_answer_is_given_again_after_the_thing_changed() {
    let world = World::new().await;
    let body = json!({ "name": "team-a" });
    let first = send(&world, "/api/v1/projects", "k", &body).await;
    world.ask_with("PATCH", "/api/v1/projects/team-a", ("x", "y"), r#"{"labels":{"a":"b"}}"#).await;
    let again = send(&world, "/api/v1/projects", "k", &body).await;
    assert_eq!(again.text, first.text);
    world.ask_with("DELETE", "/api/v1/projects/team-a", ("x", "y"), "").await;
    let again = send(&world, "/api/v1/projects", "k", &body).await;
    assert_eq!((again.status.as_u16(), &again.text), (201, &first.text));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_at_once_one_creates_and_all_get_its_answer() {
    let world = World::new().await;
    for (path, body) in creates() {
        let key = format!("key of {path}");
        let asked = (0..6).map(|_| send(&world, path, &key, &body));
        same_answers(&futures::future::join_all(asked).await, path);
    }
}

/// Also if what was created changes while the answers are made.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_at_once_all_get_the_answer_that_was_stored_first() {
    let world = World::new().await;
    for round in 0..60 {
        let name = format!("x-{round}");
        let path = format!("/api/v1/labels/{name}");
        let body = json!({ "key": name });
        let asked = (0..6).map(|_| send(&world, "/api/v1/labels", &name, &body));
        let change = async {
            for number in 0..6 {
                let body = json!({ "description": format!("change {number}") }).to_string();
                // 404 until it is created.
                world.ask("PATCH", &path, KEY, &body).await;
            }
        };
        let (answers, ()) = tokio::join!(futures::future::join_all(asked), change);
        same_answers(&answers, &path);
    }
}

/// Between its create and its answer another request with the same key is answered
/// first, and what both created is maybe deleted.
#[derive(Debug)]
struct Overtaken {
    inner: Stores,
    file: PathBuf,
    deleted: bool,
}

impl Overtaken {
    fn first() -> idempotency::Answer {
        idempotency::Answer {
            status: 202,
            location: Some("/first".to_owned()),
            etag: Some("\"7\"".to_owned()),
            body: r#"{"answer":"first"}"#.to_owned(),
        }
    }
}

impl KindIntercept for Overtaken {
    fn inner(&self) -> &Stores {
        &self.inner
    }
}

#[async_trait]
impl AccessIntercept for Overtaken {
    fn inner(&self) -> &dyn AccessStore {
        &*self.inner.access
    }

    async fn idempotency_find(
        &self,
        caller: &str,
        key: &str,
    ) -> Result<Option<AnsweredEntry>, Error> {
        let found = self.inner.access.idempotency_find(caller, key).await?;
        if let Some(AnsweredEntry { record, answer: None }) = &found {
            self.inner.access.idempotency_answer(record.id, &Self::first()).await?;
            if self.deleted {
                let url = format!("sqlite:{}", self.file.display());
                let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
                let delete = sqlx::query("DELETE FROM label_definitions");
                delete.execute(&mut connection).await.unwrap();
            }
        }
        Ok(found)
    }
}

#[tokio::test]
async fn a_request_that_was_overtaken_sends_the_first_answer() {
    for deleted in [false, true] {
        let world = World::new().await;
        let file = world.file.clone();
        let world = world.intercepted(|stores| Stores {
            access: Arc::new(Overtaken { inner: stores.clone(), file, deleted }),
            ..stores
        });
        let answer = send(&world, "/api/v1/labels", "k", &json!({ "key": "x" })).await;
        let first = Overtaken::first();
        assert_eq!((answer.status.as_u16(), &answer.text), (first.status, &first.body));
        assert_eq!((answer.header("location"), answer.header("etag")), ("/first", "\"7\""));
    }
}

fn same_answers(answers: &[Answer], path: &str) {
    for answer in answers {
        assert!(answer.status.is_success(), "{path}: {answer:?}");
        assert_eq!((answer.status, &answer.text), (answers[0].status, &answers[0].text), "{path}");
        for header in ["location", "etag", "content-type"] {
            assert_eq!(answer.header(header), answers[0].header(header), "{path} {header}");
        }
    }
}
