//! Orphaning on purpose, and the report of a deletion.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_app::ports::Substrate;
use slipway_app::ports::substrate::{Address, Error};
use slipway_core::broker::holding::{Holder, Keepable, OutsideObject};
use slipway_core::broker::observation::CompositeReport;
use slipway_core::catalog::blueprint_version::Engine;
use slipway_render::RenderedComposite;
use sqlx::Connection as _;

use crate::world::{KEY, World};

/// An engine on whose cluster one managed resource holds every deletion.
#[derive(Debug)]
struct Stuck;

#[async_trait]
impl Substrate for Stuck {
    fn engine(&self) -> Engine {
        Engine::Local
    }

    async fn identity(&self) -> Result<String, Error> {
        Ok("root-1".to_owned())
    }

    async fn observe(&self, addresses: &[Address]) -> Vec<CompositeReport> {
        let unknown = || CompositeReport::Unknown { reason: "not asked".to_owned() };
        addresses.iter().map(|_| unknown()).collect()
    }

    async fn apply(&self, _: &RenderedComposite) -> Result<CompositeReport, Error> {
        Err(Error::Failed("not here".to_owned()))
    }

    async fn delete(&self, _: &Address, _: &str) -> Result<(), Error> {
        Err(Error::Failed("not here".to_owned()))
    }

    async fn holders(&self, address: &Address) -> Result<Vec<Holder>, Error> {
        Ok(vec![Holder {
            object: OutsideObject {
                api_version: "hcloud.crossplane.io/v1".to_owned(),
                kind: "Server".to_owned(),
                plural: "servers".to_owned(),
                namespace: None,
                name: address.name.clone(),
                uid: "u-1".to_owned(),
            },
            owners: "XServer → Server".to_owned(),
            terminating: true,
            finalizers: vec!["finalizer.managedresource.crossplane.io".to_owned()],
            external_name: Some("42".to_owned()),
            provider_config: None,
            error: None,
            keepable: Keepable::Yes,
        }])
    }
}

/// A resource whose teardown is held past its deadline, and its path.
async fn overdue() -> (World, String) {
    let world = World::new().await.serving(Arc::new(Stuck)).await;
    let resource = world.declare("web-1").await;
    let path = format!("/api/v1/resources/{resource}");
    let answer = world.ask("DELETE", &path, KEY, "").await;
    assert!(answer.status.is_success(), "{answer:?}");
    world.set_phase(&resource, "Deprovisioning").await;
    let url = format!("sqlite:{}", world.file.display());
    let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
    sqlx::query("UPDATE provisioned_resources SET deletion_requested_at = 1")
        .execute(&mut connection)
        .await
        .unwrap();
    (world, path)
}

/// The row of the table whose verb it proves.
pub(crate) async fn a_row_that_is_audited() -> (&'static str, &'static str) {
    let (world, path) = overdue().await;
    let answer = world.ask("POST", &format!("{path}/orphan"), KEY, r#"{"reason":"x"}"#).await;
    assert_eq!(answer.status.as_u16(), 202, "{answer:?}");
    let found = world.get("/api/v1/audit?limit=1&verb=resource.orphan").await.json();
    assert_eq!(found[0]["actor"], "key:admin", "{found}");
    assert_eq!(found[0]["details"]["objects"][0]["external_name"], "42", "{found}");
    ("POST", "/resources/{id}/orphan")
}

#[tokio::test]
async fn a_dry_run_writes_nothing_and_the_request_once() {
    let (world, path) = overdue().await;
    let path = format!("{path}/orphan");
    let dry = world.ask("POST", &path, KEY, r#"{"reason":"x","dry_run":true}"#).await;
    assert_eq!(dry.status.as_u16(), 200, "{dry:?}");
    assert_eq!(dry.json()["kept"][0]["find"], "hcloud server describe 42", "{dry:?}");
    assert_eq!(dry.json()["kept"][0].get("leak_id"), None, "{dry:?}");
    assert_eq!(world.get("/api/v1/leaks").await.json(), json!([]));
    for _ in 0..2 {
        let answer = world.ask("POST", &path, KEY, r#"{"reason":"x"}"#).await;
        assert_eq!(answer.status.as_u16(), 202, "{answer:?}");
        assert!(answer.json()["kept"][0]["leak_id"].is_string(), "{answer:?}");
    }
    let leaks = world.get("/api/v1/leaks?kind=orphaned_external").await.json();
    assert_eq!(leaks.as_array().unwrap().len(), 1, "{leaks}");
    assert!(leaks[0]["remedy"].as_str().unwrap().contains("kept on purpose"), "{leaks}");
    for (body, field) in [(r#"{"reason":""}"#, "reason"), ("{}", "reason")] {
        let refused = world.ask("POST", &path, KEY, body).await;
        assert_eq!(refused.status.as_u16() / 100, 4, "{field}: {refused:?}");
    }
    let unknown = world.ask("POST", "/api/v1/resources/nobody/orphan", KEY, r#"{"reason":"x"}"#);
    unknown.await.refused(404, "resource_not_found");
}

#[tokio::test]
async fn the_report_says_what_is_not_proven_yet() {
    let (world, path) = overdue().await;
    let deletion = world.get(&path).await.json()["deletion_id"].as_str().unwrap().to_owned();
    let report = world.get(&format!("/api/v1/deletions/{deletion}/report")).await;
    assert_eq!(report.header("content-type"), "application/x-ndjson");
    let lines: Vec<Value> =
        report.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [first, attempt, end] = &lines[..] else { panic!("{report:?}") };
    assert_eq!((&first["line"], &first["target"]), (&json!("deletion"), &json!("web-1")));
    assert_eq!((&attempt["kind"], &attempt["proof"]), (&json!("attempt"), &json!("not_yet")));
    assert_eq!(attempt["how"], "it is Deprovisioning", "{attempt}");
    assert_eq!(
        (&end["line"], &end["not_yet"], &end["lines"]),
        (&json!("end"), &json!(1), &json!(2))
    );
    let unknown = "/api/v1/deletions/0192f0c1-2b3c-7d4e-8f50-123456789abc/report";
    world.get(unknown).await.refused(404, "deletion_not_found");
}
