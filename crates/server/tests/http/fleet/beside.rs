//! Our own routes beside the protocol: refused removals, strategies and the way back.

use serde_json::{Value, json};

use super::client::Fleet;
use crate::world::KEY;

pub(super) async fn works(fleet: &Fleet) {
    let (generator, pak) = fleet.generator("beside").await;
    let (agent, key) = fleet.agent("beside", &[&generator]).await;
    let confirm = async |digest: Value| {
        let body = Some(json!({ "digest": digest }));
        fleet.ask(KEY, "POST /agents/{id}/prune-confirmations", &[&agent], body).await
    };
    let confirmed = async || {
        fleet.expect(200, &key, "GET /agents/{id}/prune-confirmations", &[&agent], None).await
    };
    let refuse = async |digest: &str, objects: i64| {
        let body = json!({ "digest": digest, "objects": objects, "total": 60, "stacks": [] });
        fleet.expect(204, &key, "PUT /agents/{id}/prune-refusal", &[&agent], Some(body)).await
    };
    confirm(Value::Null).await.refused(409, "nothing_to_confirm");
    refuse("one", 51).await;
    assert_eq!(confirmed().await, json!([]));
    confirm(json!("other")).await.refused(409, "nothing_to_confirm");
    assert_eq!(confirm(json!("one")).await.status.as_u16(), 201);
    refuse("one", 51).await;
    assert_eq!(confirmed().await[0]["digest"], "one", "the same removal stays confirmed");
    refuse("two", 52).await;
    assert_eq!(confirmed().await, json!([]), "another one needs its own");
    refuse("none", 0).await;
    confirm(Value::Null).await.refused(409, "nothing_to_confirm");

    const STRATEGY: &str = "/stacks/{id}/strategy";
    let stack = fleet.stack(&pak, &generator, "beside").await;
    let get = format!("GET {STRATEGY}");
    fleet.refuse((404, "entry_not_found"), &pak, &get, &[&stack], None).await;
    let given = Some(json!({ "waves": ["edge"], "wait_for_health": true }));
    let put = fleet.expect(200, &pak, &format!("PUT {STRATEGY}"), &[&stack], given).await;
    assert_eq!((&put["canary"], &put["wait_for_health"]), (&json!(1), &json!(true)));
    assert_eq!(fleet.expect(200, &pak, &get, &[&stack], None).await, put);
    fleet.expect(204, &pak, &format!("DELETE {STRATEGY}"), &[&stack], None).await;
    let first = fleet.submit(&pak, &stack, "first").await;
    fleet.submit(&pak, &stack, "second").await;
    let back = Some(json!({ "sequence_id": first["sequence_id"] }));
    let made = fleet.expect(201, &pak, "POST /stacks/{id}/rollback", &[&stack], back).await;
    assert_eq!(made["yaml_checksum"], first["yaml_checksum"]);
    assert!(made["sequence_id"].as_i64() > first["sequence_id"].as_i64());
    many(fleet, &generator, &pak).await;
}

/// Test data goes by the beginning of its names.
async fn many(fleet: &Fleet, generator: &str, pak: &str) {
    for name in ["e2e-1", "e2e-2", "other"] {
        let stack = fleet.stack(pak, generator, name).await;
        fleet.expect(204, pak, "DELETE /stacks/{id}", &[&stack], None).await;
    }
    // A count leaves no entry in the audit.
    let purge = async |key: &str, body: Value| {
        fleet.world.ask("POST", "/api/v1/deletion-purges", key, &body.to_string()).await
    };
    let body = json!({ "generator_id": generator, "name_prefix": "e2e-", "kind": "stack" });
    let counted = purge(KEY, body.clone()).await.json();
    assert_eq!((&counted["found"], &counted["begun"]), (&json!(2), &json!(0)), "{counted}");
    assert_eq!(counted["deletions"][0]["withheld"], json!([]), "{counted}");
    let mut force = body.clone();
    force["force"] = json!(true);
    assert_eq!(purge(KEY, force.clone()).await.refused(400, "invalid_input").unwrap(), "reason");
    force["reason"] = json!("end of the tests");
    purge(pak, force.clone()).await.refused(403, "forbidden");
    let begun = purge(KEY, force.clone()).await.json();
    assert_eq!((&begun["found"], &begun["begun"]), (&json!(2), &json!(2)), "{begun}");
    assert_eq!(purge(KEY, body).await.json()["found"], 0, "they are not done any more");
    let wide = json!({ "generator_id": generator });
    assert_eq!(purge(KEY, wide).await.refused(400, "invalid_input").unwrap(), "name_prefix");
    let anywhere = json!({ "name_prefix": "e2e-" });
    assert_eq!(purge(KEY, anywhere).await.refused(400, "invalid_input").unwrap(), "project");
    let unknown = json!({ "generator_id": "ci", "name_prefix": "e2e-" });
    assert_eq!(purge(KEY, unknown).await.refused(400, "invalid_input").unwrap(), "generator_id");
}
