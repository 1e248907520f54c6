//! What is particular about the kinds of Fleet: content, versions, and rows that hang on others.

use serde_json::{Value, json};
use slipway_core::error::ErrorKind;
use slipway_core::files::document::{Address, DocumentKind};
use slipway_core::fleet::template::Template;
use slipway_core::ids::StackId;

use super::client::{Source, caller, document, fields, live, word};
use crate::Context;
use crate::files::apply::Verdict;
use crate::files::kind::Document;
use crate::fleet::port::FleetFilter;
use crate::fleet::{objects, templates};
use crate::ports::store::Page;
use crate::testing::world::PROJECT;

fn at(kind: DocumentKind, name: &str) -> Address {
    Address::new(kind, name).of_project(PROJECT)
}

fn plain(kind: DocumentKind, name: &str, spec: &Value) -> Document {
    document(at(kind, name), &json!({}), spec)
}

fn config_map(value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{v: {value}}}\n")
}

async fn submitted(context: &Context, stack: &Address) -> usize {
    let id = StackId::new(live(context, stack).await.expect("a stack").subject_id);
    let page = Page { after: None, limit: 100 };
    objects::list(context, &caller(), id, page).await.expect("objects").len()
}

pub(super) async fn a_stack_is_submitted_when_its_content_differs(context: &Context) {
    let source = Source::new(context, "content");
    let stack = at(DocumentKind::Stack, "content");
    let with = |spec: Value| [plain(DocumentKind::Stack, "content", &spec)];
    let one = with(json!({ "generator": "content", "objects": config_map("one") }));
    let generator = plain(DocumentKind::Generator, "content", &json!({}));
    assert_eq!(source.verdicts(&one).await, ["generator_not_found"]);
    let both = [one[0].clone(), generator.clone()];
    assert_eq!(source.dry().verdicts(&both).await, ["created", "created"]);
    assert_eq!(source.verdicts(&both).await, ["created", "created"]);
    assert_eq!(source.verdicts(&one).await, ["unchanged"]);
    assert_eq!(submitted(context, &stack).await, 1, "the same content is one object");
    let two = with(json!({ "generator": "content", "objects": config_map("secret-word") }));
    let shown = source.dry().apply(&two).await;
    let text = format!("{shown:?}");
    assert!(text.contains("sha256:") && text.contains(" bytes"), "{text}");
    assert!(!text.contains("secret-word"), "{text}");
    assert_eq!(submitted(context, &stack).await, 1, "a dry run submits nothing");
    assert_eq!(source.verdicts(&two).await, ["changed"]);
    assert_eq!(submitted(context, &stack).await, 2);
    // Without objects they are left alone; another order of labels is no difference.
    let labels = |labels: Value| with(json!({ "generator": "content", "labels": labels }));
    assert_eq!(source.verdicts(&labels(json!(["b", "a"]))).await, ["changed"]);
    assert_eq!(source.verdicts(&labels(json!(["a", "b", "a"]))).await, ["unchanged"]);
    assert_eq!(source.verdicts(&labels(json!(["c", "a"]))).await, ["changed"]);
    assert_eq!(fields(context, &stack).await["spec.labels"], json!(["a", "c"]));
    assert_eq!(submitted(context, &stack).await, 2);
    let shown = live(context, &stack).await.expect("a stack").content;
    assert_eq!(shown, Some(config_map("secret-word")), "a document shows the newest content");
    // A Secret is refused unless the generator takes it, and no document shows it.
    let secret = "kind: Secret\nmetadata: {name: s}\nstringData: {password: hunter2}\n";
    let secret = with(json!({ "generator": "content", "labels": ["a"], "objects": secret }));
    assert_eq!(source.verdicts(&secret).await, ["secret_not_accepted"]);
    let takes = plain(DocumentKind::Generator, "content", &json!({ "acceptsSecrets": true }));
    assert_eq!(source.verdicts(&[takes]).await, ["changed"]);
    let applied = source.apply(&secret).await;
    assert_eq!(word(&applied[0]), "changed");
    assert!(!format!("{applied:?}").contains("hunter2"));
    assert_eq!(live(context, &stack).await.expect("a stack").content, None);
    // Faults name the field, and nothing is written.
    for bad in ["", "[", "kind: A\n---\n- no\n"] {
        let wrong = with(json!({ "generator": "content", "objects": bad }));
        let refused = source.apply(&wrong).await;
        let Verdict::Refused(refusal) = &refused[0].verdict else { panic!("{refused:?}") };
        assert_eq!(refusal.field.as_deref(), Some("spec.objects"), "{bad:?}");
        let new = plain(
            DocumentKind::Stack,
            "content-new",
            &json!({ "generator": "content", "objects": bad }),
        );
        assert_eq!(source.dry().verdicts(&[new]).await, ["invalid_input"]);
    }
    assert!(live(context, &at(DocumentKind::Stack, "content-new")).await.is_none());
    let other = plain(DocumentKind::Generator, "content-2", &json!({}));
    let moved = with(json!({ "generator": "content-2" }));
    assert_eq!(source.verdicts(&[other, moved[0].clone()]).await, ["created", "field_immutable"]);
}

async fn versions(context: &Context, name: &str) -> Vec<Template> {
    let filter = FleetFilter { name: Some(name.to_owned()), ..FleetFilter::default() };
    let page = Page { after: None, limit: 100 };
    templates::list(context, &caller(), &filter, page).await.expect("templates").items
}

pub(super) async fn a_template_is_one_object_with_versions(context: &Context) {
    let source = Source::new(context, "versions");
    let with = |spec: Value| [plain(DocumentKind::Template, "versions", &spec)];
    assert_eq!(source.verdicts(&with(json!({ "content": "a: {{ b }}" }))).await, ["created"]);
    let next = with(json!({ "content": "a: {{ c }}", "parametersSchema": { "minProperties": 1 } }));
    assert_eq!(source.verdicts(&next).await, ["changed"]);
    assert_eq!(source.verdicts(&next).await, ["unchanged"], "its source still owns it");
    let less = with(json!({ "content": "a: {{ c }}" }));
    assert_eq!(source.verdicts(&less).await, ["changed"], "the schema goes back");
    let all = versions(context, "versions").await;
    assert_eq!(all.iter().map(|one| one.version).collect::<Vec<_>>(), [1, 2, 3]);
    let wrong = with(json!({ "content": "a", "parametersSchema": { "type": 5 } }));
    assert_eq!(source.verdicts(&wrong).await, ["invalid_input"]);
}

pub(super) async fn an_agent_has_what_its_document_says(context: &Context) {
    let source = Source::new(context, "agents");
    let agent = at(DocumentKind::Agent, "node@agents");
    let with = |spec: Value| [plain(DocumentKind::Agent, "node@agents", &spec)];
    let unnamed = plain(DocumentKind::Agent, "node", &json!({}));
    let refused = source.apply(&[unnamed]).await;
    let Verdict::Refused(refusal) = &refused[0].verdict else { panic!("{refused:?}") };
    assert_eq!(refusal.field.as_deref(), Some("metadata.name"), "{refusal}");
    let folder = [
        with(json!({ "generators": ["agents"], "targets": ["agents"], "labels": ["x"] }))[0]
            .clone(),
        plain(DocumentKind::Generator, "agents", &json!({})),
        plain(DocumentKind::Stack, "agents", &json!({ "generator": "agents" })),
    ];
    let created = vec!["created"; 3];
    assert_eq!(source.dry().verdicts(&folder).await, created);
    assert_eq!(source.verdicts(&folder).await, created);
    let shown = fields(context, &agent).await;
    assert_eq!(shown["spec.active"], json!(false), "nobody activates it unasked");
    assert_eq!(shown["spec.targets"], json!(["agents"]));
    let less = with(json!({ "active": true, "generators": ["agents"] }));
    let changed = source.apply(&less).await;
    let paths: Vec<_> = changed[0].changes.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(paths, ["spec.active", "spec.labels", "spec.targets"]);
    let shown = fields(context, &agent).await;
    assert!(!shown.contains_key("spec.targets") && !shown.contains_key("spec.labels"), "{shown:?}");
    // A stack of a generator that it did not agree to is refused, and the rest is there.
    let wrong = with(json!({ "active": true, "generators": ["agents"], "targets": ["content"] }));
    let refused = source.apply(&wrong).await;
    let Verdict::Refused(refusal) = &refused[0].verdict else { panic!("{refused:?}") };
    assert_eq!(refusal.kind, ErrorKind::TargetGeneratorMismatch);
    let annotated = |value: &str| {
        with(json!({ "active": true, "generators": ["agents"], "annotations": { "k": value } }))
    };
    assert_eq!(source.verdicts(&annotated("1")).await, ["changed"]);
    assert_eq!(source.verdicts(&annotated("2")).await, ["changed"]);
    assert_eq!(source.verdicts(&annotated("2")).await, ["unchanged"]);
    assert_eq!(fields(context, &agent).await["spec.annotations.k"], json!("2"));
}

pub(super) async fn two_applies_of_one_agent_end_as_one(context: &Context) {
    let spec = json!({ "active": true, "labels": ["a", "b", "c"], "annotations": { "k": "v" } });
    let folder = [plain(DocumentKind::Agent, "race@agents", &spec)];
    let (one, two) = (Source::new(context, "agents-1"), Source::new(context, "agents-2"));
    let (first, second) = tokio::join!(one.verdicts(&folder), two.verdicts(&folder));
    let good = ["created", "changed", "unchanged"];
    assert!(good.contains(&first[0]) && good.contains(&second[0]), "{first:?} {second:?}");
    for source in [&one, &two] {
        assert_eq!(source.verdicts(&folder).await, ["unchanged"]);
    }
}
