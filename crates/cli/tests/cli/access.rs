//! `slipway key`, `token` and `audit`: what they send and print.

use serde_json::{Value, json};
use slipway_cli::Exit;

use crate::stand_in::{Ended, ID, Reply, StandIn, mk_resource};

const TIME: &str = "2026-01-31T12:00:00.000000Z";

async fn run(server: &StandIn, line: &str) -> Ended {
    server.run(&line.split(' ').collect::<Vec<_>>()).await
}

fn mk_key(text: Option<&str>) -> Value {
    json!({
        "id": ID, "name": "ci", "role": "operator", "project_id": null, "state": "usable",
        "created_at": TIME, "created_by": "key:admin", "expires_at": null, "rotated_at": null,
        "previous_until": null, "revoked_at": null, "revision": 1, "key": text,
    })
}

fn mk_token(text: Option<&str>) -> Value {
    json!({
        "token_id": ID, "project_id": ID, "provisioned_resource_id": ID, "kind": "node",
        "state": "usable", "issued_at": TIME, "issued_by": "key:admin", "expires_at": TIME,
        "consumed_at": null, "consumed_by_node_id": null, "revoked_at": null, "token": text,
    })
}

fn mk_entry() -> Value {
    json!({
        "id": ID, "at": TIME, "actor": "key:admin", "verb": "resource.delete",
        "kind": "resource", "subject_id": ID, "project_id": ID, "reason": "moved out",
        "details": {}, "correlation_id": "c",
    })
}

#[tokio::test]
async fn a_key_is_shown_once_on_a_line_of_its_own() {
    let text = "slipway_12345678_abcdefghijkmnopqrstuvwxyz";
    let server = StandIn::new(vec![Reply::of(201, mk_key(Some(text)))]).await;
    let ended = run(&server, "key create --name ci --role operator --ttl 2h --project p").await;
    assert_eq!(ended.exit, Exit::Success, "{ended:?}");
    assert_eq!(ended.output.lines().last().unwrap().trim(), text);
    let asked = &server.asked()[0];
    assert_eq!(asked.line, "POST /api/v1/keys");
    let body: Value = serde_json::from_str(&asked.body).unwrap();
    let expected =
        json!({ "name": "ci", "role": "operator", "project": "p", "ttl_seconds": 7_200 });
    assert_eq!(body, expected);

    let ended = run(&server, &format!("key rotate {ID} --overlap 60s")).await;
    assert!(ended.output.ends_with(&format!("{text}\n")), "{ended:?}");
    let asked = &server.asked()[1];
    assert_eq!(asked.line, format!("POST /api/v1/keys/{ID}/rotate"));
    assert_eq!(asked.body, r#"{"overlap_seconds":60}"#);
    let wrong = run(&server, &format!("key rotate {ID} --overlap 1500ms")).await;
    assert_eq!((wrong.exit, server.asked().len()), (Exit::Usage, 2), "{wrong:?}");
}

#[tokio::test]
async fn keys_are_listed_shown_and_revoked_on_somebodys_word() {
    let server = StandIn::new(vec![Reply::of(200, json!([mk_key(None)]))]).await;
    let listed = run(&server, "key list").await;
    assert!(listed.output.contains("ci") && listed.output.contains("operator"), "{listed:?}");
    let server = StandIn::new(vec![Reply::of(200, mk_key(None))]).await;
    let own = run(&server, "key whoami").await;
    assert!(own.output.contains("project") && own.output.contains("all"), "{own:?}");
    assert_eq!(server.asked()[0].line, "GET /api/v1/whoami");
    let unasked = run(&server, &format!("key revoke {ID}")).await;
    assert_eq!(unasked.exit, Exit::Usage, "{unasked:?}");
    assert_eq!(server.asked().len(), 1, "nothing was sent");
    let revoked = run(&server, &format!("key revoke {ID} --reason left --yes")).await;
    assert_eq!(revoked.exit, Exit::Success, "{revoked:?}");
    assert_eq!(server.asked()[2].line, format!("DELETE /api/v1/keys/{ID}?reason=left"));
}

#[tokio::test]
async fn a_token_is_issued_for_a_resource_by_its_handle() {
    let replies = vec![
        Reply::of(200, json!([mk_resource("Enrolling")])),
        Reply::of(201, mk_token(Some("psb_live_x"))),
    ];
    let server = StandIn::new(replies).await;
    let issued = run(&server, "token issue web-1 --ttl 10m").await;
    assert_eq!(issued.exit, Exit::Success, "{issued:?}");
    assert_eq!(issued.output.lines().last().unwrap().trim(), "psb_live_x");
    let asked = &server.asked()[1];
    assert_eq!(asked.line, format!("POST /api/v1/resources/{ID}/tokens"));
    assert_eq!(asked.body, r#"{"kind":"node","ttl_seconds":600}"#);
    let revoked = run(&server, &format!("token revoke {ID} --yes")).await;
    assert_eq!(revoked.exit, Exit::Success, "{revoked:?}");
    assert_eq!(server.asked()[2].line, format!("DELETE /api/v1/tokens/{ID}"));
}

#[tokio::test]
async fn the_audit_is_listed_and_exported_whole() {
    let server = StandIn::new(vec![Reply::of(200, json!([mk_entry()]))]).await;
    let line = "audit list --actor key:admin --verb resource.delete --since 2026-01-01T00:00:00Z";
    let listed = run(&server, line).await;
    assert!(listed.output.contains("moved out"), "{listed:?}");
    let asked = &server.asked()[0].line;
    assert!(
        asked.starts_with("GET /api/v1/audit?actor=key%3Aadmin&verb=resource.delete"),
        "{asked}"
    );

    let lines = format!("{}\n{}\n", mk_entry(), mk_entry());
    let stream = |text: &str| Reply { stream: Some(text.to_owned()), ..Reply::of(200, json!({})) };
    let server = StandIn::new(vec![stream(&lines)]).await;
    let exported = run(&server, "audit export").await;
    assert_eq!((exported.exit, &exported.output), (Exit::Success, &lines));
    assert_eq!(server.asked()[0].line, "GET /api/v1/audit/export");
    let server = StandIn::new(vec![stream(lines.trim_end())]).await;
    let broken = run(&server, "audit export").await;
    assert_ne!(broken.exit, Exit::Success, "{broken:?}");
}
