//! Plans of deletions.

use serde_json::{Value, json};
use slipway_core::access::role::Role;

use crate::world::{Answer, KEY, World};

const PLANS: &str = "/api/v1/deletion-plans";

impl World {
    async fn plan(&self, kind: &str, reference: &str, cascade: bool) -> Value {
        let body = json!({ "kind": kind, "reference": reference, "cascade": cascade });
        self.create(PLANS, &body).await
    }

    async fn delete_by(&self, path: &str, plan: &Value) -> Answer {
        let mark = if path.contains('?') { '&' } else { '?' };
        let path = format!("/api/v1/{path}{mark}plan={}", plan["id"].as_str().unwrap());
        self.ask("DELETE", &path, KEY, "").await
    }
}

#[tokio::test]
async fn every_kind_that_can_be_deleted_can_be_planned_first() {
    let world = World::new().await;
    world.declare("web").await;
    world.create("/api/v1/labels", &json!({ "key": "team", "description": "whose" })).await;
    let cloud = json!({ "name": "berlin", "provider": "hetzner" });
    world.create("/api/v1/clouds", &cloud).await;
    for (kind, name, code) in [
        ("project", "default", Some("project_not_empty")),
        ("resource", "web", None),
        ("cluster", "local", Some("cluster_in_use")),
        ("blueprint", "local-node", Some("blueprint_in_use")),
        ("cloud", "local", Some("cloud_in_use")),
        ("cloud", "berlin", None),
        ("credential", "local", Some("credential_in_use")),
        ("label", "team", None),
    ] {
        let plan = world.plan(kind, name, false).await;
        assert_eq!((&plan["kind"], &plan["target"]), (&kind.into(), &name.into()), "{plan}");
        assert_eq!(plan["refusals"][0]["code"].as_str(), code, "{plan}");
        let path = format!("{PLANS}/{}", plan["id"].as_str().unwrap());
        assert_eq!(world.get(&path).await.json(), plan);
        let segment = plan["target_id"].as_str().unwrap();
        let answer = world.delete_by(&format!("{kind}s/{segment}"), &plan).await;
        match code {
            Some(code) => {
                answer.refused(409, code);
                let message = &answer.json()["message"];
                assert_eq!(&plan["refusals"][0]["message"], message, "the words of the deletion");
            }
            None => {
                assert!(answer.status.is_success(), "{kind}: {answer:?}");
                let used = world.get(&path).await.json();
                assert_eq!(used["used_by"], answer.json()["id"], "{used}");
            }
        }
    }
}

#[tokio::test]
async fn a_deletion_is_held_to_its_plan() {
    let world = World::new().await;
    world.project("shop").await;
    let web = world.declare_in("shop", "web-1").await;
    let path = "projects/shop?cascade=true";
    let plan = world.plan("project", "shop", true).await;
    assert_eq!(plan["resources"], 1, "{plan}");
    assert_eq!(plan["steps"][1]["names"], json!(["web-1"]), "{plan}");

    world.declare_in("shop", "web-2").await;
    let stale = world.delete_by(path, &plan).await;
    stale.refused(409, "plan_stale");
    let details = &stale.json()["details"];
    assert_eq!(details["added"][0]["name"], "web-2", "{details}");
    assert!(stale.text.contains("1 added (resource web-2)"), "{stale:?}");
    assert!(stale.text.contains("slipway plan delete project shop --cascade"), "{stale:?}");

    let alone = world.delete_by("projects/shop", &plan).await;
    assert_eq!(alone.refused(422, "plan_mismatch").as_deref(), Some("cascade"));
    let other = world.delete_by(&format!("resources/{web}"), &plan).await;
    assert_eq!(other.refused(422, "plan_mismatch").as_deref(), Some("plan"));
    let missing = world.delete_by(path, &json!({ "id": web })).await;
    assert_eq!(missing.refused(404, "plan_not_found").as_deref(), Some("plan"));
    let odd = world.delete_by(path, &json!({ "id": "latest" })).await;
    assert_eq!(odd.refused(400, "invalid_input").as_deref(), Some("plan"));

    let plan = world.plan("project", "shop", true).await;
    let deleted = world.delete_by(path, &plan).await;
    assert_eq!(deleted.status, 200, "{deleted:?}");
    let again = world.delete_by(path, &plan).await;
    assert_eq!(again.json()["id"], deleted.json()["id"], "used again, it is the same deletion");
    let audit = world.get("/api/v1/audit?verb=project.delete").await.json();
    assert_eq!(audit[0]["details"]["plan_id"], plan["id"], "{audit}");
}

#[tokio::test]
async fn a_plan_says_what_is_wrong_with_its_request() {
    let world = World::new().await;
    let plan = async |body: Value| world.post(PLANS, &body.to_string()).await;
    let odd = plan(json!({ "kind": "node", "reference": "x" })).await;
    assert_eq!(odd.refused(400, "invalid_input").as_deref(), Some("kind"));
    let near = plan(json!({ "kind": "projekt", "reference": "x" })).await;
    assert!(near.text.contains("project"), "{near:?}");
    plan(json!({ "kind": "project", "reference": "nobody" }))
        .await
        .refused(404, "project_not_found");
    let unknown = plan(json!({ "kind": "project", "reference": "default", "force": true })).await;
    unknown.refused(400, "invalid_input");
    world
        .get(&format!("{PLANS}/0192f0c1-2b3c-7d4e-8f50-123456789abc"))
        .await
        .refused(404, "plan_not_found");
    world.get(&format!("{PLANS}/latest")).await.refused(400, "invalid_input");
}

/// A key that is bound to a project neither reads nor uses the plans of others, and a key
/// that may not delete does not plan.
#[tokio::test]
async fn plans_stay_within_reach() {
    let world = World::new().await;
    world.project("own").await;
    world.declare_in("own", "web-1").await;
    let other = world.declare("web-2").await;
    let foreign = world.plan("resource", &other, false).await;
    let (_, key) = world.key("bound", Role::Operator, Some("own")).await;
    let (_, viewer) = world.key("viewer", Role::Viewer, None).await;
    let plan = async |key: &str, kind: &str, reference: &str| {
        let body = json!({ "kind": kind, "reference": reference });
        world.ask("POST", PLANS, key, &body.to_string()).await
    };
    let made = plan(&key, "resource", "web-1").await;
    assert_eq!(made.status, 201, "{made:?}");
    plan(&key, "resource", "web-2").await.refused(404, "resource_not_found");
    plan(&key, "project", "own").await.refused(403, "forbidden");
    plan(&viewer, "resource", "web-2").await.refused(403, "forbidden");
    let path = format!("{PLANS}/{}", foreign["id"].as_str().unwrap());
    world.ask("GET", &path, &key, "").await.refused(404, "plan_not_found");
    assert_eq!(world.ask("GET", &path, &viewer, "").await.status, 200);
    let own = made.json()["target_id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/resources/{own}?plan={}", foreign["id"].as_str().unwrap());
    let refused = world.ask("DELETE", &path, &key, "").await;
    refused.refused(404, "plan_not_found");
    assert!(!refused.text.contains("web-2"), "{refused:?}");
}

/// A plan that its own maker approves is none that two people looked at.
#[tokio::test]
async fn a_plan_is_approved_by_a_second_person() {
    let world = World::new().await;
    world.declare("a").await;
    let key = async |name: &str, owner: &str| {
        let body = json!({ "name": name, "role": "operator", "owner": owner }).to_string();
        world.post("/api/v1/keys", &body).await.json()["key"].as_str().unwrap().to_owned()
    };
    let (ada, laptop) = (key("ada", "Ada").await, key("ada-laptop", "ada").await);
    let (bob, unowned) = (key("bob", "bob").await, key("ci", "admin").await);
    let body = r#"{"kind":"resource","reference":"a"}"#;
    let plan = world.ask("POST", "/api/v1/deletion-plans", &ada, body).await.json();
    let path = format!("/api/v1/deletion-plans/{}/approve", plan["id"].as_str().unwrap());
    let why = r#"{"reason":"checked"}"#;
    for same in [&ada, &laptop] {
        world.ask("POST", &path, same, why).await.refused(409, "same_person");
    }
    // The admin made Ada's key, and has read it.
    world.ask("POST", &path, KEY, why).await.refused(409, "same_person");
    let unsaid = world.ask("POST", &path, &bob, r#"{"reason":" "}"#).await;
    assert_eq!(unsaid.refused(400, "invalid_input").as_deref(), Some("reason"));
    let approved = world.ask("POST", &path, &bob, why).await.json();
    assert_eq!(approved["approved_by"], "bob");
    assert!(approved["approved_until"].is_string(), "{approved}");
    let again = world.ask("POST", &path, &unowned, why).await.json();
    assert_eq!(again["approved_by"], "bob", "once is enough");
}
