//! Schemas and values of parameters come back from the store as they went in, and are
//! rendered as they were declared.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use slipway_core::broker::declare::{Declaration, declare};
use slipway_core::catalog::blueprint::VersionContent;
use slipway_core::catalog::parameters::ParameterSchema;
use slipway_core::ids::{InstallationId, ProvisionedResourceId, ResourceId};
use slipway_render::composite::owned_hash;
use slipway_render::{NodeSettings, owned_of};

use super::catalog_client::mk_content;
use crate::broker::port::DeclareKey;
use crate::testing::world::{World, operator};

/// Numbers that a database or an API server could write in another way.
fn edges() -> Vec<Value> {
    let numbers = [0.1, 1e-300, 5e-324, -2.5, 1.0, 1e15, 1e16, -0.0, 123_456_789.125, 1e-7];
    let mut edges: Vec<_> = numbers.into_iter().map(|number| json!(number)).collect();
    edges.extend([json!(i64::MIN), json!(i64::MAX), json!(""), json!("\u{1}\u{fffd}\u{10ffff}")]);
    edges.extend([json!([]), json!({}), json!([[[{ "a.b/c": [true] }]]]), json!({ "": "empty" })]);
    edges
}

impl World {
    /// Values of every type, most of them at random.
    fn mk_values(&self) -> Vec<Value> {
        let mut values = edges();
        for _ in 0..100 {
            let bytes = self.public_key();
            let part = |at: usize| u64::from_le_bytes(std::array::from_fn(|n| bytes[at + n]));
            let number = f64::from_bits(part(0));
            // A whole number outside of 64 bits is refused, and so are no numbers.
            if number.is_finite() && number.abs() < 9e18 {
                values.push(json!(number));
            }
            values.push(json!(part(8).cast_signed()));
            let chars = (16..32).step_by(4).filter_map(|at| {
                char::from_u32(part(at.min(24)) as u32 % 0x11_0000).filter(|c| *c != '\0')
            });
            let text: String = chars.collect();
            let mut object = Map::new();
            object.insert(text.clone(), json!([text, values.last()]));
            values.push(Value::Object(object));
        }
        values
    }
}

pub(super) async fn any_value_comes_back_and_is_rendered(world: &World) {
    let slug = world.fresh_name("blueprint");
    let blueprint = world.create_blueprint(&slug).await.expect("a blueprint");
    let schema = json!({
        "type": "object",
        "required": ["all"],
        "properties": {
            "all": { "type": "array", "x-immutable": true },
            "ratio": { "type": "number", "default": 1e-7, "maximum": 1e16 },
            "ünï": { "description": "not a name" },
        },
        "$defs": { "a": { "enum": edges() } },
    });
    let refused = ParameterSchema::read(schema.clone()).expect_err("a name of another alphabet");
    assert_eq!(refused[0].field.as_deref(), Some("parameter_schema.properties.ünï"));
    let mut schema = schema;
    schema["properties"].as_object_mut().expect("properties").remove("ünï");
    let parameter_schema = ParameterSchema::read(schema).expect("a valid schema");
    let content = VersionContent { parameter_schema, ..mk_content("v1") };
    let id = world.publish(&slug, &content).await.expect("a version");
    assert_eq!(world.publish(&slug, &content).await.expect("the same content"), id);
    let found = world.store.catalog.version_fetch(blueprint, "v1").await.expect("a fetch");
    assert_eq!(found.expect("the version").content.parameter_schema, content.parameter_schema);

    let parameters = BTreeMap::from([("all".to_owned(), json!(world.mk_values()))]);
    let handle = world.handle();
    let key = DeclareKey { blueprint: slug.clone(), ..world.declare_key(&handle) };
    let declaration = Declaration {
        resource_id: ResourceId::new(world.uuid()),
        provisioned_resource_id: ProvisionedResourceId::new(world.uuid()),
        handle,
        labels: BTreeMap::new(),
        project: key.project.clone(),
        blueprint: slug,
        version: None,
        credential: None,
        parameters: parameters.clone(),
        owner: None,
    };
    let mut rule = |snapshot: &_| declare(snapshot, &declaration, &operator());
    world.store.broker.decide_declaration(&key, &mut rule).await.expect("a declaration");
    let snapshot = world.snapshot(declaration.provisioned_resource_id).await;
    let declared = content.parameter_schema.validate(parameters).expect("valid values");
    let stored = snapshot.attempt.parameter_values();
    assert_eq!(*stored, declared);
    assert!(snapshot.blueprint.parameter_schema.immutable_changes(stored, &declared).is_empty());

    let settings = NodeSettings {
        installation: InstallationId::new(world.uuid()),
        public_url: "http://127.0.0.1:1".to_owned(),
        heartbeat_interval_ms: 1_000,
        orphan_after_ms: 1_000,
        node_image: None,
        authorities: None,
    };
    let owned = owned_of(&snapshot, &settings).expect("a composite");
    assert_eq!(owned["spec"]["parameters"], json!(declared));
    let text = owned.to_string();
    let read: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(owned_hash(&read), owned_hash(&owned), "a reader changes nothing");
}
