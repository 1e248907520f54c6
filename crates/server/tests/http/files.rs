//! Documents: applied, refused with the path of each fault, shown and forgotten.

use serde_json::{Value, json};

use crate::world::{KEY, World};

#[expect(clippy::needless_pass_by_value, reason = "the calls read better")]
fn document(kind: &str, metadata: Value, spec: Value) -> Value {
    json!({ "document": {
        "apiVersion": "slipway.dev/v1", "kind": kind, "metadata": metadata, "spec": spec,
    } })
}

async fn apply(world: &World, key: &str, documents: &[Value]) -> Value {
    let body = json!({ "source": "shop", "documents": documents });
    world.ask("POST", "/api/v1/apply", key, &body.to_string()).await.json()
}

fn outcomes(answer: &Value) -> Vec<&str> {
    let one = |one: &Value| match one["refusal"]["code"].as_str() {
        Some(_) => "refused",
        None => "",
    };
    let items = answer.as_array().unwrap_or_else(|| panic!("{answer}"));
    items.iter().map(|item| item["outcome"].as_str().unwrap_or(one(item))).collect()
}

#[tokio::test]
async fn documents_are_applied_shown_and_forgotten() {
    let world = World::new().await;
    let folder = [
        document(
            "Resource",
            json!({ "name": "web", "project": "shop" }),
            json!({ "blueprint": "x" }),
        ),
        document("Project", json!({ "name": "shop", "labels": { "team": "a" } }), json!({})),
        document("Key", json!({ "name": "ci", "project": "shop" }), json!({ "role": "operator" })),
    ];
    let first = apply(&world, KEY, &folder).await;
    assert_eq!(outcomes(&first), ["refused", "created", "created"]);
    assert_eq!(first[0]["refusal"]["code"], "blueprint_not_found");
    let key = first[2]["secret"].as_str().unwrap();
    assert_eq!(outcomes(&apply(&world, KEY, &folder[1..]).await), ["unchanged", "unchanged"]);

    // What is shown can be applied as it is, also by another source.
    let objects = json!({ "objects": [{ "kind": "Project", "name": "shop" }] });
    let shown = world.post("/api/v1/documents", &objects.to_string()).await.json();
    assert_eq!(shown[0]["metadata"]["labels"], json!({ "team": "a" }));
    let again = json!({ "source": "other", "documents": [{ "document": shown[0] }] });
    let again = world.post("/api/v1/apply", &again.to_string()).await.json();
    assert_eq!(outcomes(&again), ["unchanged"]);

    let listed = world.get("/api/v1/apply-sources/shop/objects").await.json();
    let names: Vec<_> =
        listed.as_array().unwrap().iter().map(|one| &one["object"]["name"]).collect();
    assert_eq!(names, ["shop", "ci"]);
    assert_eq!(listed[0]["shared_with"], json!(["other"]));
    let path = "/api/v1/apply-sources/other/objects?kind=Project&name=shop";
    assert_eq!(world.ask("DELETE", path, KEY, "").await.status, 204);
    world.ask("DELETE", path, KEY, "").await.refused(404, "source_not_found");
    let sources = world.get("/api/v1/apply-sources").await.json();
    assert_eq!((sources[0]["name"].as_str(), sources.as_array().unwrap().len()), (Some("shop"), 1));

    // A key of the project sees and changes what is in it, and nothing else.
    let listed = world.ask("GET", "/api/v1/apply-sources/shop/objects", key, "").await;
    assert_eq!(listed.json().as_array().unwrap().len(), 1, "only admins see keys: {listed:?}");
    let theirs = [
        document("Project", json!({ "name": "default", "labels": { "a": "b" } }), json!({})),
        document("Cloud", json!({ "name": "c" }), json!({ "provider": "local" })),
    ];
    let refused = apply(&world, key, &theirs).await;
    assert_eq!(outcomes(&refused), ["refused", "refused"]);
    for one in refused.as_array().unwrap() {
        assert_eq!(one["refusal"]["code"], "forbidden");
    }
    let default = json!({ "objects": [{ "kind": "Project", "name": "default" }] });
    let hidden = world.ask("POST", "/api/v1/documents", key, &default.to_string()).await;
    hidden.refused(404, "project_not_found");
}

#[tokio::test]
async fn a_wrong_document_is_refused_by_itself_with_every_path() {
    let world = World::new().await;
    let newer = json!({ "document": { "apiVersion": "slipway.dev/v2", "kind": "Label" } });
    let answer = apply(
        &world,
        KEY,
        &[
            document("Cloud", json!({ "name": "c", "colour": 1 }), json!({ "endpoint": 7 })),
            document("Resorce", json!({ "name": "x" }), json!({})),
            newer,
            json!({ "document": [1] }),
            document("Label", json!({ "name": "team", "labels": { "a": "b" } }), json!({})),
            document("Label", json!({ "name": "fine" }), Value::Null),
            document("Label", json!({ "name": "good" }), json!({ "description": null })),
            document("Label", json!({ "name": "good" }), json!({ "propagate": true })),
        ],
    )
    .await;
    let refused = ["refused"; 6];
    assert_eq!(outcomes(&answer)[..6], refused);
    assert_eq!(outcomes(&answer)[6..], ["created", "refused"]);
    let fields = |number: usize| -> Vec<&str> {
        let errors = answer[number]["refusal"]["errors"].as_array().unwrap();
        errors.iter().map(|error| error["field"].as_str().unwrap()).collect()
    };
    let mut faults = fields(0);
    faults.sort_unstable();
    assert_eq!(faults, ["metadata.colour", "spec.endpoint", "spec.provider"]);
    let message = |number: usize| answer[number]["refusal"]["message"].as_str().unwrap();
    assert!(message(1).contains("Resource"), "{}", message(1));
    assert!(message(2).contains("upgrade the server"), "{}", message(2));
    assert_eq!(fields(4), ["metadata.labels"]);
    assert_eq!(answer[7]["refusal"]["code"], "document_duplicate");

    let many: Vec<Value> = (0..201).map(|_| json!({ "document": {} })).collect();
    let body = json!({ "source": "shop", "documents": many });
    let many = world.post("/api/v1/apply", &body.to_string()).await;
    assert_eq!(many.refused(400, "invalid_input").as_deref(), Some("documents"));
    let nameless = json!({ "source": "a b", "documents": [] });
    let nameless = world.post("/api/v1/apply", &nameless.to_string()).await;
    assert_eq!(nameless.refused(400, "invalid_input").as_deref(), Some("source"));
}

#[tokio::test]
async fn the_schema_of_documents_is_served() {
    let world = World::new().await;
    let schema = world.get("/schemas/slipway.dev-v1.json").await.json();
    assert!(schema["$defs"]["Resource"].is_object(), "{schema}");
}

#[tokio::test]
async fn what_could_not_be_applied_is_shown_until_it_is_mended() {
    let world = World::new().await;
    let path = "/api/v1/apply-sources/shop/faults";
    world.get(path).await.refused(404, "source_not_found");
    let fault = json!({ "file": "a.yaml", "line": 3, "code": "invalid_input", "message": "no" });
    let body = json!({ "faults": [fault], "total": 7 }).to_string();
    assert_eq!(world.ask("PUT", path, KEY, &body).await.status, 204);
    assert_eq!(world.get(path).await.json(), json!([fault]));
    let sources = world.get("/api/v1/apply-sources").await.json();
    assert_eq!(sources[0]["faults"], json!(7));
    let status = world.get("/api/v1/status").await.json();
    assert_eq!(status["file_faults"], json!({ "shop": 7 }));
    let many = json!({ "faults": vec![fault; 101], "total": 101 }).to_string();
    world.ask("PUT", path, KEY, &many).await.refused(400, "invalid_input");
    assert_eq!(world.ask("PUT", path, KEY, r#"{"faults":[]}"#).await.status, 204);
    assert_eq!(world.get("/api/v1/status").await.json()["file_faults"], json!({}));
}
