//! Resources over HTTP: declare, read, explain, delete, force.

use axum::body::Body;
use axum::http::{Request, StatusCode};

use crate::world::{KEY, World};

#[tokio::test]
async fn a_declaration_is_accepted_with_its_location() {
    let world = World::new().await;
    let body = r#"{"handle":"web-1","blueprint":"local-node",
        "parameters":{"busy_seconds":4},"labels":{"team":"a"}}"#;
    let answer = world.post("/api/v1/resources", body).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{answer:?}");
    let resource = answer.json();
    assert_eq!(resource["phase"], "Pending");
    assert_eq!(resource["attempt"]["parameters"]["busy_seconds"], 4);
    assert_eq!(resource["labels"]["team"], "a");
    assert_eq!(answer.header("etag"), format!("\"{}\"", resource["revision"]));
    let location = answer.header("location");
    assert_eq!(location, format!("/api/v1/resources/{}", resource["id"].as_str().unwrap()));

    let again = world.get(location).await;
    assert_eq!(again.json()["id"], resource["id"]);
    assert_eq!(again.header("etag"), answer.header("etag"));
}

#[tokio::test]
async fn a_bad_declaration_names_what_is_wrong() {
    let world = World::new().await;
    world.declare("taken").await;
    let table = [
        (r#"{"handle":"UP","blueprint":"local-node"}"#, 400, "invalid_input", Some("handle")),
        (r#"{"handle":"a","blueprint":"local-node","x":1}"#, 400, "invalid_input", Some("x")),
        (r#"{"handle":"a"}"#, 400, "invalid_input", Some("blueprint")),
        (r#"{"handle":"a","blueprint":"none"}"#, 422, "blueprint_not_found", Some("blueprint")),
        (
            r#"{"handle":"a","blueprint":"local-node","parameters":{"busy_seconds":"x"}}"#,
            422,
            "parameter_values_invalid",
            Some("parameters.busy_seconds"),
        ),
        (
            r#"{"handle":"a","blueprint":"local-node","project":"none"}"#,
            422,
            "project_not_found",
            Some("project"),
        ),
        (r#"{"handle":"taken","blueprint":"local-node"}"#, 409, "handle_taken", Some("handle")),
    ];
    for (body, status, code, field) in table {
        let answer = world.post("/api/v1/resources", body).await;
        assert_eq!(answer.refused(status, code).as_deref(), field, "{body}");
    }
    let malformed = world.post("/api/v1/resources", "{\n  \"handle\": }").await;
    malformed.refused(400, "invalid_input");
    let place = &malformed.json()["details"];
    assert_eq!((&place["line"], &place["column"]), (&2.into(), &13.into()));
}

#[tokio::test]
async fn a_body_that_is_too_long_is_413() {
    let world = World::new().await;
    let request = Request::post("/api/v1/resources")
        .header("authorization", format!("Bearer {KEY}"))
        .body(Body::from(vec![b' '; (1 << 20) + 1]))
        .unwrap();
    world.send(request).await.refused(413, "payload_too_large");
}

#[tokio::test]
async fn an_id_is_that_of_something_that_exists() {
    let world = World::new().await;
    let field = world.get("/api/v1/deletions/%0A").await.refused(400, "invalid_input");
    assert_eq!(field.as_deref(), Some("id"));
    world.get("/api/v1/resources/web-1").await.refused(404, "resource_not_found");
    world.get("/api/v1/nodes/x").await.refused(404, "node_not_found");
    let id = "0192f0c1-0000-7000-8000-123456789abc";
    world.get(&format!("/api/v1/resources/{id}")).await.refused(404, "resource_not_found");
    world.get(&format!("/api/v1/resources/{id}/explain")).await.refused(404, "resource_not_found");
    world.get(&format!("/api/v1/nodes/{id}")).await.refused(404, "node_not_found");
    world.get(&format!("/api/v1/deletions/{id}")).await.refused(404, "deletion_not_found");
    let gone = world.ask("DELETE", &format!("/api/v1/resources/{id}"), KEY, "").await;
    gone.refused(404, "resource_not_found");
}

#[tokio::test]
async fn deleting_twice_answers_the_same_deletion() {
    let world = World::new().await;
    let id = world.declare("web-1").await;
    let path = format!("/api/v1/resources/{id}?reason=not%20needed");
    let first = world.ask("DELETE", &path, KEY, "").await;
    assert_eq!(first.status, StatusCode::ACCEPTED, "{first:?}");
    let deletion = first.json();
    assert_eq!(deletion["reason"], "not needed");
    assert_eq!((&deletion["target_id"], &deletion["state"]), (&id.into(), &"running".into()));
    let location = format!("/api/v1/deletions/{}", deletion["id"].as_str().unwrap());
    assert_eq!(first.header("location"), location);
    assert_eq!(world.get(&location).await.json(), deletion);

    let second = world.ask("DELETE", &path, KEY, "").await;
    assert_eq!(second.status, StatusCode::ACCEPTED);
    assert_eq!(second.json(), deletion);
    let unknown = world.ask("DELETE", &format!("{path}&why=x"), KEY, "").await;
    assert_eq!(unknown.refused(400, "invalid_input").as_deref(), Some("why"));
}

#[tokio::test]
async fn an_explanation_says_what_is_waited_for() {
    let world = World::new().await;
    let id = world.declare("web-1").await;
    let answer = world.get(&format!("/api/v1/resources/{id}/explain")).await;
    let explanation = answer.json();
    assert_eq!((&explanation["name"], &explanation["state"]), (&"web-1".into(), &"Pending".into()));
    assert!(explanation["waiting_for"].is_string(), "{answer:?}");
    assert!(explanation["deadline"].is_string(), "{answer:?}");
}

#[tokio::test]
async fn force_is_refused_where_nothing_is_waited_for() {
    let world = World::new().await;
    let id = world.declare("web-1").await;
    let path = format!("/api/v1/resources/{id}/force-drain");
    world.post(&path, r#"{"reason":"gone"}"#).await.refused(409, "nothing_to_force");
    let field = world.post(&path, r#"{"reason":" "}"#).await.refused(400, "invalid_input");
    assert_eq!(field.as_deref(), Some("reason"));
}

/// A failed resource leads with its reason and the command; a retry takes corrections, all
/// of them or none; afterwards the failure is still there.
#[tokio::test]
async fn a_failed_resource_is_retried_with_corrections() {
    let world = World::new().await;
    let id = world.declare("web-1").await;
    let path = format!("/api/v1/resources/{id}/retry");
    let right = r#"{"reason":"a typo","parameters":{"busy_seconds":7}}"#;
    world.post(&path, right).await.refused(409, "nothing_to_retry");
    world.fail(&id, "no room in fsn1").await;

    let explained = world.get(&format!("/api/v1/explain/resource/{id}")).await.json();
    assert_eq!(explained["failure"]["reason"], "no room in fsn1", "{explained}");
    let commands = explained["remedies"].as_array().unwrap().iter();
    let commands: Vec<_> = commands.filter_map(|remedy| remedy["command"].as_str()).collect();
    assert_eq!(commands[0], format!("slipway resource retry {id} --reason <why>"));

    for (body, status, code, field) in [
        (
            r#"{"reason":"x","parameters":{"busy_seconds":"x"}}"#,
            422,
            "parameter_values_invalid",
            "parameters.busy_seconds",
        ),
        (
            r#"{"reason":"x","parameters":{"colour":1}}"#,
            422,
            "parameter_values_invalid",
            "parameters.colour",
        ),
        (r#"{"reason":"x","version":"v9"}"#, 422, "blueprint_not_found", "version"),
        (r#"{"reason":"x","version":"v9\u0000"}"#, 400, "invalid_input", "version"),
        (r#"{"reason":"x","handle":"y"}"#, 400, "invalid_input", "handle"),
    ] {
        let answer = world.post(&path, body).await;
        assert_eq!(answer.refused(status, code).as_deref(), Some(field), "{body}");
        let phase = world.get(&format!("/api/v1/resources/{id}")).await.json()["phase"].clone();
        assert_eq!(phase, "Failed", "nothing is half written: {body}");
    }
    let answer = world.post(&path, right).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{answer:?}");
    assert_eq!(answer.json()["phase"], "Deregistering");
    let explained = world.get(&format!("/api/v1/explain/resource/{id}")).await.json();
    assert_eq!(explained["facts"]["next_parameters"]["busy_seconds"], 7, "{explained}");
    assert_eq!(explained["remedies"], serde_json::Value::Null, "it cannot be retried twice");

    let attempts = world.get(&format!("/api/v1/resources/{id}/attempts")).await.json();
    assert_eq!(attempts[0]["failure"]["reason"], "no room in fsn1", "{attempts}");
    let shown = world.get(&format!("/api/v1/resources/{id}")).await.json();
    assert_eq!(shown["attempts"], attempts);
    let unknown = "0192f0c1-0000-7000-8000-123456789abc";
    let none = world.get(&format!("/api/v1/resources/{unknown}/attempts")).await;
    none.refused(404, "resource_not_found");
}

#[tokio::test]
async fn abandoning_wants_a_deletion_a_reason_and_the_handle() {
    let world = World::new().await;
    let id = world.declare("web-1").await;
    let path = format!("/api/v1/resources/{id}/abandon");
    let right = r#"{"reason":"lost","confirm":"web-1"}"#;
    world.post(&path, right).await.refused(409, "not_abandonable");
    for (body, at) in [
        (r#"{"reason":"lost","confirm":"web-2"}"#, "confirm"),
        (r#"{"reason":" ","confirm":"web-1"}"#, "reason"),
        (r#"{"reason":"lost"}"#, "confirm"),
    ] {
        let field = world.post(&path, body).await.refused(400, "invalid_input");
        assert_eq!(field.as_deref(), Some(at), "{body}");
    }
    let placement = "/api/v1/projects/default/cluster/abandon";
    let body = r#"{"reason":"lost","confirm":"default"}"#;
    world.post(placement, body).await.refused(409, "not_abandonable");
    world
        .post("/api/v1/projects/none/cluster/abandon", body)
        .await
        .refused(404, "project_not_found");
}

#[tokio::test]
async fn one_resource_is_shown_with_its_past() {
    let world = World::new().await;
    let id = world.declare("web-1").await;
    let shown = world.get(&format!("/api/v1/resources/{id}")).await.json();
    assert_eq!(shown["observed"], serde_json::Value::Null, "nobody looked yet");
    let attempts = shown["attempts"].as_array().unwrap();
    assert_eq!((attempts.len(), &attempts[0]["id"]), (1, &shown["attempt"]["id"]));
    assert_eq!(attempts[0]["phase"], "Pending");
    assert_eq!(shown["history"][0]["to"], "Pending", "{shown}");
    let listed = world.get("/api/v1/resources").await.json();
    assert_eq!(listed[0]["history"], serde_json::Value::Null, "lists stay short");
}

/// A resource that flapped for long: documents stay short and say where the rest is.
#[tokio::test]
async fn a_long_history_is_shown_in_part_and_read_by_pages() {
    let world = World::new().await;
    let id = world.declare("web-1").await;
    let path = format!("/api/v1/resources/{id}/history");
    let short = world.get(&format!("/api/v1/resources/{id}")).await.json();
    assert_eq!(short["older_history"], serde_json::Value::Null, "this is all of it");
    world.flap(&id, 1_234).await;
    let shown = world.get(&format!("/api/v1/resources/{id}")).await.json();
    let explained = world.get(&format!("/api/v1/explain/resource/{id}")).await.json();
    for (document, newest) in [(&shown, 0), (&explained, 99)] {
        let lines = document["history"].as_array().unwrap();
        assert_eq!((lines.len(), &lines[newest]["why"]), (100, &"turn 1234".into()));
        assert_eq!(document["older_history"], path, "{document}");
    }

    let (mut whys, mut next) = (Vec::new(), format!("{path}?limit=500&attempt=1"));
    loop {
        let answer = world.get(&next).await;
        let lines = answer.json();
        whys.extend(lines.as_array().unwrap().iter().map(|line| line["why"].clone()));
        let Some(link) = answer.headers.get("link") else { break };
        let link = link.to_str().unwrap();
        next = link.split(['<', '>']).nth(1).unwrap().to_owned();
        assert!(next.contains("attempt=1"), "{next}");
    }
    assert_eq!(whys.len(), 1_235, "with its declaration");
    assert_eq!((&whys[0], &whys[1_233]), (&"turn 1234".into(), &"turn 1".into()));
    assert_eq!(world.get(&path).await.json().as_array().unwrap().len(), 100, "a page");

    let refused = |query: &'static str| {
        let (world, path) = (&world, &path);
        async move { world.get(&format!("{path}?{query}")).await.refused(400, "invalid_input") }
    };
    assert_eq!(refused("attempt=2").await.as_deref(), Some("attempt"));
    assert_eq!(refused("attempt=first").await.as_deref(), Some("attempt"));
    assert_eq!(refused("cursor=x").await.as_deref(), Some("cursor"));
    assert_eq!(refused("limit=501").await.as_deref(), Some("limit"));
    let unknown = format!("/api/v1/resources/{}/history", uuid::Uuid::from_u128(1));
    world.get(&unknown).await.refused(404, "resource_not_found");
}
