//! Workspaces and servers over HTTP: the doors, their refusals, and the form of the page. The
//! rules are tested in core and on the stores; here servers are only declared.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use slipway_app::ports::Substrate;
use slipway_app::ports::substrate::{Address, Error, InventoryPage, InventoryRequest};
use slipway_app::topology::run::Runner;
use slipway_core::broker::observation::CompositeReport;
use slipway_core::catalog::blueprint_version::Engine;
use slipway_render::RenderedComposite;

use crate::world::{KEY, World};

/// A provider on which nothing is.
#[derive(Debug)]
struct Nothing;

#[async_trait]
impl Substrate for Nothing {
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

    async fn inventory(&self, _: &InventoryRequest) -> Result<InventoryPage, Error> {
        Ok(InventoryPage::default())
    }
}

fn group(name: &str, role: &str, count: u32, (min, max): (u32, u32)) -> Value {
    json!({
        "name": name, "role": role, "count": count, "blueprint": "local-node",
        "scale": {
            "min": min, "max": max, "template": { "hostname_pattern": format!("{name}-{{n}}") },
        },
    })
}

/// Applies a workspace and declares its servers, which stay Pending.
pub(crate) async fn apply(world: &World, project: &str, name: &str, groups: &[Value]) -> Value {
    world.listed_by(Arc::new(Nothing)).await;
    let document = json!({
        "apiVersion": "slipway.dev/v1", "kind": "Workspace",
        "metadata": { "name": name, "project": project }, "spec": { "groups": groups },
    });
    let body = json!({ "source": "shop", "documents": [{ "document": document }] });
    let answer = world.ask("POST", "/api/v1/apply", KEY, &body.to_string()).await.json();
    let runner = Runner::new(world.context.clone(), Arc::default());
    runner.pass().await.unwrap();
    answer[0].clone()
}

/// A workspace with workers and a control plane.
pub(crate) async fn cluster(world: &World, project: &str, name: &str) {
    let groups = [
        group(&format!("{name}-w"), "Worker", 4, (0, 6)),
        group(&format!("{name}-cp"), "ControlPlane", 1, (1, 3)),
    ];
    let applied = apply(world, project, name, &groups).await;
    assert_eq!(applied["outcome"], "created", "{applied}");
}

#[tokio::test]
async fn a_workspace_is_applied_shown_and_refused_with_its_servers() {
    let world = World::new().await;
    cluster(&world, "default", "prod").await;
    let shown = world.get("/api/v1/workspaces/prod").await.json();
    let groups: Vec<_> = shown["groups"].as_array().unwrap().iter().map(|g| &g["name"]).collect();
    assert_eq!(groups, ["prod-cp", "prod-w"], "in the order in which servers come");
    assert_eq!(
        (&shown["groups"][1]["servers"], &shown["groups"][1]["ready"]),
        (&json!(4), &json!(0))
    );
    assert_eq!(shown["groups"][0]["delete_lock"], true);
    let listed = world.get("/api/v1/servers?workspace=prod").await.json();
    assert_eq!(listed.as_array().unwrap().len(), 5);
    let server = world.get("/api/v1/workspaces/prod/servers/prod-w-1").await.json();
    assert_eq!((&server["role"], &server["phase"]), (&json!("Worker"), &json!("Pending")));
    let id = server["id"].as_str().unwrap();
    let resource = world.get(&format!("/api/v1/resources/{id}")).await.json();
    assert_eq!(resource["labels"]["group"], "prod-w");
    let explained = world.get("/api/v1/explain/workspace/prod").await.json();
    assert_eq!((&explained["state"], &explained["name"]), (&json!("converging"), &json!("prod")));
    assert_eq!(
        explained["waiting_for"],
        "prod-cp-1, prod-w-1, prod-w-2, prod-w-3, prod-w-4 to settle"
    );
    assert_eq!(explained["parts"][1]["about"], "of group prod-w");
    let by_id = world.get(&format!("/api/v1/explain/{}", shown["id"].as_str().unwrap())).await;
    assert_eq!(by_id.json()["kind"], "workspace");
    let refused = world.ask("DELETE", "/api/v1/workspaces/prod", KEY, "").await;
    refused.refused(422, "workspace_not_empty");
    world
        .ask("DELETE", &format!("/api/v1/resources/{id}"), KEY, "")
        .await
        .refused(422, "owned_by_workspace");
    world.get("/api/v1/workspaces/none").await.refused(404, "workspace_not_found");
    world.get("/api/v1/workspaces/prod/servers/none").await.refused(404, "server_not_found");
}

#[tokio::test]
async fn every_door_asks_the_gates() {
    let world = World::new().await;
    cluster(&world, "default", "prod").await;
    let path = "/api/v1/workspaces/prod/servers";
    let down = world.post(&format!("{path}/prod-cp-1/scale-down"), "{}").await;
    down.refused(422, "control_plane_immutable");
    let details = &down.json()["details"];
    assert_eq!(details["gates"][0]["code"], "control_plane_immutable");
    assert_eq!(details["gates"][1]["code"], "delete_locked");
    // The form of the page gets the same answers, and has no way around them.
    let form = "/ui/workspaces/prod/servers";
    let same = world.post(&format!("{form}/prod-cp-1/scale-down"), "").await;
    same.refused(422, "control_plane_immutable");
    assert_eq!(same.json()["details"], down.json()["details"]);
    let forced = world.post(&format!("{form}/prod-cp-1/scale-down"), "force=true").await;
    assert_eq!(forced.refused(400, "invalid_input").as_deref(), Some("force"));
    let gone = world.post(&format!("{form}/prod-w-4/scale-down"), "reason=less+load").await;
    assert_eq!(gone.status.as_u16(), 202, "{gone:?}");
    assert_eq!(gone.json()["reason"], "less load");
    // Down by a number, up to the maximum, and no further.
    let group = "/api/v1/workspaces/prod/groups/prod-w";
    let fewer = world.post(&format!("{group}/scale-down"), r#"{"by":1}"#).await.json();
    assert_eq!((&fewer["wanted"], &fewer["leaving"]), (&json!(2), &json!(["prod-w-3"])));
    let more = world.post(&format!("{group}/scale-up"), r#"{"by":4}"#).await.json();
    assert_eq!(more["wanted"], 6);
    let beyond = world.post(&format!("{group}/scale-up"), r#"{"by":1}"#).await;
    beyond.refused(422, "scale_max_violation");
    let none = world.post(&format!("{group}/scale-up"), r#"{"by":0}"#).await;
    assert_eq!(none.refused(400, "invalid_input").as_deref(), Some("by"));
    let lost = world.post("/api/v1/workspaces/prod/groups/none/scale-up", r#"{"by":1}"#).await;
    lost.refused(404, "group_not_found");
    // Whoever deletes says why.
    let silent = world.ask("DELETE", &format!("{path}/prod-w-1"), KEY, "").await;
    assert_eq!(silent.refused(400, "invalid_input").as_deref(), Some("reason"));
    let told = world.ask("DELETE", &format!("{path}/prod-w-1?reason=it+burns"), KEY, "").await;
    assert_eq!(told.status.as_u16(), 202, "{told:?}");
}

#[tokio::test]
async fn a_declaration_is_refused_by_field() {
    let world = World::new().await;
    let mut unlocked = group("cp", "ControlPlane", 1, (1, 3));
    unlocked["delete_lock"] = json!(false);
    let mut lost = group("w", "Worker", 1, (3, 2));
    lost["depends_on"] = json!(["nobody"]);
    lost["blueprint"] = json!("none");
    let refused = apply(&world, "default", "bad", &[unlocked, lost]).await;
    assert_eq!(refused["outcome"], "refused", "{refused}");
    let mut fields: Vec<_> = refused["refusal"]["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["field"].as_str().unwrap())
        .collect();
    fields.sort_unstable();
    let expected =
        ["spec.groups.cp.delete_lock", "spec.groups.w.depends_on", "spec.groups.w.scale.min"];
    assert_eq!(fields, expected);
    let mut lost = group("w", "Worker", 1, (0, 2));
    lost["blueprint"] = json!("none");
    let refused = apply(&world, "default", "bad", &[lost]).await;
    assert_eq!(refused["outcome"], "refused", "{refused}");
    world.get("/api/v1/workspaces/bad").await.refused(404, "workspace_not_found");
}

#[tokio::test]
async fn a_teardown_is_shown_confirmed_and_cancelled() {
    let world = World::new().await;
    cluster(&world, "default", "prod").await;
    let path = "/api/v1/workspaces/prod/teardown";
    let order = world.post(path, r#"{"confirm":"","dry_run":true}"#).await.json();
    let stages = order["stages"].as_array().unwrap();
    assert_eq!(stages[0]["groups"][0]["group"], "prod-w");
    assert_eq!(stages[1]["groups"][0]["servers"], json!(["prod-cp-1"]));
    let wrong = world.post(path, r#"{"confirm":"other"}"#).await;
    assert_eq!(wrong.refused(400, "invalid_input").as_deref(), Some("confirm"));
    // All that a project has is more than the brake lets through.
    let body = r#"{"confirm":"prod","reason":"over","break_glass":true}"#;
    let begun = world.post(path, body).await;
    assert_eq!(begun.status.as_u16(), 202, "{begun:?}");
    let busy = world.post("/api/v1/workspaces/prod/groups/prod-w/scale-up", r#"{"by":1}"#).await;
    busy.refused(409, "leaving");
    let left = world.post("/api/v1/workspaces/prod/cancel", "{}").await.json();
    assert_eq!(left["staying"].as_array().unwrap().len(), 5, "{left}");
    let shown = world.get("/api/v1/workspaces/prod").await.json();
    assert!(shown["paused_at"].is_string(), "{shown}");
    world.post("/api/v1/workspaces/prod/cancel", "{}").await.refused(409, "not_cancellable");
    let resumed = world.post("/api/v1/workspaces/prod/resume", "{}").await.json();
    assert_eq!(resumed["paused_at"], Value::Null);
    world.post("/api/v1/workspaces/prod/resume", "{}").await.refused(409, "nothing_to_pause");
}

/// A dry run names what would become of each server, also behind a refusal, and an apply that
/// names its plan does that or nothing.
#[tokio::test]
async fn a_dry_run_plans_the_servers_and_an_apply_is_held_to_it() {
    let world = World::new().await;
    let groups = [group("w", "Worker", 2, (0, 6)), group("cp", "ControlPlane", 1, (1, 3))];
    apply(&world, "default", "shop", &groups).await;
    let send = async |groups: &[Value], dry_run: bool, plan: Option<&Value>| {
        let document = json!({
            "apiVersion": "slipway.dev/v1", "kind": "Workspace",
            "metadata": { "name": "shop", "project": "default" }, "spec": { "groups": groups },
        });
        let documents = json!([{ "document": document, "plan": plan }]);
        let body = json!({ "source": "shop", "documents": documents, "dry_run": dry_run });
        world.ask("POST", "/api/v1/apply", KEY, &body.to_string()).await.json()[0].clone()
    };
    let more = [group("w", "Worker", 4, (0, 6)), groups[1].clone()];
    let planned = send(&more, true, None).await;
    let expected = json!([{ "group": "w", "role": "Worker", "count": 2 }]);
    assert_eq!(planned["plan"]["created"], expected, "{planned}");
    let refused = send(&groups[..1], true, None).await;
    let gone = &refused["plan"]["servers"][0];
    assert_eq!((&refused["outcome"], &gone["action"]), (&json!("refused"), &json!("delete")));
    assert_eq!(gone["blocked"][0]["code"], "control_plane_immutable", "{refused}");
    let plan = &planned["plan"]["digest"];
    world.post("/api/v1/workspaces/shop/groups/w/scale-up", r#"{"by":1}"#).await;
    let stale = send(&more, false, Some(plan)).await;
    assert_eq!(stale["refusal"]["code"], "plan_stale", "{stale}");
    let plan = &send(&more, true, None).await["plan"]["digest"];
    assert_eq!(send(&more, false, Some(plan)).await["outcome"], "changed");
}
