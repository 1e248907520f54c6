//! A valid pair, and every rule broken once.

use slipway_core::catalog::blueprint_version::CompositeScope;
use slipway_core::catalog::parameters::{Parameter, ParameterSchema, ParameterType};

use super::*;

const XRD: &str = "
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata:
  name: xservers.nodes.example.org
spec:
  group: nodes.example.org
  names: {kind: XServer, plural: xservers}
  scope: Namespaced
  versions:
  - name: v1alpha0
    served: false
    referenceable: false
  - name: v1alpha1
    served: true
    referenceable: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              userData: {type: string}
              cloudTags: {type: object, additionalProperties: {type: string}}
              parameters:
                type: object
                properties:
                  size: {type: integer}
                  region: {type: string}
                  helmValues: {type: object, x-kubernetes-preserve-unknown-fields: true}
";

const COMPOSITION: &str = "
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: xservers}
spec:
  compositeTypeRef: {apiVersion: nodes.example.org/v1alpha1, kind: XServer}
  mode: Pipeline
  pipeline:
  - step: compose
    functionRef: {name: function-patch-and-transform}
";

fn parameter(name: &str, kind: ParameterType) -> Parameter {
    Parameter { name: name.to_owned(), kind, required: false, immutable: false, default: None }
}

fn content() -> VersionContent {
    VersionContent {
        install_definitions: false,
        surge: false,
        version: "v1alpha1".to_owned(),
        xrd: XRD.to_owned(),
        composition: COMPOSITION.to_owned(),
        parameter_schema: ParameterSchema::new(vec![parameter("size", ParameterType::Integer)])
            .unwrap(),
        injection_strategy: InjectionStrategy::CloudInitUserData,
        mesh_role: MeshRole::Node,
        provider_kinds: vec!["hetzner".to_owned()],
    }
}

fn with(strategy: InjectionStrategy) -> VersionContent {
    VersionContent { injection_strategy: strategy, ..content() }
}

#[test]
fn a_pair_that_fits_says_what_its_composites_are() {
    let documents = check(&content()).unwrap();
    assert_eq!(documents.composition, "xservers");
    let pair = documents.composite;
    assert_eq!(pair.composite_type.api_version(), "nodes.example.org/v1alpha1");
    assert_eq!(pair.composite_type.scope, CompositeScope::Namespaced);
    assert!(pair.cloud_tags);
    assert!(check(&with(InjectionStrategy::HelmValues)).is_ok());
    let json = serde_json::to_string(&serde_yaml_ng::from_str::<serde_json::Value>(XRD).unwrap());
    let cluster = XRD.replace("scope: Namespaced", "scope: Cluster");
    for (xrd, scope) in [
        (json.unwrap(), CompositeScope::Namespaced),
        (cluster, CompositeScope::Cluster),
        (XRD.replace("  scope: Namespaced\n", ""), CompositeScope::Namespaced),
    ] {
        let pair = check(&VersionContent { xrd, ..content() }).unwrap();
        assert_eq!(pair.composite.composite_type.scope, scope);
    }
}

/// A composite of a version that we install names its Composition, and Crossplane uses it.
#[test]
fn an_installed_version_leaves_the_choice_to_its_composites() {
    let own = |crossplane: &str| {
        XRD.replace(
            "              userData:",
            &format!("              crossplane: {crossplane}\n              userData:"),
        )
    };
    let said = |field: &str| XRD.replace("  names:", &format!("  {field}\n  names:"));
    let name = "{type: object, properties: {compositionRef: {type: object, properties: {name: {type: string}}}}}";
    let table = [
        (said("enforcedCompositionRef: {name: x}"), Some("enforcedCompositionRef")),
        (said("defaultCompositionUpdatePolicy: Manual"), Some("defaultCompositionUpdatePolicy")),
        (own("{type: object, properties: {region: {type: string}}}"), Some("crossplane")),
        (own("{type: string}"), Some("crossplane")),
        (own(name), None),
        (said("defaultCompositionUpdatePolicy: Automatic"), None),
        (said("defaultCompositionRef: {name: x}"), None),
    ];
    for (xrd, field) in table {
        assert_ne!(xrd, XRD);
        let content = VersionContent { xrd, ..content() };
        assert!(check(&content).is_ok(), "somebody else installs it");
        let installed = VersionContent { install_definitions: true, ..content };
        let faults = check(&installed).err().unwrap_or_default();
        let fields: Vec<_> = faults.iter().map(|fault| fault.field.clone()).collect();
        let expected = field.map(|field| format!("xrd.spec.{field}"));
        assert_eq!(fields, expected.into_iter().collect::<Vec<_>>());
    }
}

/// Each rule of the reference, by the field that is blamed and its code.
#[test]
fn every_rule_names_its_field() {
    use ErrorKind::{BlueprintPairInvalid, CompositionInvalid, ParameterSchemaInvalid, XrdInvalid};
    let xrd = |from: &str, to: &str| {
        assert!(XRD.contains(from), "{from}");
        VersionContent { xrd: XRD.replace(from, to), ..content() }
    };
    let composition = |from: &str, to: &str| {
        assert!(COMPOSITION.contains(from), "{from}");
        VersionContent { composition: COMPOSITION.replace(from, to), ..content() }
    };
    let declaring = |name: &str, kind| VersionContent {
        parameter_schema: ParameterSchema::new(vec![parameter(name, kind)]).unwrap(),
        ..content()
    };
    let table = [
        (VersionContent { xrd: "a: [".to_owned(), ..content() }, "xrd", XrdInvalid),
        (VersionContent { xrd: format!("{XRD}---\na: 1\n"), ..content() }, "xrd", XrdInvalid),
        (VersionContent { xrd: "3".to_owned(), ..content() }, "xrd", XrdInvalid),
        (xrd("io/v2", "io/v1"), "xrd.apiVersion", XrdInvalid),
        (xrd("kind: CompositeR", "kind: CustomR"), "xrd.kind", XrdInvalid),
        (xrd("group: nodes.example.org", "group: nodes"), "xrd.spec.group", XrdInvalid),
        (xrd("group: nodes.example.org", "group: other.org"), "xrd.metadata.name", XrdInvalid),
        (xrd("kind: XServer,", ""), "xrd.spec.names.kind", XrdInvalid),
        (xrd("kind: XServer", "kind: x-server"), "xrd.spec.names.kind", XrdInvalid),
        (xrd("plural: xservers", "plural: X_S"), "xrd.spec.names.plural", XrdInvalid),
        (xrd("name: xservers.", "name: servers."), "xrd.metadata.name", XrdInvalid),
        (xrd("scope: Namespaced", "scope: LegacyCluster"), "xrd.spec.scope", XrdInvalid),
        (xrd("served: true", "served: false"), "xrd.spec.versions", XrdInvalid),
        (
            xrd("referenceable: true", "referenceable: false"),
            "xrd.spec.versions[1].referenceable",
            XrdInvalid,
        ),
        (
            xrd("          spec:\n", "          status:\n"),
            "xrd.spec.versions[1].schema",
            XrdInvalid,
        ),
        (VersionContent { version: "v1".to_owned(), ..content() }, "version", BlueprintPairInvalid),
        (
            VersionContent { composition: String::new(), ..content() },
            "composition",
            CompositionInvalid,
        ),
        (composition("io/v1\n", "io/v2\n"), "composition.apiVersion", CompositionInvalid),
        (
            composition("mode: Pipeline", "mode: Resources"),
            "composition.spec.mode",
            CompositionInvalid,
        ),
        (composition("- step", "# - step"), "composition.spec.pipeline", CompositionInvalid),
        (
            composition("v1alpha1", "v1alpha0"),
            "composition.spec.compositeTypeRef.apiVersion",
            CompositionInvalid,
        ),
        (
            composition("kind: XServer", "kind: XOther"),
            "composition.spec.compositeTypeRef.kind",
            CompositionInvalid,
        ),
        (xrd("parameters:", "settings:"), "xrd.spec.parameters", XrdInvalid),
        (
            declaring("color", ParameterType::String),
            "parameter_schema.color",
            ParameterSchemaInvalid,
        ),
        (declaring("size", ParameterType::String), "parameter_schema.size", ParameterSchemaInvalid),
        (
            xrd("userData: {type: string}", "userData: {type: object}"),
            "xrd.spec.userData",
            XrdInvalid,
        ),
        (xrd("userData: ", "user: "), "xrd.spec.userData", XrdInvalid),
        (with(InjectionStrategy::ProviderSecret), "xrd.spec.parameters.providerSecret", XrdInvalid),
        (
            xrd(
                "cloudTags: {type: object, additionalProperties: {type: string}}",
                "cloudTags: {type: string}",
            ),
            "xrd.spec.cloudTags",
            XrdInvalid,
        ),
    ];
    for (content, field, kind) in table {
        let faults = check(&content).unwrap_err();
        let refusal = refusal(&faults);
        assert_eq!((refusal.field.as_deref(), refusal.kind), (Some(field), kind), "{refusal}");
        assert!(faults.iter().all(|fault| !fault.remedy.is_empty()));
    }
}

/// A field is looked for at its own depth.
#[test]
fn what_is_nested_reaches_the_composition_too() {
    let xrd = XRD.replace(
        "                  size: {type: integer}\n",
        "                  size: {type: integer}
                  disk: {type: object, properties: {size: {type: integer}, tags: {type: object, additionalProperties: {type: string}}}}
                  zones: {type: array, items: {type: string}}\n",
    );
    let faults = |properties: serde_json::Value| {
        let schema = json!({ "type": "object", "properties": properties });
        let parameter_schema = ParameterSchema::read(schema).unwrap();
        let content = VersionContent { xrd: xrd.clone(), parameter_schema, ..content() };
        let faults = check(&content).err().unwrap_or_default();
        faults.into_iter().map(|fault| fault.field).collect::<Vec<_>>()
    };
    let closed = |properties: serde_json::Value| json!({ "disk": { "type": "object", "additionalProperties": false, "properties": properties } });
    let none: [&str; 0] = [];
    assert_eq!(
        faults(closed(json!({ "size": { "type": "integer" }, "tags": { "type": "object" } }))),
        none
    );
    assert_eq!(
        faults(closed(json!({ "sise": { "type": "integer" } }))),
        ["parameter_schema.disk.sise"]
    );
    assert_eq!(
        faults(closed(json!({ "size": { "type": "string" } }))),
        ["parameter_schema.disk.size"]
    );
    assert_eq!(faults(json!({ "disk": { "type": "object" } })), ["parameter_schema.disk"]);
    assert_eq!(
        faults(json!({ "zones": { "type": "array", "items": { "type": "string" } } })),
        none
    );
    let items = json!({ "zones": { "type": "array", "items": { "type": "integer" } } });
    assert_eq!(faults(items), ["parameter_schema.zones[]"]);
    assert_eq!(faults(json!({ "size": { "type": "number" } })), ["parameter_schema.size"]);
}

#[test]
fn all_faults_are_named_at_once() {
    let content = VersionContent {
        version: "v1".to_owned(),
        composition: COMPOSITION.replace("XServer", "XOther"),
        ..with(InjectionStrategy::ProviderSecret)
    };
    let faults = check(&content).unwrap_err();
    let fields: Vec<_> = faults.iter().map(|fault| fault.field.as_str()).collect();
    assert_eq!(
        fields,
        ["version", "composition.spec.compositeTypeRef.kind", "xrd.spec.parameters.providerSecret",]
    );
    let details = refusal(&faults).details.unwrap();
    assert_eq!(details["problems"].as_array().unwrap().len(), 3);
}

#[test]
fn what_preserves_unknown_fields_has_every_site_and_parameter() {
    let whole = XRD.replace("                  size:", "                  other:");
    let open = whole.replace(
        "              parameters:\n                type: object\n",
        "              parameters:\n                type: object\n                x-kubernetes-preserve-unknown-fields: true\n",
    );
    for strategy in InjectionStrategy::ALL {
        let content = VersionContent { xrd: open.clone(), ..with(*strategy) };
        assert!(check(&content).is_ok(), "{strategy}");
    }
    let standalone = VersionContent {
        mesh_role: MeshRole::Standalone,
        ..with(InjectionStrategy::ProviderSecret)
    };
    assert!(check(&standalone).is_ok(), "without a token no site is needed");
}

/// A document of a few bytes that expands to gigabytes is refused.
#[test]
fn a_bomb_is_refused() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let before = format!("*a{}", level - 1);
        let row = [before.as_str(); 9].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{row}]\n"));
    }
    let faults = check(&VersionContent { xrd: bomb, ..content() }).unwrap_err();
    assert_eq!(faults[0].field, "xrd");
}
