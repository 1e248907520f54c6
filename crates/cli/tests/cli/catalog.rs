//! The catalog's commands: what they send and print.

use serde_json::{Value, json};
use slipway_cli::Exit;

use crate::stand_in::{ID, Reply, StandIn, mk_deletion, mk_resource};

const TIME: &str = "2026-01-31T12:00:00.000000Z";

fn mk_project() -> Value {
    json!({
        "id": ID, "name": "team-a", "labels": { "tier": "1" }, "revision": 1,
        "created_at": TIME, "updated_at": TIME, "deleted_at": null, "deletion_id": null,
    })
}

fn mk_cloud() -> Value {
    json!({
        "id": ID, "name": "berlin", "provider": "hetzner", "endpoint": { "region": "eu" },
        "revision": 1, "created_at": TIME, "updated_at": TIME, "deleted_at": null,
        "deletion_id": null,
    })
}

fn mk_credential() -> Value {
    json!({
        "id": ID, "cloud_id": ID, "name": "billing", "kv_mount": "secret", "kv_path": "a/b",
        "revision": 1, "created_at": TIME, "updated_at": TIME, "deleted_at": null,
        "deletion_id": null,
    })
}

fn mk_assigned() -> Value {
    json!([{ "project_id": ID, "assigned_at": TIME, "credential": mk_credential() }])
}

fn mk_version() -> Value {
    json!({
        "id": ID, "blueprint_id": ID, "blueprint": "small", "version": "v1", "xrd": "",
        "composition": "", "injection_strategy": "helm-values", "mesh_role": "node",
        "parameter_schema": { "parameters": [
            { "name": "size", "type": "integer", "required": true },
            { "name": "zone", "type": "string", "required": false, "default": "a" },
        ] },
        "provider_kinds": ["hetzner"], "revision": 1, "published_at": TIME, "retired_at": null,
    })
}

fn mk_crossplane_version() -> Value {
    let mut version = mk_version();
    version["install_definitions"] = json!(true);
    version["composite"] = json!({
        "apiVersion": "nodes.example.org/v1", "kind": "XServer", "plural": "xservers",
        "scope": "Namespaced",
    });
    version
}

fn mk_definitions() -> Value {
    json!({
        "cluster": "east", "cluster_id": ID, "wanted_version": "v2", "found_version": "v1",
        "phase": "Degraded", "problem": "it is left alone", "since": TIME, "updated_at": TIME,
    })
}

fn mk_blueprints() -> Value {
    json!([{
        "id": ID, "slug": "small", "display_name": "Small", "description": "", "engine": "local",
        "revision": 1, "created_at": TIME, "updated_at": TIME, "deleted_at": TIME,
        "deletion_id": ID,
    }])
}

fn mk_cluster() -> Value {
    json!({
        "id": ID, "name": "here", "engine": "local", "substrate_uid": null,
        "namespace_prefix": "ns-", "revision": 1, "created_at": TIME, "updated_at": TIME,
    })
}

fn mk_assignment() -> Value {
    json!({
        "project_id": ID, "cluster_id": ID, "namespace": "ns-1", "namespace_phase": "Ready",
        "revision": 1, "created_at": TIME, "updated_at": TIME,
    })
}

fn mk_label() -> Value {
    json!({
        "id": ID, "key": "cost/center", "description": "who pays", "propagate": true,
        "revision": 1, "created_at": TIME, "updated_at": TIME,
    })
}

/// Runs a command line against one answer; returns the request and the output.
async fn ask(answer: Value, line: &str) -> (String, Value, String) {
    let server = StandIn::new(vec![Reply::of(200, answer)]).await;
    let line: Vec<_> = line.split(' ').collect();
    let ended = Box::pin(server.run(&line)).await;
    assert_eq!(ended.exit, Exit::Success, "{line:?}: {ended:?}");
    let asked = server.asked().remove(0);
    let body = serde_json::from_str(&asked.body).unwrap_or(Value::Null);
    (asked.line, body, ended.output)
}

#[tokio::test]
async fn what_is_made_is_sent_as_it_was_said() {
    let table = [
        (
            "project create team-a -l tier=1",
            mk_project(),
            "POST /api/v1/projects",
            json!({ "name": "team-a", "labels": { "tier": "1" } }),
        ),
        (
            "project create team-a --mesh-cidr 10.42.0.0/16",
            mk_project(),
            "POST /api/v1/projects",
            json!({ "name": "team-a", "mesh_cidr": "10.42.0.0/16" }),
        ),
        (
            "project mesh team-a fd00:42::/64",
            mk_project(),
            "PATCH /api/v1/projects/team-a",
            json!({ "mesh_cidr": "fd00:42::/64" }),
        ),
        (
            "cluster update here --access kubeconfig/west --region eu",
            mk_cluster(),
            "PATCH /api/v1/clusters/here",
            json!({ "access": "kubeconfig/west", "region": "eu" }),
        ),
        (
            "cloud create berlin --provider hetzner --endpoint region=eu --endpoint port=443",
            mk_cloud(),
            "POST /api/v1/clouds",
            json!({
                "name": "berlin", "provider": "hetzner",
                "endpoint": { "region": "eu", "port": 443 },
            }),
        ),
        (
            "credential create billing --cloud berlin --kv-path a/b",
            mk_credential(),
            "POST /api/v1/credentials",
            json!({ "cloud": "berlin", "name": "billing", "kv_path": "a/b" }),
        ),
        (
            "label define cost/center --propagate",
            mk_label(),
            "POST /api/v1/labels",
            json!({ "key": "cost/center", "propagate": true }),
        ),
        (
            "cluster create here --engine local",
            mk_cluster(),
            "POST /api/v1/clusters",
            json!({ "name": "here", "engine": "local" }),
        ),
        (
            "cluster assign here --project team-a",
            mk_assignment(),
            "PUT /api/v1/projects/team-a/cluster",
            json!({ "cluster": "here" }),
        ),
    ];
    for (line, answer, request, body) in table {
        let (asked, sent, _) = ask(answer, line).await;
        assert_eq!((asked.as_str(), &sent), (request, &body), "{line}");
    }
}

#[tokio::test]
async fn lists_are_tables_that_name_what_people_look_for() {
    let table = [
        ("project list", json!([mk_project()]), "projects?", vec!["NAME", "team-a", "tier=1"]),
        ("cloud list --show-deleted", json!([mk_cloud()]), "show_deleted=true", vec!["region=eu"]),
        ("credential list --cloud x", json!([mk_credential()]), "?cloud=x", vec!["a/b"]),
        ("credential list --project p", mk_assigned(), "projects/p/credentials", vec!["billing"]),
        ("blueprint versions small", json!([mk_version()]), "small/versions", vec!["RETIRED"]),
        (
            "blueprint definitions small",
            json!([mk_definitions()]),
            "small/definitions",
            vec!["east", "v2", "v1", "Degraded", "is left alone"],
        ),
        (
            "blueprint rbac small",
            json!([mk_version(), mk_crossplane_version()]),
            "small/versions",
            vec!["role: small\nof: xservers\n"],
        ),
        ("label list", json!([mk_label()]), "labels?", vec!["cost/center", "yes", "DELETED"]),
        ("label list --show-deleted", json!([mk_label()]), "show_deleted=true", vec!["yes"]),
        ("cluster list", json!([mk_cluster()]), "clusters?", vec!["not yet", "DELETED"]),
        ("cluster list --show-deleted", json!([mk_cluster()]), "show_deleted=true", vec!["here"]),
        ("blueprint list --show-deleted", mk_blueprints(), "show_deleted=true", vec!["DELETED"]),
        ("cluster assignments", json!([mk_assignment()]), "cluster-assignments?", vec!["Ready"]),
        ("label get cost/center", mk_label(), "labels/cost%2Fcenter", vec!["who pays"]),
        (
            "resource list -l team=a -l tier --blocked --show-deleted",
            json!([mk_resource("Ready")]),
            "?blocked=true&label=team%3Da&label=tier&show_deleted=true",
            vec!["web-1"],
        ),
        (
            "resource list --blocked node_left",
            json!([mk_resource("Ready")]),
            "blocked=node_left",
            vec!["web-1"],
        ),
    ];
    for (line, answer, request, shown) in table {
        let (asked, _, output) = ask(answer, line).await;
        assert!(asked.contains(request), "{line}: {asked}");
        for text in shown {
            assert!(output.contains(text), "{line}: {output}");
        }
    }
}

#[tokio::test]
async fn yaml_is_the_document() {
    let (_, _, output) = ask(mk_project(), "project get team-a -o yaml").await;
    assert!(output.contains("name: team-a") && output.contains("  tier: '1'"), "{output}");
}

#[tokio::test]
async fn harm_wants_yes_where_nobody_can_be_asked() {
    for line in [
        "project delete team-a",
        "cloud delete berlin",
        "credential delete billing",
        "credential unassign billing --project p",
        "blueprint retire small v1",
        "blueprint delete small",
        "label delete team",
        "cluster unassign --project p",
        "cluster delete here",
    ] {
        let server = StandIn::new(Vec::new()).await;
        let ended = server.run(&line.split(' ').collect::<Vec<_>>()).await;
        assert_eq!(ended.exit, Exit::Usage, "{line}: {ended:?}");
        assert!(ended.errors.contains("--yes"), "{line}: {ended:?}");
        assert_eq!(server.lines(), [""; 0], "{line}");
    }
    let server = StandIn::new(vec![Reply::of(200, mk_deletion())]).await;
    let line = ["project", "delete", "team-a", "--yes", "--reason", "moved"];
    let ended = server.run(&line).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    assert_eq!(server.lines(), ["DELETE /api/v1/projects/team-a?reason=moved"]);
    for (line, request) in [
        ("blueprint delete small --yes --reason old", "blueprints/small?reason=old"),
        ("label delete cost/center --yes --reason old", "labels/cost%2Fcenter?reason=old"),
    ] {
        let (asked, _, output) = ask(mk_deletion(), line).await;
        assert_eq!(asked, format!("DELETE /api/v1/{request}"));
        assert!(output.contains("reason"), "{output}");
    }
}

#[tokio::test]
async fn a_credential_goes_by_its_name_and_a_name_in_two_clouds_has_to_be_chosen() {
    let replies = vec![
        Reply::of(200, json!([mk_credential()])),
        Reply::of(204, Value::Null),
        Reply::of(200, mk_assigned()),
    ];
    let server = StandIn::new(replies).await;
    let ended = server.run(&["credential", "assign", "billing", "--project", "team-a"]).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    let lines = server.lines();
    assert_eq!(lines[0], "GET /api/v1/credentials?name=billing&limit=500");
    assert_eq!(lines[1], format!("PUT /api/v1/projects/team-a/credentials/{ID}"));
    assert!(ended.output.contains("billing"), "{ended:?}");

    let two = json!([mk_credential(), mk_credential()]);
    let server = StandIn::new(vec![Reply::of(200, two)]).await;
    let ended = server.run(&["credential", "get", "billing"]).await;
    assert_eq!(ended.exit, Exit::Usage);
    assert!(ended.errors.contains("--cloud"), "{ended:?}");
    let server = StandIn::new(vec![Reply::of(200, json!([]))]).await;
    assert_eq!(server.run(&["credential", "get", "billing"]).await.exit, Exit::NotFound);
}

#[tokio::test]
async fn a_folder_is_published_whole() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("small");
    std::fs::create_dir(&folder).unwrap();
    let metadata = json!({
        "slug": "small", "displayName": "Small", "description": "", "version": "v1",
        "providerKinds": ["hetzner"], "injectionStrategy": "helm-values", "meshRole": "node",
        "parameterSchema": mk_version()["parameter_schema"],
    });
    std::fs::write(folder.join("metadata.json"), metadata.to_string()).unwrap();
    std::fs::write(folder.join("xrd.yaml"), "kind: X\n").unwrap();
    std::fs::write(folder.join("composition.yaml"), "kind: C\n").unwrap();
    let server = StandIn::new(vec![Reply::of(201, mk_version())]).await;
    let ended = server.run(&["blueprint", "publish", "-f", folder.to_str().unwrap()]).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    let asked = &server.asked()[0];
    assert_eq!(asked.line, "POST /api/v1/blueprints/small/versions");
    let body: Value = serde_json::from_str(&asked.body).unwrap();
    assert_eq!((&body["xrd"], &body["version"]), (&"kind: X\n".into(), &"v1".into()));
    assert_eq!(body["parameter_schema"], mk_version()["parameter_schema"]);
    assert_eq!(body.get("install_definitions"), None, "an older server knows no such field");
    for shown in ["size: integer (required)\n", "zone: string = \"a\"\n"] {
        assert!(ended.output.contains(shown), "{}", ended.output);
    }

    let server = StandIn::new(vec![Reply::of(201, mk_crossplane_version())]).await;
    let folder = folder.to_str().unwrap();
    let ended = server.run(&["blueprint", "publish", "-f", folder, "--install-definitions"]).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    let body: Value = serde_json::from_str(&server.asked()[0].body).unwrap();
    assert_eq!(body["install_definitions"], true);
    assert!(ended.output.contains("nodes.example.org/v1 XServer"), "{}", ended.output);
    let server = StandIn::new(vec![Reply::of(200, json!([mk_version()]))]).await;
    let ended = server.run(&["blueprint", "rbac", "small"]).await;
    assert_eq!(ended.exit, Exit::Usage, "{ended:?}");
    assert!(ended.errors.contains("only engine crossplane"), "{}", ended.errors);

    let server = StandIn::new(Vec::new()).await;
    let nowhere = root.path().join("nothing");
    let ended = server.run(&["blueprint", "publish", "-f", nowhere.to_str().unwrap()]).await;
    assert_eq!((ended.exit, server.lines().len()), (Exit::Usage, 0), "{ended:?}");
}

/// The command sends nothing while an entry is invalid, and reports each fault.
#[tokio::test]
async fn a_catalog_is_checked_before_anything_is_sent() {
    let root = tempfile::tempdir().unwrap();
    for (slug, xrd) in [("bad", "broken"), ("good", "kind: X")] {
        let folder = root.path().join(slug);
        std::fs::create_dir(&folder).unwrap();
        let metadata = json!({
            "slug": slug, "version": "v1", "providerKinds": ["hetzner"],
            "injectionStrategy": "helm-values",
        });
        std::fs::write(folder.join("metadata.json"), metadata.to_string()).unwrap();
        std::fs::write(folder.join("xrd.yaml"), xrd).unwrap();
        std::fs::write(folder.join("composition.yaml"), "kind: C\n").unwrap();
    }
    std::fs::create_dir(root.path().join("half")).unwrap();
    let server = StandIn::new(Vec::new()).await;
    let folder = root.path().to_str().unwrap();
    let ended = server.run(&["blueprint", "import", folder]).await;
    assert_eq!((ended.exit, server.lines().len()), (Exit::Refused, 0), "{ended:?}");
    for said in ["xrd: is broken", "not_sent", "3 faults, see below"] {
        assert!(ended.output.contains(said), "{said}: {}", ended.output);
    }
    for line in ["\n  bad/xrd: is broken; mend it\n", "\n  half/metadata.json: cannot be read"] {
        assert!(ended.errors.contains(line), "{line}: {}", ended.errors);
    }
    assert!(ended.errors.contains("error[import_incomplete]: 3 of 3"), "{}", ended.errors);
}

#[tokio::test]
async fn a_resource_is_relabelled_by_its_handle() {
    let replies =
        vec![Reply::of(200, json!([mk_resource("Ready")])), Reply::of(200, mk_resource("Ready"))];
    let server = StandIn::new(replies).await;
    let ended = server.run(&["resource", "relabel", "web-1", "-l", "a=b"]).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    let asked = &server.asked()[1];
    assert_eq!(asked.line, format!("PATCH /api/v1/resources/{ID}"));
    assert_eq!(asked.body, r#"{"labels":{"a":"b"}}"#);
}

/// One label more or less keeps the others, under the revision that was read.
#[tokio::test]
async fn one_label_is_added_or_removed_and_the_others_stay() {
    let mut resource = mk_resource("Ready");
    resource["labels"] = json!({ "team": "a", "tier": "web" });
    let replies = vec![Reply::of(200, json!([resource])), Reply::of(200, mk_resource("Ready"))];
    let server = StandIn::new(replies).await;
    let line = ["resource", "relabel", "web-1", "--add", "zone=b", "--remove", "team"];
    let ended = server.run(&line).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    assert_eq!(server.asked()[1].body, r#"{"labels":{"tier":"web","zone":"b"}}"#);

    let server =
        StandIn::new(vec![Reply::of(200, mk_project()), Reply::of(200, mk_project())]).await;
    let ended = server.run(&["project", "relabel", "team-a", "-l", "a=b"]).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    let asked = &server.asked()[1];
    assert_eq!(asked.line, format!("PATCH /api/v1/projects/{ID}"));
    assert_eq!(asked.body, r#"{"labels":{"a":"b"}}"#);
}

/// Without labels nothing is wiped: a person is asked, a script is refused.
#[tokio::test]
async fn labels_are_not_wiped_by_leaving_them_out() {
    for noun in ["resource", "project"] {
        let server = StandIn::new(Vec::new()).await;
        let ended = server.run(&[noun, "relabel", "web-1"]).await;
        assert_eq!((ended.exit, server.lines().len()), (Exit::Usage, 0), "{ended:?}");
        assert!(ended.errors.contains("give --label, --add or --remove"), "{}", ended.errors);
    }
    let mut resource = mk_resource("Ready");
    resource["labels"] = json!({ "team": "a" });
    for (answer, exit, sent) in [("n\n", Exit::Refused, 1), ("y\n", Exit::Success, 2)] {
        let replies = vec![Reply::of(200, json!([resource])), Reply::of(200, mk_resource("Ready"))];
        let server = StandIn::new(replies).await;
        let ended = server.run_asked(&["resource", "relabel", "web-1"], answer).await;
        assert_eq!((ended.exit, server.lines().len()), (exit, sent), "{ended:?}");
        assert!(ended.errors.contains("Take all labels of `web-1` away (team)?"), "{ended:?}");
    }
    let line = ["resource", "relabel", "web-1", "--add", "a=b", "--remove", "a"];
    let server = StandIn::new(vec![Reply::of(200, json!([mk_resource("Ready")]))]).await;
    let ended = server.run(&line).await;
    assert_eq!((ended.exit, server.lines().len()), (Exit::Usage, 1), "{ended:?}");
}
