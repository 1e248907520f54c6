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
}
