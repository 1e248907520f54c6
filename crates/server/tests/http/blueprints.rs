//! Blueprints: published once, never changed, retired.

use serde_json::{Value, json};

use crate::world::{KEY, World};

fn version(name: &str) -> Value {
    json!({
        "version": name, "injection_strategy": "cloud-init-user-data",
        "provider_kinds": ["local"], "mesh_role": "standalone",
        "parameter_schema": { "parameters": [
            { "name": "size", "type": "integer", "required": true },
            { "name": "zone", "type": "string", "default": "a" },
        ] },
    })
}

async fn with_blueprint() -> World {
    let world = World::new().await;
    let body = json!({ "slug": "small", "display_name": "Small", "engine": "local" });
    world.create("/api/v1/blueprints", &body).await;
    world
}

const VERSIONS: &str = "/api/v1/blueprints/small/versions";

#[tokio::test]
async fn a_version_is_published_once_and_never_changes() {
    let world = with_blueprint().await;
    let first = world.create(VERSIONS, &version("v1")).await;
    assert_eq!(first["blueprint"], "small");
    assert_eq!(first["parameter_schema"], version("v1")["parameter_schema"].clone_with_required());
    let again = world.create(VERSIONS, &version("v1")).await;
    assert_eq!(again, first, "the same content is the same version");
    let mut other = version("v1");
    other["xrd"] = json!("kind: Other");
    let refused = world.post(VERSIONS, &other.to_string()).await;
    assert_eq!(refused.refused(409, "blueprint_version_exists").as_deref(), Some("version"));
    assert_eq!(world.get(&format!("{VERSIONS}/v1")).await.json(), first);
    world.get(&format!("{VERSIONS}/v9")).await.refused(404, "blueprint_version_not_found");
    let nowhere = world.post("/api/v1/blueprints/none/versions", &version("v1").to_string()).await;
    nowhere.refused(404, "blueprint_not_found");
}

trait WithRequired {
    fn clone_with_required(&self) -> Value;
}

/// The shown document always says whether a parameter is required.
impl WithRequired for Value {
    fn clone_with_required(&self) -> Value {
        let mut shown = self.clone();
        shown["parameters"][1]["required"] = json!(false);
        shown
    }
}

#[tokio::test]
async fn a_retired_version_takes_no_new_declarations() {
    let world = with_blueprint().await;
    for name in ["v1", "v2"] {
        world.create(VERSIONS, &version(name)).await;
    }
    let declare = |handle: &str, version: Option<&str>| {
        json!({
            "handle": handle, "blueprint": "small", "version": version,
            "parameters": { "size": 1 },
        })
        .to_string()
    };
    let made = world.post("/api/v1/resources", &declare("a", Some("v2"))).await;
    assert_eq!(made.status.as_u16(), 202, "{made:?}");
    for _ in 0..2 {
        let retired = world.post(&format!("{VERSIONS}/v2/retire"), "").await;
        assert_eq!(retired.status.as_u16(), 200, "{retired:?}");
        assert_ne!(retired.json()["retired_at"], Value::Null);
    }
    let refused = world.post("/api/v1/resources", &declare("b", Some("v2"))).await;
    assert_eq!(refused.refused(422, "blueprint_version_retired").as_deref(), Some("version"));
    let newest = world.post("/api/v1/resources", &declare("b", None)).await.json();
    assert_eq!(newest["blueprint_version"], "v1", "the newest that is not retired");
    let path = format!("/api/v1/resources/{}", made.json()["id"].as_str().unwrap());
    assert_eq!(world.get(&path).await.json()["blueprint_version"], "v2", "what is there goes on");
    world.post(&format!("{VERSIONS}/v1/retire"), "").await;
    let none = world.post("/api/v1/resources", &declare("c", None)).await;
    none.refused(422, "blueprint_version_retired");
    let listed = world.get(VERSIONS).await.json();
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|v| &v["version"]).collect();
    assert_eq!(names, ["v1", "v2"]);
}

#[tokio::test]
async fn a_schema_that_contradicts_itself_is_not_published() {
    let world = with_blueprint().await;
    let parameter = |more: Value| {
        let mut parameter = json!({ "name": "size", "type": "integer" });
        parameter.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut body = version("v1");
        body["parameter_schema"] = json!({ "parameters": [parameter] });
        body.to_string()
    };
    let table = [
        (json!({ "required": true, "default": 1 }), 422, "parameter_schema_invalid"),
        (json!({ "default": "one" }), 422, "parameter_schema_invalid"),
        (json!({ "name": "helmValues" }), 422, "parameter_schema_invalid"),
        (json!({ "name": "a b" }), 422, "parameter_schema_invalid"),
        (json!({ "type": "float" }), 400, "invalid_input"),
        (json!({ "colour": "red" }), 400, "invalid_input"),
        (json!({ "immutable": 1 }), 400, "invalid_input"),
    ];
    for (more, status, code) in table {
        let answer = world.post(VERSIONS, &parameter(more.clone())).await;
        let field = answer.refused(status, code).unwrap();
        assert!(field.starts_with("parameter_schema"), "{more}: {field}");
    }
    assert_eq!(world.get(VERSIONS).await.json(), json!([]), "nothing half written");
}

/// A version with a JSON Schema.
fn written(name: &str) -> Value {
    let mut body = version(name);
    body["parameter_schema"] = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "required": ["disk"],
        "properties": {
            "disk": {
                "type": "object", "additionalProperties": false, "required": ["size"],
                "properties": {
                    "size": { "type": "integer", "minimum": 10, "maximum": 1e3 },
                    "ratio": { "type": "number" },
                },
            },
            "zones": { "type": "array", "items": { "type": "string", "pattern": "^[a-z]+$" } },
            "region": { "enum": ["eu", "us"], "x-immutable": true },
        },
    });
    body
}

#[tokio::test]
async fn parameters_are_a_json_schema() {
    let world = with_blueprint().await;
    let first = world.create(VERSIONS, &written("v1")).await;
    assert_eq!(first["parameter_schema"], written("v1")["parameter_schema"].clone_in_one_form());
    assert_eq!(world.create(VERSIONS, &written("v1")).await, first, "the same content");
    let declare = |handle: &str, parameters: &str| {
        format!(r#"{{"handle":"{handle}","blueprint":"small","parameters":{parameters}}}"#)
    };
    let given =
        r#"{"disk":{"size":2e1,"ratio":0.25},"zones":["a","b"],"region":"us","region":"eu"}"#;
    let made = world.post("/api/v1/resources", &declare("a", given)).await;
    assert_eq!(made.status.as_u16(), 202, "{made:?}");
    // Of a name that is given twice the last value counts.
    let expected =
        json!({ "disk": { "size": 20, "ratio": 0.25 }, "zones": ["a", "b"], "region": "eu" });
    assert_eq!(made.json()["attempt"]["parameters"], expected);

    let wrong = r#"{"disk":{"size":5,"sise":1},"zones":["a","B",3],"regoin":"eu","region":null}"#;
    let refused = world.post("/api/v1/resources", &declare("b", wrong)).await;
    refused.refused(422, "parameter_values_invalid");
    let errors = refused.json()["errors"].clone();
    let told: Vec<_> = errors.as_array().unwrap().iter().map(|one| one["field"].clone()).collect();
    let fields = [
        "parameters.disk.sise",
        "parameters.disk.size",
        "parameters.region",
        "parameters.regoin",
        "parameters.zones[1]",
        "parameters.zones[2]",
    ];
    assert_eq!(told, fields);
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    for (hostile, status) in [
        (format!(r#"{{"disk":{deep}}}"#), 400),
        (format!(r#"{{"disk":{}}}"#, &deep[150..251]), 422),
        (format!(r#"{{"zones":[{}1]}}"#, "1,".repeat(10_000)), 422),
        (r#"{"disk":{"size":99999999999999999999}}"#.to_owned(), 422),
        (r#"{"zones":["\u0000"]}"#.to_owned(), 422),
    ] {
        let refused = world.post("/api/v1/resources", &declare("c", &hostile)).await;
        assert_eq!(refused.status.as_u16(), status, "{refused:?}");
    }
}

/// Numbers are stored in one form.
trait InOneForm {
    fn clone_in_one_form(&self) -> Value;
}

impl InOneForm for Value {
    fn clone_in_one_form(&self) -> Value {
        let mut shown = self.clone();
        shown["properties"]["disk"]["properties"]["size"]["maximum"] = json!(1_000);
        shown
    }
}

const XRD_WITH_PARAMETERS: &str = "
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: xs.nodes.example.org}
spec:
  group: nodes.example.org
  names: {kind: X, plural: xs}
  versions:
  - name: v1
    served: true
    referenceable: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              parameters:
                type: object
                properties:
                  size: {type: integer, nullable: true, minimum: 1}
                  region: {type: string, x-kubernetes-validations: [{rule: self == oldSelf}]}
";
const ITS_COMPOSITION: &str = "
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: xs}
spec:
  compositeTypeRef: {apiVersion: nodes.example.org/v1, kind: X}
  mode: Pipeline
  pipeline: [{step: compose, functionRef: {name: f}}]
";

#[tokio::test]
async fn parameters_that_are_not_declared_are_those_of_the_xrd() {
    let world = World::new().await;
    for slug in ["of-xrd", "none", "wrong", "here"] {
        let engine = if slug == "here" { "local" } else { "crossplane" };
        let body = json!({ "slug": slug, "display_name": slug, "engine": engine });
        world.create("/api/v1/blueprints", &body).await;
    }
    let body = json!({
        "version": "v1", "mesh_role": "standalone",
        "xrd": XRD_WITH_PARAMETERS, "composition": ITS_COMPOSITION,
        "injection_strategy": "cloud-init-user-data", "provider_kinds": ["local"],
    });
    let taken = world.create("/api/v1/blueprints/of-xrd/versions", &body).await;
    let expected = json!({
        "type": "object",
        "properties": {
            "size": { "type": "integer", "minimum": 1 },
            "region": { "type": "string", "x-immutable": true },
        },
    });
    assert_eq!(taken["parameter_schema"], expected);
    assert_eq!(world.create("/api/v1/blueprints/of-xrd/versions", &body).await, taken);
    let local = world.create("/api/v1/blueprints/here/versions", &body).await;
    assert_eq!(local["parameter_schema"], json!({ "parameters": [] }), "it has no XRD");
    let mut none = body.clone();
    none["parameter_schema"] = json!({ "parameters": [] });
    let none = world.create("/api/v1/blueprints/none/versions", &none).await;
    assert_eq!(none["parameter_schema"], json!({ "parameters": [] }));
    // As one that an earlier Slipway published; now nothing is declared.
    let again = world.create("/api/v1/blueprints/none/versions", &body).await;
    assert_eq!(again, none, "a published version never changes");
    let mut refused = body;
    refused["xrd"] =
        json!(XRD_WITH_PARAMETERS.replace("type: integer,", "type: integer, maxLength: x,"));
    let refused = world.post("/api/v1/blueprints/wrong/versions", &refused.to_string()).await;
    let field = refused.refused(422, "xrd_invalid").unwrap();
    assert_eq!(field, "xrd.spec.parameters.properties.size.maxLength");
}

#[tokio::test]
async fn what_people_read_of_a_blueprint_can_be_changed() {
    let world = with_blueprint().await;
    let path = "/api/v1/blueprints/small";
    let body = r#"{"display_name":"Smaller"}"#;
    let changed = world.ask_with("PATCH", path, ("if-match", "\"1\""), body).await;
    assert_eq!((changed.header("etag"), &changed.json()["engine"]), ("\"2\"", &"local".into()));
    let stale = world.ask_with("PATCH", path, ("if-match", "\"1\""), body).await;
    stale.refused(412, "revision_stale");
    let fixed = world.ask("PATCH", path, KEY, r#"{"engine":"crossplane"}"#).await;
    assert_eq!(fixed.refused(400, "invalid_input").as_deref(), Some("engine"));
    let taken = json!({ "slug": "small", "display_name": "S", "engine": "local" }).to_string();
    let taken = world.post("/api/v1/blueprints", &taken).await;
    assert_eq!(taken.refused(409, "name_taken").as_deref(), Some("slug"));
}

const XRD: &str = "
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: xservers.nodes.example.org}
spec:
  group: nodes.example.org
  names: {kind: XServer, plural: xservers}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    referenceable: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              parameters: {type: object, x-kubernetes-preserve-unknown-fields: true}
";

const COMPOSITION: &str = "
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: xservers}
spec:
  compositeTypeRef: {apiVersion: nodes.example.org/v1, kind: XServer}
  mode: Pipeline
  pipeline: [{step: compose, functionRef: {name: function-patch-and-transform}}]
";

/// What would fail on a cluster, or be dropped there silently, is refused when
/// it is published, with all faults in one answer.
#[tokio::test]
async fn documents_for_a_cluster_have_to_fit() {
    let world = World::new().await;
    let body = json!({ "slug": "server", "display_name": "Server", "engine": "crossplane" });
    world.create("/api/v1/blueprints", &body).await;
    let path = "/api/v1/blueprints/server/versions";
    let with = |xrd: &str, composition: &str, more: Value| {
        let mut body = version("v1");
        body["xrd"] = json!(xrd);
        body["composition"] = json!(composition);
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let no_parameters = XRD.replace("parameters:", "settings:");
    let table = [
        (with("", "", json!({})), "xrd_invalid", "xrd"),
        (with("kind: [", COMPOSITION, json!({})), "xrd_invalid", "xrd"),
        (with(&no_parameters, COMPOSITION, json!({})), "xrd_invalid", "xrd.spec.parameters"),
        (
            with(XRD, "kind: Composition", json!({})),
            "composition_invalid",
            "composition.apiVersion",
        ),
        (
            with(XRD, &COMPOSITION.replace("org/v1", "org/v2"), json!({})),
            "composition_invalid",
            "composition.spec.compositeTypeRef.apiVersion",
        ),
        (with(XRD, COMPOSITION, json!({ "version": "v2" })), "blueprint_pair_invalid", "version"),
        (
            with(XRD, COMPOSITION, json!({ "mesh_role": "node" })),
            "xrd_invalid",
            "xrd.spec.userData",
        ),
    ];
    for (body, code, field) in table {
        let answer = world.post(path, &body.to_string()).await;
        assert_eq!(answer.refused(422, code).as_deref(), Some(field));
        let problems = &answer.json()["details"]["problems"];
        assert!(problems[0]["remedy"].is_string(), "{problems}");
    }
    assert_eq!(world.get(path).await.json(), json!([]), "nothing half written");
    let made = world.create(path, &with(XRD, COMPOSITION, json!({}))).await;
    assert_eq!(made["version"], "v1");
    let again = world.create(path, &with(XRD, COMPOSITION, json!({}))).await;
    assert_eq!(again, made);
}

/// Installing definitions is requested with the version, and only where it is possible.
#[tokio::test]
async fn a_version_is_installed_if_it_was_published_so() {
    let world = with_blueprint().await;
    let mut local = version("v1");
    local["install_definitions"] = json!(true);
    let refused = world.post(VERSIONS, &local.to_string()).await;
    assert_eq!(refused.refused(400, "invalid_input").as_deref(), Some("install_definitions"));
    let plain = world.create(VERSIONS, &version("v1")).await;
    assert_eq!((&plain["install_definitions"], &plain["composite"]), (&json!(false), &Value::Null));

    let body = json!({ "slug": "server", "display_name": "Server", "engine": "crossplane" });
    world.create("/api/v1/blueprints", &body).await;
    let path = "/api/v1/blueprints/server";
    let definitions = async || world.get(&format!("{path}/definitions")).await.json();
    let mut body = version("v1");
    body["xrd"] = json!(XRD);
    body["composition"] = json!(COMPOSITION);
    body["install_definitions"] = json!(true);
    let cluster = json!({ "name": "east", "engine": "crossplane", "access": "in-cluster" });
    world.create("/api/v1/clusters", &cluster).await;
    world.create("/api/v1/projects", &json!({ "name": "shop" })).await;
    let place = r#"{"cluster":"east"}"#;
    let placed = world.ask("PUT", "/api/v1/projects/shop/cluster", KEY, place).await;
    assert!(placed.status.is_success(), "{placed:?}");
    assert_eq!(definitions().await, json!([]), "nothing is to be delivered yet");
    let made = world.create(&format!("{path}/versions"), &body).await;
    let composite = json!({
        "apiVersion": "nodes.example.org/v1", "kind": "XServer", "plural": "xservers",
        "scope": "Namespaced",
    });
    assert_eq!((&made["install_definitions"], &made["composite"]), (&json!(true), &composite));
    body["install_definitions"] = json!(false);
    let other = world.post(&format!("{path}/versions"), &body.to_string()).await;
    other.refused(409, "blueprint_version_exists");

    let listed = definitions().await;
    let [shown] = &listed.as_array().unwrap()[..] else { panic!("one cluster: {listed}") };
    assert_eq!((&shown["cluster"], &shown["wanted_version"]), (&json!("east"), &json!("v1")));
    assert_eq!((&shown["phase"], &shown["found_version"]), (&json!("Pending"), &Value::Null));
    world.post(&format!("{path}/versions/v1/retire"), "").await;
    assert_eq!(definitions().await, json!([]), "it was never there");
    world.get("/api/v1/blueprints/none/definitions").await.refused(404, "blueprint_not_found");
}

/// Nobody could ever make it there, nor prove it gone.
#[tokio::test]
async fn what_the_cluster_of_a_project_cannot_serve_is_refused() {
    let world = World::new().await;
    let body = json!({ "slug": "server", "display_name": "Server", "engine": "crossplane" });
    world.create("/api/v1/blueprints", &body).await;
    let mut body = version("v1");
    body["xrd"] = json!(XRD);
    body["composition"] = json!(COMPOSITION);
    world.create("/api/v1/blueprints/server/versions", &body).await;
    let declared = json!({ "handle": "web-1", "blueprint": "server" }).to_string();
    let refused = world.post("/api/v1/resources", &declared).await;
    assert_eq!(refused.refused(422, "engine_not_served").as_deref(), Some("blueprint"));
    assert_eq!(refused.json()["details"]["cluster_engine"], "local", "{refused:?}");

    let blueprint = json!({ "slug": "vm", "display_name": "VM", "engine": "magic" });
    let cluster = json!({ "name": "fsn1", "engine": "magic" });
    for (path, body) in [("/api/v1/blueprints", blueprint), ("/api/v1/clusters", cluster)] {
        let refused = world.post(path, &body.to_string()).await;
        assert_eq!(refused.refused(400, "invalid_input").as_deref(), Some("engine"), "{path}");
    }
    // A project at a provider is reached by a token.
    let cluster = json!({ "name": "fsn1", "engine": "hetzner" }).to_string();
    let refused = world.post("/api/v1/clusters", &cluster).await;
    assert_eq!(refused.refused(400, "invalid_input").as_deref(), Some("access"));
}
