//! What commands send and print.

use serde_json::{Value, json};
use slipway_cli::Exit;

use crate::plans::mk_plan;
use crate::stand_in::{ID, Reply, StandIn, mk_deletion, mk_problem, mk_resource};

const FORCE: [&str; 5] = ["resource", "force-drain", ID, "--reason", "it burned"];

#[tokio::test]
async fn a_creation_sends_what_was_typed() {
    let parameter = |name: &str, kind: &str| json!({ "name": name, "type": kind });
    let version = json!({
        "id": ID, "blueprint_id": ID, "blueprint": "local-node", "version": "v1", "xrd": "",
        "composition": "", "injection_strategy": "helm-values", "mesh_role": "node",
        "provider_kinds": [], "revision": 1, "published_at": "2026-01-01T00:00:00Z",
        "retired_at": null,
        "parameter_schema": { "parameters": [
            parameter("busy_seconds", "integer"), parameter("name", "string"),
        ] },
    });
    let replies = vec![Reply::of(200, json!([version])), Reply::of(202, mk_resource("Pending"))];
    let server = StandIn::new(replies).await;
    let line = [
        "resource",
        "create",
        "--handle",
        "web-1",
        "--blueprint",
        "local-node",
        "-p",
        "busy_seconds=4",
        "-p",
        "name=22",
        "-l",
        "team=a",
    ];
    let ended = server.run(&line).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    assert!(ended.output.contains("web-1"), "{ended:?}");
    assert!(server.lines()[0].starts_with("GET /api/v1/blueprints/local-node/versions?"));
    let asked = server.asked().remove(1);
    assert_eq!(asked.line, "POST /api/v1/resources");
    assert_eq!(asked.key.as_deref(), Some("Bearer slipway_key"));
    let body: Value = serde_json::from_str(&asked.body).unwrap();
    let expected = json!({
        "handle": "web-1", "blueprint": "local-node", "labels": { "team": "a" },
        "parameters": { "busy_seconds": 4, "name": "22" },
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn parameters_are_nested_and_come_from_a_file() {
    let version = json!({
        "id": ID, "blueprint_id": ID, "blueprint": "server", "version": "v1", "xrd": "",
        "composition": "", "injection_strategy": "helm-values", "mesh_role": "node",
        "provider_kinds": [], "revision": 1, "published_at": "2026-01-01T00:00:00Z",
        "retired_at": null,
        "parameter_schema": { "type": "object", "required": ["disk"], "properties": {
            "name": { "type": "string", "pattern": "^[0-9]+$" },
            "zones": { "type": "array", "items": { "type": "string" }, "maxItems": 3 },
            "disk": { "type": "object", "required": ["size"], "properties": {
                "size": { "type": "integer", "minimum": 10, "maximum": 500 },
                "kind": { "enum": ["ssd", "hdd"], "default": "ssd", "x-immutable": true },
            } },
        } },
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("values.yaml");
    std::fs::write(&file, "disk:\n  kind: hdd\n  size: 10\n").unwrap();
    let (file, disk, name) = (file.to_str().unwrap(), "disk.size=20", "name=123");
    let replies = vec![Reply::of(200, version.clone()), Reply::of(202, mk_resource("Pending"))];
    let server = StandIn::new(replies).await;
    let line = [
        "resource",
        "create",
        "--handle",
        "a",
        "--blueprint",
        "server",
        "--version",
        "v1",
        "--param",
        disk,
        "-p",
        name,
        "-p",
        "zones=[\"a\",\"b\"]",
        "--params-file",
        file,
    ];
    let ended = server.run(&line).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    let body: Value = serde_json::from_str(&server.asked()[1].body).unwrap();
    let expected = json!({
        "disk": { "kind": "hdd", "size": 20 }, "name": "123", "zones": ["a", "b"],
    });
    assert_eq!(body["parameters"], expected);

    let replies = vec![
        Reply::of(200, mk_resource("Failed")),
        Reply::of(200, version.clone()),
        Reply::of(202, mk_resource("Failed")),
    ];
    let server = StandIn::new(replies).await;
    let line =
        ["resource", "retry", ID, "--reason", "x", "-p", name, "-p", disk, "--unset", "disk.kind"];
    let ended = server.run(&line).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    let body: Value = serde_json::from_str(&server.asked()[2].body).unwrap();
    let expected = json!({ "disk": { "kind": null, "size": 20 }, "name": "123" });
    assert_eq!(body["parameters"], expected);

    let server = StandIn::new(vec![Reply::of(200, json!([version]))]).await;
    let ended = server.run(&["blueprint", "version", "server"]).await;
    insta::assert_snapshot!(ended.output);

    std::fs::write(file, "- a\n").unwrap();
    let server = StandIn::new(Vec::new()).await;
    let line = ["resource", "create", "--handle", "a", "--blueprint", "b", "--params-file", file];
    let ended = server.run(&line).await;
    assert_eq!((ended.exit, server.lines().len()), (Exit::Usage, 0));
    assert!(ended.errors.contains("is not a map of parameters"), "{ended:?}");
}

#[tokio::test]
async fn the_same_parameter_twice_is_wrong_usage() {
    let server = StandIn::new(Vec::new()).await;
    let line =
        ["resource", "create", "--handle", "a", "--blueprint", "b", "-p", "x=1", "-p", "x=2"];
    let ended = server.run(&line).await;
    assert_eq!(ended.exit, Exit::Usage);
    assert_eq!(server.lines(), [""; 0], "nothing was sent");
}

#[tokio::test]
async fn json_is_the_document_and_nothing_else() {
    let mut document = mk_resource("Ready");
    document["observed"] = json!({ "node": "registered" });
    document["attempts"] = json!([{
        "id": ID, "number": 1, "phase": "Ready", "phase_since": "2026-01-01T00:00:00Z",
        "created_at": "2026-01-01T00:00:00Z", "in_use": true, "blueprint_version": "v1",
        "absence_proven_at": null, "abandoned_at": null,
    }]);
    document["history"] =
        json!([{ "at": "2026-01-01T00:00:00Z", "from": null, "to": "Pending", "why": "declared" }]);
    let server = StandIn::new(vec![Reply::of(200, document.clone())]).await;
    let ended = server.run(&["resource", "get", ID, "-o", "json"]).await;
    let shown: Value = serde_json::from_str(&ended.output).unwrap();
    assert_eq!(shown, document);
    assert_eq!(ended.errors, "");
}

#[tokio::test]
async fn a_list_is_read_to_its_end() {
    let first = Reply {
        link: Some("</api/v1/resources?limit=500&cursor=c>; rel=\"next\"".to_owned()),
        ..Reply::of(200, json!([mk_resource("Ready")]))
    };
    let last = Reply::of(200, json!([mk_resource("Pending")]));
    let server = StandIn::new(vec![first, last]).await;
    let ended = server.run(&["resource", "list", "--project", "p q"]).await;
    assert!(ended.output.contains("Ready") && ended.output.contains("Pending"), "{ended:?}");
    assert!(!ended.output.contains('\u{1b}'), "no colours in a pipe");
    let expected =
        ["GET /api/v1/resources?project=p+q&limit=500", "GET /api/v1/resources?limit=500&cursor=c"];
    assert_eq!(server.lines(), expected);
}

#[tokio::test]
async fn a_handle_is_looked_up_also_among_the_deleted() {
    let replies = vec![
        Reply::of(200, json!([])),
        Reply::of(200, json!([mk_resource("Deleted")])),
        Reply::of(200, mk_resource("Deleted")),
    ];
    let server = StandIn::new(replies).await;
    let ended = server.run(&["resource", "get", "web-1"]).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    let lines = server.lines();
    assert!(lines[1].contains("handle=web-1&show_deleted=true"), "{lines:?}");
}

/// No list shows a quarantined resource. It is found by its handle all the same, and never
/// taken for another one.
#[tokio::test]
async fn the_handle_of_a_quarantined_resource_is_found() {
    let listed = || Reply { quarantined: Some(ID), ..Reply::of(200, json!([])) };
    let invalid = || Reply::of(409, mk_problem(409, "row_invalid"));
    for line in [
        &["resource", "get", "db-0"][..],
        &["resource", "delete", "db-0", "--yes", "--reason", "x"],
        &["resource", "force-drain", "db-0", "--yes", "--reason", "x"],
    ] {
        let server = StandIn::new(vec![listed(), invalid()]).await;
        let ended = server.run(line).await;
        assert_eq!(ended.exit, Exit::Refused, "{ended:?}");
        assert!(!ended.errors.contains("did you mean"), "{ended:?}");
        assert_eq!(server.lines()[1], "GET /api/v1/resources/db-0");
    }

    let explained = json!({
        "kind": "resource", "id": ID, "name": "db-0", "state": "Odd",
        "since": "2026-01-31T12:00:00Z", "waiting_for": null, "deadline": null, "overdue": false,
        "next": "", "next_check_at": null, "held_by": null, "facts": {}, "observed": null,
        "parts": [], "history": [],
        "blockers": [{
            "code": "row_invalid", "owner": "platform", "message": "x",
            "since": "2026-01-31T12:00:00Z", "evidence": {}, "next_retry_at": null,
            "remedies": [],
        }],
    });
    let server = StandIn::new(vec![listed(), Reply::of(200, explained)]).await;
    let ended = server.run(&["resource", "list", "--blocked"]).await;
    assert!(ended.errors.contains("no resources that can be read"), "{ended:?}");
    let named = format!("resource `db-0` (Odd, row_invalid; {ID})");
    assert!(ended.errors.contains(&named), "{ended:?}");
}

#[tokio::test]
async fn a_handle_in_two_projects_has_to_be_chosen() {
    let two = json!([mk_resource("Ready"), mk_resource("Ready")]);
    let server = StandIn::new(vec![Reply::of(200, two)]).await;
    let ended = server.run(&["resource", "get", "web-1"]).await;
    assert_eq!(ended.exit, Exit::Usage);
    assert!(ended.errors.contains("--project"), "{ended:?}");
}

#[tokio::test]
async fn harm_without_a_terminal_wants_yes_and_sends_nothing() {
    for line in [&["resource", "delete", "web-1"][..], &FORCE] {
        let server = StandIn::new(Vec::new()).await;
        let ended = server.run(line).await;
        assert_eq!(ended.exit, Exit::Usage, "{line:?}: {ended:?}");
        assert!(ended.errors.contains("--yes"), "{ended:?}");
        assert_eq!(server.lines(), [""; 0], "{line:?}");
    }
}

#[tokio::test]
async fn forcing_on_a_terminal_asks() {
    for (answer, exit) in [("n\n", Exit::Refused), ("y\n", Exit::Success)] {
        let server = StandIn::new(vec![Reply::of(200, mk_resource("Deregistering"))]).await;
        let ended = server.run_asked(&FORCE, answer).await;
        assert_eq!(ended.exit, exit, "{answer:?}: {ended:?}");
        assert!(ended.errors.contains("what the node is doing for `web-1`"), "{ended:?}");
        let forced = server.lines().iter().any(|line| line.starts_with("POST "));
        assert_eq!(forced, exit == Exit::Success, "{answer:?}");
    }
}

const ABANDON: [&str; 5] = ["resource", "abandon", ID, "--reason", "it burned"];

/// A yes is not enough: the handle is typed, or given where nobody can type it.
#[tokio::test]
async fn abandoning_wants_the_handle() {
    let mk_server =
        async || StandIn::new(vec![Reply::of(200, mk_resource("Deprovisioning"))]).await;
    for (answer, exit) in [("y\n", Exit::Refused), ("", Exit::Refused), ("web-1\n", Exit::Success)]
    {
        let server = mk_server().await;
        let ended = server.run_asked(&ABANDON, answer).await;
        assert_eq!(ended.exit, exit, "{answer:?}: {ended:?}");
        assert!(ended.errors.contains("Type `web-1` to go on:"), "{ended:?}");
        let sent = server.lines().iter().any(|line| line.starts_with("POST "));
        assert_eq!(sent, exit == Exit::Success, "{answer:?}");
    }
    let server = mk_server().await;
    let ended = server.run(&ABANDON).await;
    assert!(ended.errors.contains("--confirm"), "{ended:?}");
    assert_eq!(server.lines(), [""; 0], "nothing is sent before");
    let line = [ABANDON.as_slice(), &["--confirm", "web-1"]].concat();
    let ended = server.run(&line).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    let asked = server.asked();
    assert_eq!(asked[1].line, format!("POST /api/v1/resources/{ID}/abandon"));
    assert_eq!(asked[1].body, r#"{"reason":"it burned","confirm":"web-1"}"#);
}

#[tokio::test]
async fn deleting_on_a_terminal_asks() {
    let found = || Reply::of(200, mk_resource("Ready"));
    for (answer, exit) in [("n\n", Exit::Refused), ("", Exit::Refused), ("YES\n", Exit::Success)] {
        let planned = Reply::of(201, mk_plan());
        let server = StandIn::new(vec![found(), planned, Reply::of(202, mk_deletion())]).await;
        let ended = server.run_asked(&["resource", "delete", ID], answer).await;
        assert_eq!(ended.exit, exit, "{answer:?}: {ended:?}");
        assert!(ended.errors.contains("Delete `web-1`"), "{ended:?}");
        assert_eq!(server.lines().len() == 3, exit == Exit::Success, "{answer:?}");
    }
}

#[tokio::test]
async fn a_deletion_carries_its_reason() {
    let replies = vec![Reply::of(200, mk_resource("Ready")), Reply::of(202, mk_deletion())];
    let server = StandIn::new(replies).await;
    let ended = server.run(&["resource", "delete", ID, "--yes", "--reason", "not needed"]).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    assert_eq!(server.lines()[1], format!("DELETE /api/v1/resources/{ID}?reason=not+needed"));
}

#[tokio::test]
async fn a_forced_drain_says_why() {
    let server = StandIn::new(vec![Reply::of(200, mk_resource("Deregistering"))]).await;
    let ended =
        server.run(&["resource", "force-drain", ID, "--yes", "--reason", "it burned"]).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    let asked = server.asked();
    assert_eq!(asked[1].line, format!("POST /api/v1/resources/{ID}/force-drain"));
    assert_eq!(asked[1].body, r#"{"reason":"it burned"}"#);
}

/// A drain is forced to delete what it is of.
#[tokio::test]
async fn a_forced_drain_can_be_waited_for() {
    let mut forced = mk_resource("Deregistering");
    forced["deletion_id"] = json!(ID);
    let replies = vec![
        Reply::of(200, mk_resource("Deregistering")),
        Reply::of(202, forced),
        Reply::of(200, mk_resource("Deleted")),
    ];
    let server = StandIn::new(replies).await;
    let ended = server.run(&[&FORCE[..], &["--yes", "--wait"]].concat()).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    assert!(ended.output.contains("Deleted since"), "{ended:?}");
}

#[tokio::test]
async fn what_is_gone_already_can_be_deleted_again() {
    let missing = || Reply::of(404, mk_problem(404, "project_not_found"));
    let line = ["project", "delete", "shop", "--yes"];
    let server = StandIn::new(vec![missing()]).await;
    assert_eq!(server.run(&line).await.exit, Exit::NotFound);
    let ended = server.run(&[&line[..], &["--ignore-not-found"]].concat()).await;
    assert_eq!((ended.exit, ended.output.as_str()), (Exit::Success, ""), "{ended:?}");
    assert!(ended.errors.starts_with("nothing to do: "), "{ended:?}");
}

/// A key in a file ends with a line end.
#[tokio::test]
async fn a_key_is_read_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, "slipway_of_the_file\n").unwrap();
    let server = StandIn::new(vec![Reply::of(200, json!([]))]).await;
    let ended = server.run(&["node", "list", "--key-file", file.to_str().unwrap()]).await;
    assert_eq!((ended.exit, ended.output.as_str()), (Exit::Success, ""), "{ended:?}");
    assert_eq!(ended.errors, "no nodes\n");
    assert_eq!(server.asked()[0].key.as_deref(), Some("Bearer slipway_of_the_file"));
}

/// The one in use is Ready all the time; what is waited for is the other one.
#[tokio::test]
async fn a_surge_waits_for_the_new_attempt_and_ends_if_that_fails() {
    let with = |phase: &str, comes_in_use: bool| {
        let mut resource = mk_resource("Ready");
        resource["second_attempt"] = json!({
            "id": ID, "number": 2, "phase": phase, "phase_since": "2026-01-31T12:00:00.000000Z",
            "comes_in_use": comes_in_use, "blueprint_version": "v1", "parameters": {},
            "failure_reason": "no quota", "deletion_id": null, "node": null, "blockers": [],
        });
        resource
    };
    let mut over = with("Deregistering", false);
    over["attempt"]["number"] = json!(2);
    over["second_attempt"]["number"] = json!(1);
    let line = ["resource", "replace", ID, "--surge", "--yes", "--wait"];
    for (last, exit) in [(over, Exit::Success), (with("Failed", true), Exit::EndedInFailed)] {
        let replies = vec![
            Reply::of(200, mk_resource("Ready")),
            Reply::of(202, with("Pending", true)),
            Reply::of(200, with("Provisioning", true)),
            Reply::of(200, last),
        ];
        let server = StandIn::new(replies).await;
        let ended = server.run(&line).await;
        assert_eq!(ended.exit, exit, "{ended:?}");
        assert_eq!(server.asked()[1].body, r#"{"surge":true}"#);
        assert!(ended.errors.contains("attempt 2 Provisioning"), "{ended:?}");
    }
    let server = StandIn::new(vec![Reply::of(200, with("Failed", true))]).await;
    let ended = server.run(&["resource", "get", ID]).await;
    let second = "2 is Failed and comes in use when it is Ready; failed: no quota";
    assert!(ended.output.contains(second), "{ended:?}");
}
