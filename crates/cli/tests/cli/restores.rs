//! `slipway deletion restore`: by the id of a deletion, or by what it deleted.

use serde_json::{Value, json};
use slipway_cli::Exit;

use crate::stand_in::{ID, Reply, StandIn, mk_deletion, mk_resource};

fn restored() -> Value {
    let mut deletion = mk_deletion();
    deletion["state"] = json!("restored");
    json!({
        "deletion": deletion, "dry_run": false, "restored_count": 3, "conflict_count": 0,
        "restored": [
            { "kind": "project", "name": "shop", "id": ID },
            { "kind": "resource", "name": "web-1", "id": ID, "attempt": 2 },
        ],
    })
}

#[tokio::test]
async fn a_restore_says_what_comes_back() {
    let server = StandIn::new(vec![Reply::of(200, restored())]).await;
    let line = ["deletion", "restore", ID, "--redeclare", "--rename", "shop-2", "--rename", "a=b"];
    let ended = server.run(&line).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    for shown in ["project shop", "resource web-1 (attempt 2)", "1 more"] {
        assert!(ended.output.contains(shown), "{ended:?}");
    }
    let asked = &server.asked()[0];
    assert_eq!(asked.line, format!("POST /api/v1/deletions/{ID}/restore"));
    let body: Value = serde_json::from_str(&asked.body).unwrap();
    assert_eq!(body["rename"], "shop-2");
    assert_eq!(body["rename_members"], json!({ "a": "b" }));
    assert_eq!((&body["redeclare"], &body["dry_run"]), (&json!(true), &json!(false)));

    let twice = server.run(&["deletion", "restore", ID, "--rename", "a", "--rename", "b"]).await;
    assert_eq!(twice.exit, Exit::Usage, "{twice:?}");
}

#[tokio::test]
async fn what_was_deleted_is_found_by_its_name_if_there_is_one() {
    let one = json!([mk_deletion()]);
    let server = StandIn::new(vec![Reply::of(200, one), Reply::of(200, restored())]).await;
    let ended = server.run(&["deletion", "restore", "project", "shop"]).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    let listed = &server.lines()[0];
    for part in ["kind=project", "name=shop", "restorable=true"] {
        assert!(listed.contains(part), "{listed}");
    }

    let server = StandIn::new(vec![Reply::of(200, json!([]))]).await;
    let none = server.run(&["deletion", "restore", "project", "shop"]).await;
    assert_eq!(none.exit, Exit::NotFound, "{none:?}");
    assert!(none.errors.contains("slipway deletion list --name shop"), "{none:?}");

    let several: Vec<_> = ["2026-01-31T12:00:00Z", "2026-02-01T12:00:00Z"]
        .map(|at| {
            let mut deletion = mk_deletion();
            deletion["done_at"] = json!(at);
            deletion
        })
        .into();
    let server = StandIn::new(vec![Reply::of(200, json!(several))]).await;
    let ended = server.run(&["deletion", "restore", "project", "shop"]).await;
    assert_eq!(ended.exit, Exit::Usage, "{ended:?}");
    for shown in [ID, "2026-01-31 12:00:00Z", "2026-02-01 12:00:00Z"] {
        assert!(ended.errors.contains(shown), "{ended:?}");
    }
    assert_eq!(server.lines().len(), 1, "nothing is guessed");
}

#[tokio::test]
async fn what_is_shown_begins_with_its_scheduled_deletion() {
    let mut resource = mk_resource("Ready");
    resource["deletion_id"] = json!(ID);
    let mut deletion = mk_deletion();
    deletion["state"] = json!("scheduled");
    deletion["scheduled_for"] = json!("2026-02-01T12:00:00.000000Z");
    let replies = vec![Reply::of(200, resource), Reply::of(200, deletion)];
    let server = StandIn::new(replies).await;
    let ended = server.run(&["resource", "get", ID]).await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    let text = ended.errors.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("will be deleted at 2026-02-01 12:00:00Z"), "{ended:?}");
    assert!(text.contains(&format!("slipway deletion cancel {ID}")), "{ended:?}");
}
