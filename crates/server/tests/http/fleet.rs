//! Fleet's protocol, row by row, on both databases.

mod beside;
mod client;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use slipway_server::TABLE;
use slipway_testkit::postgres;

use self::client::{Fleet, content, id, published};
use crate::world::{KEY, World};

/// Every row of the protocol is served, with its query parameters, and described.
#[test]
fn every_published_row_is_in_the_table() {
    let document: Value =
        serde_json::from_str(include_str!("../../../../docs/openapi.json")).unwrap();
    for ((method, path), (_, query)) in published() {
        let pattern = if path.contains("{agent_id}") || path.contains("{stack_id}/dep") {
            path.replace("{agent_id}", "{id}").replace("{stack_id}", "{id}")
        } else {
            path.clone()
        };
        assert!(
            TABLE.iter().any(|row| row.method == method && row.path == pattern),
            "{method} {path}"
        );
        let described = &document["paths"][format!("/api/v1{pattern}")][method.to_lowercase()];
        assert!(described.is_object(), "{method} {path}");
        let is_outside = described["responses"].get("501").is_some();
        let names: BTreeSet<_> = described["parameters"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|parameter| parameter["in"] == "query")
            .map(|parameter| parameter["name"].as_str().unwrap().to_owned())
            .collect();
        let missing: Vec<_> = query.iter().filter(|name| !names.contains(*name)).collect();
        assert!(missing.is_empty() || is_outside, "{method} {path}: {missing:?}");
    }
}

#[tokio::test]
async fn every_row_answers_as_published_on_sqlite() {
    every_row(Fleet::new(World::new().await)).await;
}

#[tokio::test]
async fn every_row_answers_as_published_on_postgres() {
    let Some(server) = postgres::shared("every_row_answers_as_published_on_postgres").await else {
        return;
    };
    let database = server.database("fleet_wire").await;
    every_row(Fleet::new(World::on(database.url()).await)).await;
}

async fn every_row(fleet: Fleet) {
    generators(&fleet).await;
    agents(&fleet).await;
    stacks(&fleet).await;
    objects(&fleet).await;
    links(&fleet).await;
    offers(&fleet).await;
    templates(&fleet).await;
    beside::works(&fleet).await;
    overview(&fleet).await;
    outside(&fleet).await;
    deletions(&fleet).await;
    let used = fleet.used.borrow();
    let name = |(method, path): (String, String)| {
        (method, path.replace("{agent_id}", "{id}").replace("{stack_id}/dep", "{id}/dep"))
    };
    let missing: Vec<_> =
        published().into_keys().map(name).filter(|row| !used.contains(row)).collect();
    assert!(missing.is_empty(), "nobody used {missing:?}");
}

async fn generators(fleet: &Fleet) {
    let (generator, pak) = fleet.generator("pipeline").await;
    let (other, _) = fleet.generator("other").await;
    let taken = Some(json!({ "name": "pipeline" }));
    fleet.refuse((409, "unique_violation"), KEY, "POST /generators", &[], taken).await;
    let refused = fleet
        .refuse((400, "invalid_input"), KEY, "POST /generators", &[], Some(json!({ "name": "" })))
        .await;
    assert_eq!(refused.as_deref(), Some("name"));

    let shown = fleet.expect(200, &pak, "GET /generators/{id}", &[&generator], None).await;
    let keys: BTreeSet<_> = shown.as_object().unwrap().keys().map(String::as_str).collect();
    let published = [
        "created_at",
        "deleted_at",
        "description",
        "id",
        "is_active",
        "is_system",
        "last_active_at",
        "name",
        "updated_at",
    ];
    assert_eq!(keys, BTreeSet::from(published), "nulls are written");
    fleet.refuse((404, "generator_not_found"), &pak, "GET /generators/{id}", &[&other], None).await;
    let own = fleet.expect(200, &pak, "GET /generators", &[], None).await;
    assert_eq!(own.as_array().unwrap().len(), 1, "a generator sees itself");
    let all = fleet.expect(200, KEY, "GET /generators", &[], None).await;
    assert_eq!(all.as_array().unwrap().len(), 2);

    // The whole document comes back, with what should change.
    let mut changed = shown.clone();
    changed["description"] = json!("from the pipeline");
    let put = fleet.expect(200, &pak, "PUT /generators/{id}", &[&generator], Some(changed)).await;
    assert_eq!(put["description"], "from the pipeline");
    for (field, value) in [
        ("id", json!(other)),
        ("deleted_at", json!("2026-01-31T12:00:00Z")),
        ("is_system", json!(true)),
    ] {
        let mut wrong = put.clone();
        wrong[field] = value;
        let refused = fleet
            .refuse(
                (422, "field_not_settable"),
                &pak,
                "PUT /generators/{id}",
                &[&generator],
                Some(wrong),
            )
            .await;
        assert_eq!(refused.as_deref(), Some(field));
    }
    let opens = Some(json!({ "accepts_secrets": true }));
    fleet.refuse((403, "forbidden"), &pak, "PUT /generators/{id}", &[&generator], opens).await;

    // Both forms of the header, and whom a key speaks for.
    let bearer = format!("Bearer {pak}");
    for key in [&pak, &bearer] {
        let mut who = fleet.expect(200, key, "POST /auth/pak", &[], None).await;
        let installation = who.as_object_mut().unwrap().remove("installation");
        assert!(installation.is_some_and(|id| id.is_string()), "of this server");
        let expected =
            json!({ "admin": false, "agent": null, "generator": generator, "readonly": false });
        assert_eq!(who, expected);
    }
    let admin = fleet.expect(200, KEY, "POST /auth/pak", &[], None).await;
    assert_eq!(admin["admin"], true);
    fleet.refuse((401, "unauthenticated"), "nonsense", "POST /auth/pak", &[], None).await;
    let rotated =
        fleet.expect(201, &pak, "POST /generators/{id}/rotate-pak", &[&generator], None).await;
    fleet.refuse((401, "unauthenticated"), &pak, "POST /auth/pak", &[], None).await;
    let who =
        fleet.expect(200, rotated["pak"].as_str().unwrap(), "POST /auth/pak", &[], None).await;
    assert_eq!(who["generator"], json!(generator));
    fleet
        .refuse(
            (403, "forbidden"),
            rotated["pak"].as_str().unwrap(),
            "POST /generators",
            &[],
            Some(json!({ "name": "x" })),
        )
        .await;
    let paks = fleet.expect(200, KEY, "GET /paks", &[], None).await;
    assert!(
        paks.as_array().unwrap().iter().all(|pak| pak["id"].is_string() && pak["name"].is_string())
    );
}

async fn agents(fleet: &Fleet) {
    let (generator, pak) = fleet.generator("for agents").await;
    let (agent, key) = fleet.agent("edge", &[&generator]).await;
    let (other, _) = fleet.agent("lonely", &[]).await;
    let taken = Some(json!({ "name": "edge", "cluster_name": "berlin" }));
    fleet.refuse((409, "unique_violation"), KEY, "POST /agents", &[], taken).await;
    let nowhere = json!({ "name": "new", "cluster_name": "c", "generator_ids": [other] });
    let refused =
        fleet.refuse((422, "generator_not_found"), KEY, "POST /agents", &[], Some(nowhere)).await;
    assert_eq!(refused.as_deref(), Some("generator_ids"));
    let found = fleet.ask(KEY, "GET /agents/?name=new&cluster_name=c", &[], None).await;
    found.refused(404, "agent_not_found");

    let of_generator = fleet.expect(200, &pak, "GET /agents", &[], None).await;
    assert_eq!(of_generator.as_array().unwrap().len(), 1, "only registered ones");
    let found =
        fleet.expect(200, &key, "GET /agents/?name=edge&cluster_name=berlin", &[], None).await;
    assert_eq!(found["id"], json!(agent));
    let refused =
        fleet.refuse((400, "invalid_input"), &key, "GET /agents/?name=edge", &[], None).await;
    assert_eq!(refused.as_deref(), Some("cluster_name"));
    fleet.expect(200, &key, "GET /agents/{id}", &[&agent], None).await;
    fleet.refuse((404, "agent_not_found"), &key, "GET /agents/{id}", &[&other], None).await;
    let moved = Some(json!({ "status": "ASLEEP" }));
    let refused =
        fleet.refuse((400, "invalid_input"), &key, "PUT /agents/{id}", &[&agent], moved).await;
    assert_eq!(refused.as_deref(), Some("status"));

    fleet.expect(204, &key, "POST /agents/{id}/heartbeat", &[&agent], None).await;
    let said = Some(json!({ "k8s_reachable": true, "k8s_api_latency_ms": 12 }));
    fleet.expect(204, &key, "POST /agents/{id}/heartbeat", &[&agent], said).await;
    let seen = fleet.expect(200, KEY, "GET /agents/{id}", &[&agent], None).await;
    assert_eq!((&seen["k8s_reachable"], &seen["k8s_api_latency_ms"]), (&json!(true), &json!(12)));
    assert!(seen["last_heartbeat"].is_string());

    let label = Some(json!({ "agent_id": agent, "label": "edge" }));
    let made = fleet.expect(201, KEY, "POST /agents/{id}/labels", &[&agent], label.clone()).await;
    assert_eq!(made["agent_id"], json!(agent));
    fleet
        .refuse(
            (409, "unique_violation"),
            KEY,
            "POST /agents/{id}/labels",
            &[&agent],
            label.clone(),
        )
        .await;
    fleet
        .refuse((403, "forbidden"), &key, "POST /agents/{id}/labels", &[&agent], label.clone())
        .await;
    fleet.refuse((400, "invalid_input"), KEY, "POST /agents/{id}/labels", &[&other], label).await;
    let labels = fleet.expect(200, &key, "GET /agents/{id}/labels", &[&agent], None).await;
    assert_eq!(labels, json!([made]));
    fleet.expect(204, KEY, "DELETE /agents/{id}/labels/{label}", &[&agent, "edge"], None).await;
    fleet
        .refuse(
            (404, "entry_not_found"),
            KEY,
            "DELETE /agents/{id}/labels/{label}",
            &[&agent, "edge"],
            None,
        )
        .await;

    let annotation = Some(json!({ "agent_id": agent, "key": "site", "value": "north" }));
    let made = fleet.expect(201, KEY, "POST /agents/{id}/annotations", &[&agent], annotation).await;
    let annotations =
        fleet.expect(200, &key, "GET /agents/{id}/annotations", &[&agent], None).await;
    assert_eq!(annotations, json!([made]));
    fleet.expect(204, KEY, "DELETE /agents/{id}/annotations/{key}", &[&agent, "site"], None).await;

    let rotated = fleet.expect(200, &key, "POST /agents/{id}/rotate-pak", &[&agent], None).await;
    assert_eq!(rotated["agent"]["id"], json!(agent));
    fleet.refuse((401, "unauthenticated"), &key, "POST /auth/pak", &[], None).await;
    let key = rotated["pak"].as_str().unwrap();
    let who = fleet.expect(200, key, "POST /auth/pak", &[], None).await;
    assert_eq!(who["agent"], json!(agent));
}

async fn stacks(fleet: &Fleet) {
    let (generator, pak) = fleet.generator("for stacks").await;
    let (_, foreign) = fleet.generator("foreign").await;
    let stack = fleet.stack(&pak, &generator, "web").await;
    let body = || Some(json!({ "name": "web", "generator_id": generator }));
    fleet.refuse((409, "unique_violation"), &pak, "POST /stacks", &[], body()).await;
    let refused = fleet
        .refuse(
            (422, "generator_not_found"),
            &foreign,
            "POST /stacks",
            &[],
            Some(json!({ "name": "x", "generator_id": generator })),
        )
        .await;
    assert_eq!(refused.as_deref(), Some("generator_id"), "another generator is as unknown as none");
    let all = fleet.expect(200, &pak, "GET /stacks", &[], None).await;
    assert_eq!(all.as_array().unwrap().len(), 1);
    let page = fleet.ask(&pak, "GET /stacks?limit=1", &[], None).await;
    assert!(page.header("link").contains("rel=\"next\""));
    let shown = fleet.expect(200, &pak, "GET /stacks/{id}", &[&stack], None).await;
    fleet.refuse((404, "stack_not_found"), &foreign, "GET /stacks/{id}", &[&stack], None).await;
    fleet.refuse((404, "stack_not_found"), &foreign, "DELETE /stacks/{id}", &[&stack], None).await;
    let mut changed = shown.clone();
    changed["name"] = json!("shop");
    let put = fleet.expect(200, &pak, "PUT /stacks/{id}", &[&stack], Some(changed)).await;
    assert_eq!((&put["name"], &put["id"]), (&json!("shop"), &json!(stack)));
    for (field, value) in [
        ("generator_id", json!(stack)),
        ("deleted_at", json!("2026-01-31T12:00:00Z")),
        ("created_at", json!("2026-01-31T12:00:00Z")),
    ] {
        let mut wrong = put.clone();
        wrong[field] = value;
        let refused = fleet
            .refuse((422, "field_not_settable"), &pak, "PUT /stacks/{id}", &[&stack], Some(wrong))
            .await;
        assert_eq!(refused.as_deref(), Some(field));
    }

    let made =
        fleet.expect(201, &pak, "POST /stacks/{id}/labels", &[&stack], Some(json!("edge"))).await;
    assert_eq!((&made["stack_id"], &made["label"]), (&json!(stack), &json!("edge")));
    let labels = fleet.expect(200, &pak, "GET /stacks/{id}/labels", &[&stack], None).await;
    assert_eq!(labels, json!([made]));
    fleet.expect(204, &pak, "DELETE /stacks/{id}/labels/{label}", &[&stack, "edge"], None).await;
    let annotation = Some(json!({ "stack_id": stack, "key": "tier", "value": "front" }));
    let made = fleet
        .expect(201, &pak, "POST /stacks/{id}/annotations", &[&stack], annotation.clone())
        .await;
    fleet
        .refuse(
            (409, "unique_violation"),
            &pak,
            "POST /stacks/{id}/annotations",
            &[&stack],
            annotation,
        )
        .await;
    let annotations =
        fleet.expect(200, &pak, "GET /stacks/{id}/annotations", &[&stack], None).await;
    assert_eq!(annotations, json!([made]));
    fleet.expect(204, &pak, "DELETE /stacks/{id}/annotations/{key}", &[&stack, "tier"], None).await;
    let events = fleet.expect(200, &pak, "GET /stacks/{id}/events", &[&stack], None).await;
    assert_eq!(
        (&events["events"], &events["retention"]["effective_retention_seconds"]),
        (&json!([]), &json!(0))
    );
    let logs = fleet.expect(200, &pak, "GET /stacks/{id}/logs", &[&stack], None).await;
    assert_eq!(logs["lines"], json!([]));
}

async fn objects(fleet: &Fleet) {
    const SUBMIT: &str = "POST /stacks/{id}/deployment-objects";
    let (generator, pak) = fleet.generator("for objects").await;
    let stack = fleet.stack(&pak, &generator, "objects").await;
    let first = fleet.submit(&pak, &stack, "one").await;
    assert_eq!(first["yaml_content"], json!(content("one")));
    let yaml = [("content-type", "application/yaml")];
    let second = fleet.send(&pak, SUBMIT, &[&stack], &yaml, content("two")).await;
    assert_eq!(second.status.as_u16(), 201, "{second:?}");
    let second = second.json();
    assert!(second["sequence_id"].as_i64() > first["sequence_id"].as_i64());
    let all = fleet.expect(200, &pak, "GET /stacks/{id}/deployment-objects", &[&stack], None).await;
    assert_eq!(all, json!([first, second]));

    let refused = fleet.send(&pak, SUBMIT, &[&stack], &yaml, "a: [1\n".to_owned()).await;
    assert_eq!(refused.refused(400, "invalid_input").as_deref(), Some("yaml_content"));
    assert!(refused.text.contains("line"), "{refused:?}");
    let full = Some(json!({ "yaml_content": "a: b\n", "is_deletion_marker": true }));
    fleet.refuse((400, "invalid_input"), &pak, SUBMIT, &[&stack], full).await;
    let secret =
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\nstringData:\n  key: hunter2\n";
    let refused = fleet.ask(&pak, SUBMIT, &[&stack], Some(json!({ "yaml_content": secret }))).await;
    refused.refused(422, "secret_not_accepted");
    assert!(!refused.text.contains("hunter2"), "{refused:?}");
    // Four mebibytes are taken as JSON and as they are, and not a byte more.
    let fits = format!("a: \"{}\"\n", "x".repeat((4 << 20) - 6));
    assert_eq!(fits.len(), 4 << 20);
    let taken = fleet.send(&pak, SUBMIT, &[&stack], &yaml, fits.clone()).await;
    assert_eq!(taken.status.as_u16(), 201, "{}", &taken.text[..200.min(taken.text.len())]);
    let refused = fleet.send(&pak, SUBMIT, &[&stack], &yaml, format!("{fits}#")).await;
    assert!([400, 413].contains(&refused.status.as_u16()), "{refused:?}");
    let refused = fleet.send(&pak, SUBMIT, &[&stack], &yaml, "x".repeat(10 << 20)).await;
    refused.refused(413, "payload_too_large");

    let object = id(&second);
    let shown = fleet.expect(200, &pak, "GET /deployment-objects/{id}", &[&object], None).await;
    assert_eq!(shown, second);
    let accepts = [("accept", "application/yaml")];
    let plain =
        fleet.send(&pak, "GET /deployment-objects/{id}", &[&object], &accepts, String::new()).await;
    assert_eq!(
        (plain.header("content-type"), plain.text.as_str()),
        ("application/yaml", content("two").as_str())
    );
    let (_, key) = fleet.agent("not targeted", &[&generator]).await;
    fleet
        .refuse(
            (404, "deployment_object_not_found"),
            &key,
            "GET /deployment-objects/{id}",
            &[&object],
            None,
        )
        .await;

    // A repeated request makes nothing twice.
    let once = [("content-type", "application/json"), ("idempotency-key", "again-and-again")];
    let body = json!({ "yaml_content": content("once") }).to_string();
    let one = fleet.send(&pak, SUBMIT, &[&stack], &once, body.clone()).await;
    let again = fleet.send(&pak, SUBMIT, &[&stack], &once, body).await;
    assert_eq!(one.json(), again.json());
    let newest = id(&one.json());
    let withdrawn = fleet.ask(&pak, "DELETE /deployment-objects/{id}", &[&newest], None).await;
    assert_eq!(withdrawn.status.as_u16(), 204);
    let marker = fleet
        .ask(
            &pak,
            "POST /stacks/{id}/deployment-objects?deletion_marker=true",
            &[&stack],
            Some(json!({ "yaml_content": "" })),
        )
        .await;
    assert_eq!(marker.json()["is_deletion_marker"], true, "{marker:?}");
}

async fn links(fleet: &Fleet) {
    let (generator, pak) = fleet.generator("for links").await;
    let (agent, key) = fleet.agent("linked", &[]).await;
    let stack = fleet.stack(&pak, &generator, "linked").await;
    let target = Some(json!({ "agent_id": agent, "stack_id": stack }));
    fleet
        .refuse(
            (422, "target_generator_mismatch"),
            &pak,
            "POST /agents/{id}/targets",
            &[&agent],
            target.clone(),
        )
        .await;

    let made = fleet.expect(201, &key, "POST /generators/{id}/register", &[&generator], None).await;
    assert_eq!((&made["agent_id"], &made["generator_id"]), (&json!(agent), &json!(generator)));
    let named = || Some(json!({ "agent_id": agent }));
    fleet
        .refuse(
            (409, "unique_violation"),
            KEY,
            "POST /generators/{id}/register",
            &[&generator],
            named(),
        )
        .await;
    let refused = fleet
        .refuse((400, "invalid_input"), KEY, "POST /generators/{id}/register", &[&generator], None)
        .await;
    assert_eq!(refused.as_deref(), Some("agent_id"));
    fleet
        .refuse((403, "forbidden"), &pak, "POST /generators/{id}/register", &[&generator], named())
        .await;
    let registered = fleet
        .expect(200, &pak, "GET /generators/{id}/registered-agents", &[&generator], None)
        .await;
    assert_eq!(registered, json!([made]));
    let registrations =
        fleet.expect(200, &key, "GET /agents/{id}/registrations", &[&agent], None).await;
    assert_eq!(registrations, json!([made]));

    let made =
        fleet.expect(201, &pak, "POST /agents/{id}/targets", &[&agent], target.clone()).await;
    assert_eq!((&made["agent_id"], &made["stack_id"]), (&json!(agent), &json!(stack)));
    fleet
        .refuse((409, "unique_violation"), &pak, "POST /agents/{id}/targets", &[&agent], target)
        .await;
    assert_eq!(
        fleet.expect(200, &key, "GET /agents/{id}/targets", &[&agent], None).await,
        json!([made])
    );
    let stacks = fleet.expect(200, &key, "GET /agents/{id}/stacks", &[&agent], None).await;
    assert_eq!(stacks[0]["id"], json!(stack));
    fleet.expect(201, &pak, "POST /stacks/{id}/labels", &[&stack], Some(json!("seen"))).await;
    let labels = fleet.expect(200, &key, "GET /stacks/{id}/labels", &[&stack], None).await;
    assert_eq!(labels.as_array().unwrap().len(), 1, "an agent reads the labels of its stacks");
    fleet
        .expect(204, &pak, "DELETE /agents/{id}/targets/{stack_id}", &[&agent, &stack], None)
        .await;
    fleet.refuse((404, "stack_not_found"), &key, "GET /stacks/{id}/labels", &[&stack], None).await;
    assert_eq!(
        fleet.expect(200, &key, "GET /agents/{id}/stacks", &[&agent], None).await,
        json!([])
    );
    fleet.expect(204, &key, "DELETE /generators/{id}/register", &[&generator], None).await;
    fleet
        .refuse(
            (404, "entry_not_found"),
            KEY,
            "DELETE /generators/{id}/register",
            &[&generator],
            named(),
        )
        .await;
}

async fn offers(fleet: &Fleet) {
    const STATE: &str = "GET /agents/{id}/target-state";
    let (generator, pak) = fleet.generator("for offers").await;
    let (agent, key) = fleet.agent("offered", &[&generator]).await;
    let label = Some(json!({ "agent_id": agent, "label": "offered" }));
    fleet.expect(201, KEY, "POST /agents/{id}/labels", &[&agent], label).await;
    assert_eq!(fleet.target_state(&key, &agent).await, Vec::<Value>::new());
    let mut newest = Vec::new();
    for name in ["first", "second"] {
        let stack = fleet.stack(&pak, &generator, &format!("offered {name}")).await;
        fleet
            .expect(201, &pak, "POST /stacks/{id}/labels", &[&stack], Some(json!("offered")))
            .await;
        fleet.submit(&pak, &stack, "old").await;
        newest.insert(0, fleet.submit(&pak, &stack, name).await);
    }
    assert_eq!(fleet.target_state(&key, &agent).await, newest, "the latest of each, descending");
    for mode in ["incremental", "full"] {
        let row = format!("{STATE}?mode={mode}");
        assert_eq!(fleet.expect(200, &key, &row, &[&agent], None).await, json!(newest));
    }
    let refused = fleet
        .refuse((400, "invalid_input"), &key, &format!("{STATE}?mode=some"), &[&agent], None)
        .await;
    assert_eq!(refused.as_deref(), Some("mode"));
    fleet.refuse((403, "forbidden"), &pak, STATE, &[&agent], None).await;
    let tag = fleet.ask(&key, STATE, &[&agent], None).await.header("etag").to_owned();
    let known = [("if-none-match", tag.as_str())];
    let row = format!("{STATE}?wait=1");
    let same = fleet.send(&key, &row, &[&agent], &known, String::new()).await;
    assert_eq!((same.status.as_u16(), same.text.as_str()), (304, ""));
    // Whoever waits learns of a change at once.
    let object = id(&newest[0]);
    let waiting = async {
        let row = format!("{STATE}?wait=30");
        fleet.send(&key, &row, &[&agent], &known, String::new()).await
    };
    let withdraw =
        async { fleet.ask(&pak, "DELETE /deployment-objects/{id}", &[&object], None).await };
    let (changed, withdrawn) = tokio::join!(waiting, withdraw);
    assert_eq!((changed.status.as_u16(), withdrawn.status.as_u16()), (200, 204), "{changed:?}");
    // A key that is replaced while its agent waits is refused with the next answer.
    let (other, old) = fleet.agent("waits", &[&generator]).await;
    let label = Some(json!({ "agent_id": other, "label": "offered" }));
    fleet.expect(201, KEY, "POST /agents/{id}/labels", &[&other], label).await;
    let tag = fleet.ask(&old, STATE, &[&other], None).await.header("etag").to_owned();
    let waiting = async {
        let row = format!("{STATE}?wait=30");
        fleet.send(&old, &row, &[&other], &[("if-none-match", &tag)], String::new()).await
    };
    let replace = async {
        fleet.expect(200, KEY, "POST /agents/{id}/rotate-pak", &[&other], None).await;
        let stack = newest[0]["stack_id"].as_str().unwrap();
        fleet.submit(&pak, stack, "newer").await
    };
    let (refused, _) = tokio::join!(waiting, replace);
    refused.refused(401, "unauthenticated");

    let offered = fleet.target_state(&key, &agent).await;
    let object = id(&offered[0]);
    let one = fleet.report(&key, &agent, &object, "SUCCESS").await;
    let again = fleet.report(&key, &agent, &object, "SUCCESS").await;
    assert_eq!(one["id"], again["id"], "agents repeat themselves");
    let reported = fleet.expect(200, &key, "GET /agents/{id}/events", &[&agent], None).await;
    assert_eq!(reported.as_array().unwrap().len(), 1);
    let all = fleet.expect(200, KEY, "GET /agent-events", &[], None).await;
    assert_eq!(all[0]["id"], one["id"]);
    let shown = fleet.expect(200, KEY, "GET /agent-events/{id}", &[&id(&one)], None).await;
    assert_eq!(shown["deployment_object_id"], json!(object));
    fleet.refuse((404, "entry_not_found"), KEY, "GET /agent-events/{id}", &[&object], None).await;
    fleet.refuse((403, "forbidden"), &key, "GET /agent-events", &[], None).await;
    let never = json!({
        "agent_id": agent, "deployment_object_id": agent, "event_type": "DEPLOY",
        "status": "SUCCESS",
    });
    fleet
        .refuse(
            (404, "deployment_object_not_found"),
            &key,
            "POST /agents/{id}/events",
            &[&agent],
            Some(never),
        )
        .await;

    let summary = json!({ "pods_ready": 1, "pods_total": 2, "conditions": ["x"], "resources": [] });
    let health = json!({ "deployment_objects": [
        { "id": object, "status": "degraded", "summary": summary, "checked_at": "2026-01-31T12:00:00Z" },
    ] });
    fleet.expect(200, &key, "PATCH /agents/{id}/health-status", &[&agent], Some(health)).await;
    let seen =
        fleet.expect(200, KEY, "GET /deployment-objects/{id}/health", &[&object], None).await;
    assert_eq!(
        (&seen["overall_status"], &seen["health_records"][0]["agent_id"]),
        (&json!("degraded"), &json!(agent))
    );
    let stack = offered[0]["stack_id"].as_str().unwrap();
    let seen = fleet.expect(200, KEY, "GET /stacks/{id}/health", &[stack], None).await;
    assert_eq!(
        (&seen["overall_status"], &seen["deployment_objects"][0]["degraded_agents"]),
        (&json!("degraded"), &json!(1))
    );
    let wrong =
        json!({ "deployment_objects": [{ "id": object, "status": "fine", "checked_at": "now" }] });
    let refused = fleet
        .refuse(
            (400, "invalid_input"),
            &key,
            "PATCH /agents/{id}/health-status",
            &[&agent],
            Some(wrong),
        )
        .await;
    assert!(refused.unwrap().starts_with("deployment_objects[0]"));
}

async fn templates(fleet: &Fleet) {
    let (generator, pak) = fleet.generator("for templates").await;
    let body = json!({
        "name": "config", "template_content": "name: {{ name }}\n",
        "parameters_schema": "{\"type\":\"object\"}",
    });
    let one = fleet.expect(201, &pak, "POST /templates", &[], Some(body.clone())).await;
    assert_eq!((&one["version"], &one["generator_id"]), (&json!(1), &json!(generator)));
    fleet.refuse((409, "unique_violation"), &pak, "POST /templates", &[], Some(body.clone())).await;
    let shared = fleet.expect(201, KEY, "POST /templates", &[], Some(body.clone())).await;
    assert_eq!(shared["generator_id"], Value::Null);
    let all = fleet.expect(200, &pak, "GET /templates", &[], None).await;
    assert_eq!(all.as_array().unwrap().len(), 2, "its own, and that of the project");
    fleet.expect(200, &pak, "GET /templates/{id}", &[&id(&shared)], None).await;
    fleet
        .refuse((404, "template_not_found"), &pak, "DELETE /templates/{id}", &[&id(&shared)], None)
        .await;
    let next = json!({ "template_content": "name: x\n", "parameters_schema": "{}" });
    let two = fleet.expect(200, &pak, "PUT /templates/{id}", &[&id(&one)], Some(next)).await;
    assert_eq!(two["version"], 2);
    assert_ne!(two["id"], one["id"]);
    let wrong =
        json!({ "name": "x", "template_content": "a", "parameters_schema": "{\"type\": 7}" });
    let refused =
        fleet.refuse((400, "invalid_input"), &pak, "POST /templates", &[], Some(wrong)).await;
    assert_eq!(refused.as_deref(), Some("parameters_schema"));

    let template = id(&two);
    let made = fleet
        .expect(201, &pak, "POST /templates/{id}/labels", &[&template], Some(json!("edge")))
        .await;
    assert!(made["created_at"].is_string());
    let labels = fleet.expect(200, &pak, "GET /templates/{id}/labels", &[&template], None).await;
    assert_eq!(labels, json!([made]));
    fleet
        .expect(204, &pak, "DELETE /templates/{id}/labels/{label}", &[&template, "edge"], None)
        .await;
    let annotation = Some(json!({ "key": "tier", "value": "front" }));
    let made =
        fleet.expect(201, &pak, "POST /templates/{id}/annotations", &[&template], annotation).await;
    let annotations =
        fleet.expect(200, &pak, "GET /templates/{id}/annotations", &[&template], None).await;
    assert_eq!(annotations, json!([made]));
    fleet
        .expect(204, &pak, "DELETE /templates/{id}/annotations/{key}", &[&template, "tier"], None)
        .await;
    from_template(fleet, (&generator, &pak)).await;
    fleet.expect(204, &pak, "DELETE /templates/{id}", &[&template], None).await;
}

async fn from_template(fleet: &Fleet, (generator, pak): (&str, &str)) {
    const MAKE: &str = "POST /stacks/{id}/deployment-objects/from-template";
    let schema = json!({
        "type": "object", "required": ["name"], "additionalProperties": false,
        "properties": { "name": { "type": "string" } },
    });
    let template = json!({
        "name": "made", "parameters_schema": schema.to_string(),
        "template_content": content("{{ name }}"),
    });
    let template = id(&fleet.expect(201, pak, "POST /templates", &[], Some(template)).await);
    let broken = json!({ "name": "x", "parameters_schema": "{}", "template_content": "{{ name" });
    let refused =
        fleet.refuse((400, "invalid_input"), pak, "POST /templates", &[], Some(broken)).await;
    assert_eq!(refused.as_deref(), Some("template_content"));
    let stack = fleet.stack(pak, generator, "made").await;
    let asked =
        |name: Value| Some(json!({ "template_id": template, "parameters": { "name": name } }));
    let made = fleet.expect(201, pak, MAKE, &[&stack], asked(json!("web"))).await;
    assert_eq!(made["yaml_content"], json!(content("web")));
    let refused = fleet
        .refuse((422, "parameter_values_invalid"), pak, MAKE, &[&stack], asked(json!(7)))
        .await;
    assert_eq!(refused.as_deref(), Some("parameters.name"));
    fleet.expect(201, pak, "POST /templates/{id}/labels", &[&template], Some(json!("edge"))).await;
    fleet.refuse((422, "template_mismatch"), pak, MAKE, &[&stack], asked(json!("web"))).await;
    fleet.expect(201, pak, "POST /stacks/{id}/labels", &[&stack], Some(json!("edge"))).await;
    fleet.expect(201, pak, MAKE, &[&stack], asked(json!("web"))).await;
    let bad = asked(json!("a\n  - b: [")).map(|body| json!({ "parameters": body["parameters"] }));
    let preview = fleet.expect(200, pak, "POST /templates/{id}/render", &[&template], bad).await;
    assert!(preview["yaml_content"].as_str().unwrap().contains("- b: ["));
    fleet.refuse((400, "invalid_input"), pak, MAKE, &[&stack], asked(json!("a\n  - b: ["))).await;
}

async fn overview(fleet: &Fleet) {
    let (generator, pak) = fleet.generator("for overview").await;
    let (agent, key) = fleet.agent("watched", &[&generator]).await;
    let stack = fleet.stack(&pak, &generator, "watched").await;
    let target = Some(json!({ "agent_id": agent, "stack_id": stack }));
    fleet.expect(201, &pak, "POST /agents/{id}/targets", &[&agent], target).await;
    fleet.submit(&pak, &stack, "watched").await;
    let pending = async || {
        let shown = fleet.expect(200, &key, "GET /agents/{id}/fleet-status", &[&agent], None).await;
        shown["record"]["pending_object_count"].as_i64().unwrap()
    };
    assert_eq!(pending().await, 1, "also before the agent ever asked");
    let offered = fleet.target_state(&key, &agent).await;
    assert_eq!(pending().await, 1);
    fleet.report(&key, &agent, &id(&offered[0]), "FAILURE").await;
    assert_eq!(pending().await, 1, "a failure is nothing deployed");
    fleet.report(&key, &agent, &id(&offered[0]), "SUCCESS").await;
    assert_eq!(pending().await, 0);
    fleet
        .expect(204, &pak, "DELETE /agents/{id}/targets/{stack_id}", &[&agent, &stack], None)
        .await;
    assert_eq!(pending().await, 1, "a marker is owed");

    let all = fleet.expect(200, KEY, "GET /fleet", &[], None).await;
    let record =
        all.as_array().unwrap().iter().find(|one| one["agent_id"] == json!(agent)).unwrap();
    assert_eq!(
        (&record["name"], &record["pending_object_count"], &record["ws_connected"]),
        (&json!("watched"), &json!(1), &json!(false))
    );
    fleet.refuse((403, "forbidden"), &key, "GET /fleet", &[], None).await;
    let connections = fleet.expect(200, KEY, "GET /admin/ws/connections", &[], None).await;
    assert_eq!(connections["connections"], json!([]));
    let audit = fleet.ask(KEY, &format!("GET /admin/audit-logs?actor_type=generator&actor_id={generator}&action=stack.submit&limit=5"), &[], None).await.json();
    assert_eq!(
        (&audit["count"], &audit["total"], &audit["limit"]),
        (&json!(1), &json!(1), &json!(5))
    );
    let entry = &audit["logs"][0];
    assert_eq!(
        (&entry["actor_type"], &entry["actor_id"], &entry["resource_id"]),
        (&json!("generator"), &json!(generator), &json!(stack))
    );
    assert!(!entry.to_string().contains("ConfigMap"), "content is in no entry: {entry}");
    let skipped = fleet.ask(KEY, "GET /admin/audit-logs?limit=2&offset=1", &[], None).await.json();
    assert_eq!((&skipped["count"], &skipped["offset"]), (&json!(2), &json!(1)));
    fleet.refuse((403, "forbidden"), &pak, "GET /admin/audit-logs", &[], None).await;
}

async fn outside(fleet: &Fleet) {
    let (agent, key) = fleet.agent("outside", &[]).await;
    for what in ["work-orders", "diagnostics", "webhooks"] {
        let row = format!("GET /agents/{{id}}/{what}/pending");
        assert_eq!(fleet.expect(200, &key, &row, &[&agent], None).await, json!([]));
    }
    for (method, path) in published().into_keys() {
        let row = TABLE.iter().find(|row| row.method == method && row.path == path);
        if row.is_some_and(|row| row.summary == "Not offered") {
            let parameters = vec![agent.as_str(); path.matches('{').count()];
            let body = Some(json!({}));
            fleet
                .refuse((501, "not_offered"), &key, &format!("{method} {path}"), &parameters, body)
                .await;
        }
    }
}

async fn deletions(fleet: &Fleet) {
    let (generator, pak) = fleet.generator("for deletions").await;
    let (agent, key) = fleet.agent("deleting", &[&generator]).await;
    let stack = fleet.stack(&pak, &generator, "deleted").await;
    let target = Some(json!({ "agent_id": agent, "stack_id": stack }));
    fleet.expect(201, &pak, "POST /agents/{id}/targets", &[&agent], target).await;
    fleet.submit(&pak, &stack, "deleted").await;
    assert_eq!(fleet.target_state(&key, &agent).await.len(), 1);
    let deleted = fleet.ask(&pak, "DELETE /stacks/{id}?reason=over", &[&stack], None).await;
    assert_eq!(deleted.status.as_u16(), 204, "{deleted:?}");
    let record = deleted.header("location").to_owned();
    fleet.refuse((404, "stack_not_found"), &pak, "GET /stacks/{id}", &[&stack], None).await;
    let shown =
        fleet.expect(200, &pak, "GET /stacks/{id}?show_deleted=true", &[&stack], None).await;
    assert!(shown["deleted_at"].is_string());
    // The name is free again, and the marker stays until the agent says so.
    let again = fleet.stack(&pak, &generator, "deleted").await;
    let offered = fleet.target_state(&key, &agent).await;
    assert_eq!(
        (&offered[0]["is_deletion_marker"], &offered[0]["yaml_content"]),
        (&json!(true), &json!(""))
    );
    let owed = fleet.world.get(&record).await.json();
    let delivery = &owed["deliveries"][0];
    assert_eq!(
        (&delivery["agent"], &delivery["removed_at"]),
        (&json!("deleting"), &Value::Null),
        "{owed}"
    );
    fleet.report(&key, &agent, &id(&offered[0]), "SUCCESS").await;
    assert_eq!(fleet.target_state(&key, &agent).await, Vec::<Value>::new());
    let done = fleet.world.get(&record).await.json();
    assert!(done["deliveries"][0]["removed_at"].is_string(), "{done}");
    fleet.expect(204, &pak, "DELETE /stacks/{id}", &[&again], None).await;
    fleet.expect(204, KEY, "DELETE /agents/{id}", &[&agent], None).await;
    fleet.refuse((401, "unauthenticated"), &key, "POST /auth/pak", &[], None).await;
    fleet.expect(204, &pak, "DELETE /generators/{id}", &[&generator], None).await;
    fleet.refuse((401, "unauthenticated"), &pak, "POST /auth/pak", &[], None).await;
}
