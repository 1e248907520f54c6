//! The order of the suite, and what it checks.

use std::time::Duration;

use serde_json::{Value, json};
use slipway_core::commit::Commit;
use slipway_core::error::ErrorKind;
use slipway_core::files::document::{Address, DocumentKind};
use slipway_core::files::fault::{Fault, Faults};
use slipway_core::ids::ProjectId;
use slipway_core::precondition::Expected;

use super::client::{Source, at, caller, context, document, fields, live, version, word};
use super::fleet;
use crate::access::audit;
use crate::access::port::{AuditFilter, AuditOrder};
use crate::broker::declare::{Declare, declare_all};
use crate::catalog::{labels, projects};
use crate::files::apply::Verdict;
use crate::files::kind::Document;
use crate::files::port::SourceFaults;
use crate::files::{apply, faults, read};
use crate::ports::Stores;
use crate::ports::store::Page;
use crate::testing::world::{BLUEPRINT, PROJECT, World};
use crate::{Context, Error};

/// What applying documents does; on a store that nobody else uses.
pub async fn files(stores: Stores) {
    World::new(stores.clone()).await;
    let context = &context(stores);
    documents_of_every_kind_are_applied(context).await;
    a_field_goes_back_when_its_source_drops_it(context).await;
    a_field_of_another_source_is_a_conflict(context).await;
    a_change_by_hand_is_put_back(context).await;
    what_depends_on_a_refused_document_waits(context).await;
    a_dry_run_writes_nothing(context).await;
    a_resource_changes_in_place(context).await;
    an_object_that_was_made_again_has_no_owner(context).await;
    one_that_is_refused_takes_no_other_with_it(context).await;
    two_applies_at_once_end_as_one(context).await;
    a_source_lists_and_forgets_what_it_declared(context).await;
    faults_are_kept_until_they_are_mended(context).await;
    fleet::a_stack_is_submitted_when_its_content_differs(context).await;
    fleet::a_template_is_one_object_with_versions(context).await;
    fleet::an_agent_has_what_its_document_says(context).await;
    fleet::two_applies_of_one_agent_end_as_one(context).await;
}

fn none() -> Value {
    json!({})
}

/// One document of every kind, in no order.
fn folder() -> Vec<Document> {
    use DocumentKind::*;
    let mut blueprint =
        document(at(Blueprint, "node"), &none(), &json!({ "engine": "local", "description": "d" }));
    blueprint.versions = vec![version("v1", "local-b")];
    let resource = Address::new(Resource, "db").of_project("shop");
    let size = json!({ "blueprint": "node", "credential": "main" });
    let within = |kind, name: &str| Address::new(kind, name).of_project("shop");
    let objects = "kind: ConfigMap\nmetadata: {name: a}\n";
    vec![
        document(within(Tenant, "acme"), &none(), &json!({ "profile": "files" })),
        document(
            at(TenantProfile, "files"),
            &none(),
            &json!({ "description": "d", "settings": { "engine": "sqlite", "prefix": "t_" } }),
        ),
        document(
            within(Agent, "edge@berlin"),
            &none(),
            &json!({
                "active": true, "generators": ["ci"], "targets": ["web"], "labels": ["prod", "eu"],
                "annotations": { "tier": "1" },
            }),
        ),
        document(
            within(Stack, "web"),
            &none(),
            &json!({
                "generator": "ci", "description": "site", "labels": ["prod"],
                "annotations": { "tier": "1" }, "objects": objects,
            }),
        ),
        document(
            within(Template, "site"),
            &none(),
            &json!({
                "generator": "ci", "content": "kind: {{ kind }}", "description": "d",
                "parametersSchema": { "type": "object", "required": ["kind"] },
            }),
        ),
        document(
            within(Generator, "ci"),
            &none(),
            &json!({ "acceptsSecrets": true, "retentionSeconds": 60 }),
        ),
        document(resource, &json!({ "tier": "1" }), &size),
        document(Address::new(Key, "ci").of_project("shop"), &none(), &json!({ "role": "viewer" })),
        document(at(Placement, "shop"), &none(), &json!({ "cluster": "east" })),
        document(
            Address::new(Assignment, "main").of_project("shop").of_cloud("away"),
            &none(),
            &json!({ "cloud": "away" }),
        ),
        document(
            at(Project, "shop"),
            &json!({ "team": "a" }),
            &json!({ "meshCidr": "10.9.0.0/16" }),
        ),
        blueprint,
        document(at(Cluster, "east"), &none(), &json!({ "engine": "local", "region": "eu" })),
        document(
            Address::new(Credential, "main").of_cloud("away"),
            &none(),
            &json!({ "cloud": "away", "kvPath": "x/y" }),
        ),
        document(
            at(Cloud, "away"),
            &none(),
            &json!({ "provider": "local-b", "endpoint": { "region": "eu-1" } }),
        ),
        document(at(Label, "tier/x"), &none(), &json!({ "description": "t", "propagate": true })),
    ]
}

async fn audited(context: &Context) -> usize {
    let page = Page { after: None, limit: 500 };
    let (filter, order) = (AuditFilter::default(), AuditOrder::OldestFirst);
    let entries = audit::list(context, &caller(), &filter, order, page).await;
    entries.expect("the audit").len()
}

async fn documents_of_every_kind_are_applied(context: &Context) {
    let (source, folder) = (Source::new(context, "every"), folder());
    let expected = vec!["created"; folder.len()];
    assert_eq!(source.dry().verdicts(&folder).await, expected, "a dry run says so before");
    let applied = source.apply(&folder).await;
    assert_eq!(applied.iter().map(word).collect::<Vec<_>>(), expected, "{applied:?}");
    let secrets = applied.iter().filter(|one| one.secret.is_some()).count();
    assert_eq!(secrets, 3, "a new key is shown once, also of a generator and an agent");
    let before = audited(context).await;
    let unchanged = vec!["unchanged"; folder.len()];
    assert_eq!(source.verdicts(&folder).await, unchanged);
    assert_eq!(audited(context).await, before, "nothing was written");
    // Each object as it is, applied by another source: nothing changes either.
    let again: Vec<Document> = as_they_are(context, &folder).await;
    assert_eq!(Source::new(context, "again").verdicts(&again).await, unchanged);
    assert_eq!(audited(context).await, before);
}

/// The documents of these objects, as `get` shows them.
pub(super) async fn as_they_are(context: &Context, folder: &[Document]) -> Vec<Document> {
    let mut again = Vec::new();
    for document in folder {
        let live = live(context, &document.address).await.expect("it was applied");
        let (labels, spec) =
            slipway_core::files::fields::nested(&live.fields, crate::files::kind::MAPS);
        again.push(Document { labels, spec, ..document.clone() });
    }
    again
}

async fn a_field_goes_back_when_its_source_drops_it(context: &Context) {
    let (source, label) = (Source::new(context, "drops"), at(DocumentKind::Label, "drops"));
    let full = json!({ "description": "why", "propagate": true });
    assert_eq!(source.verdicts(&[document(label.clone(), &none(), &full)]).await, ["created"]);
    let less = [document(label.clone(), &none(), &json!({ "description": "new" }))];
    let applied = source.apply(&less).await;
    let changed: Vec<_> = applied[0].changes.iter().map(|change| change.path.as_str()).collect();
    assert_eq!(changed, ["spec.description", "spec.propagate"]);
    let fields = fields(context, &label).await;
    assert_eq!(fields["spec.propagate"], json!(false), "it has its default again");
    assert_eq!(fields["spec.description"], json!("new"));
    assert_eq!(source.verdicts(&less).await, ["unchanged"]);
}

async fn a_field_of_another_source_is_a_conflict(context: &Context) {
    let (one, two) = (Source::new(context, "one"), Source::new(context, "two"));
    let project = at(DocumentKind::Project, "both");
    let mine = [document(project.clone(), &json!({ "a": "1", "b": "1" }), &none())];
    let theirs = [document(project.clone(), &json!({ "b": "2", "c": "2" }), &none())];
    assert_eq!(one.verdicts(&mine).await, ["created"]);
    let refused = two.apply(&theirs).await;
    let Verdict::Refused(refusal) = &refused[0].verdict else { panic!("{refused:?}") };
    assert_eq!(refusal.kind, ErrorKind::FieldConflict);
    assert_eq!(refusal.field.as_deref(), Some("metadata.labels.b"));
    assert!(refusal.message.contains("source `one`"), "{refusal}");
    assert_eq!(two.forcing().verdicts(&theirs).await, ["changed"]);
    let labels = fields(context, &project).await;
    let label = |key: &str| labels.get(&format!("metadata.labels.{key}")).cloned();
    assert_eq!(
        [label("a"), label("b"), label("c")],
        [json!("1"), json!("2"), json!("2")].map(Some)
    );
    assert_eq!(one.verdicts(&mine).await, ["field_conflict"], "it was taken");
    // What the first source drops stays, where the second one owns it.
    let less = [document(project.clone(), &none(), &none())];
    assert_eq!(one.verdicts(&less).await, ["changed"]);
    let labels = fields(context, &project).await;
    assert!(!labels.contains_key("metadata.labels.a"), "{labels:?}");
    assert_eq!(labels["metadata.labels.b"], json!("2"));
    assert_eq!(two.verdicts(&theirs).await, ["unchanged"]);
}

async fn a_change_by_hand_is_put_back(context: &Context) {
    let (source, project) = (Source::new(context, "hand"), at(DocumentKind::Project, "hand"));
    let folder = [document(project.clone(), &json!({ "a": "1" }), &none())];
    assert_eq!(source.verdicts(&folder).await, ["created"]);
    let by_hand = [("a", "2"), ("own", "x")].map(|(key, v)| (key.to_owned(), v.to_owned()));
    let change = projects::Change { labels: Some(by_hand.into()), mesh_cidr: None };
    let changed = projects::update(context, &caller(), "hand", change, Expected::Any).await;
    changed.expect("a change by hand");
    let shown = source.dry().apply(&folder).await;
    assert_eq!((word(&shown[0]), shown[0].changes.len()), ("changed", 1), "it is a difference");
    assert_eq!(source.verdicts(&folder).await, ["changed"]);
    let labels = fields(context, &project).await;
    assert_eq!(labels["metadata.labels.a"], json!("1"));
    assert_eq!(labels["metadata.labels.own"], json!("x"), "nobody declared it");
}

async fn what_depends_on_a_refused_document_waits(context: &Context) {
    use DocumentKind::*;
    let source = Source::new(context, "waits");
    let credential = Address::new(Credential, "c").of_cloud("Not A Name");
    let folder = [
        document(credential, &none(), &json!({ "cloud": "Not A Name" })),
        document(at(Cloud, "Not A Name"), &none(), &json!({ "provider": "local" })),
        document(at(Label, "fine"), &none(), &none()),
        document(at(Label, "fine"), &none(), &json!({ "propagate": true })),
    ];
    let expected = ["dependency_failed", "invalid_input", "created", "document_duplicate"];
    assert_eq!(source.verdicts(&folder).await, expected);
}

async fn a_dry_run_writes_nothing(context: &Context) {
    let (source, label) = (Source::new(context, "dry"), at(DocumentKind::Label, "dry"));
    let folder = [document(label.clone(), &none(), &json!({ "description": "a" }))];
    assert_eq!(source.dry().verdicts(&folder).await, ["created"]);
    assert!(live(context, &label).await.is_none());
    assert_eq!(source.verdicts(&folder).await, ["created"]);
    let other = [document(label.clone(), &none(), &json!({ "description": "b" }))];
    assert_eq!(source.dry().verdicts(&other).await, ["changed"]);
    assert_eq!(fields(context, &label).await["spec.description"], json!("a"));
    assert_eq!(source.verdicts(&folder).await, ["unchanged"]);
    let wrong = [document(at(DocumentKind::Label, "no key"), &none(), &none())];
    assert_eq!(source.dry().verdicts(&wrong).await, ["invalid_input"], "the rules are asked");
}

async fn a_resource_changes_in_place(context: &Context) {
    let source = Source::new(context, "in-place");
    let address = Address::new(DocumentKind::Resource, "in-place").of_project(PROJECT);
    let sized = |size: Option<i64>, tier: &str| {
        let mut spec = json!({ "blueprint": BLUEPRINT });
        if let Some(size) = size {
            spec["parameters"] = json!({ "size": size });
        }
        [document(address.clone(), &json!({ "tier": tier }), &spec)]
    };
    assert_eq!(source.verdicts(&sized(Some(1), "a")).await, ["created"]);
    assert_eq!(source.dry().verdicts(&sized(Some(2), "a")).await, ["changed"]);
    assert_eq!(source.verdicts(&sized(Some(2), "b")).await, ["changed"]);
    let shown = fields(context, &address).await;
    assert_eq!(shown["spec.parameters.size"], json!(2));
    assert_eq!(shown["metadata.labels.tier"], json!("b"));
    assert_eq!(source.verdicts(&sized(Some(2), "b")).await, ["unchanged"]);
    assert_eq!(source.verdicts(&sized(None, "b")).await, ["changed"]);
    assert!(!fields(context, &address).await.contains_key("spec.parameters.size"));
    let elsewhere = json!({ "blueprint": "another" });
    let other = [document(address.clone(), &json!({ "tier": "b" }), &elsewhere)];
    assert_eq!(source.verdicts(&other).await, ["field_immutable"]);
}

async fn an_object_that_was_made_again_has_no_owner(context: &Context) {
    let (source, label) = (Source::new(context, "gone"), at(DocumentKind::Label, "made-again"));
    let folder = [document(label.clone(), &none(), &json!({ "propagate": true }))];
    assert_eq!(source.verdicts(&folder).await, ["created"]);
    delete_label(context, "made-again").await;
    let defined = labels::define(context, &caller(), "made-again", "by hand", false, None).await;
    defined.expect("a definition by hand");
    let empty = [document(label.clone(), &none(), &none())];
    assert_eq!(source.verdicts(&empty).await, ["unchanged"], "it never wrote this one");
    assert_eq!(fields(context, &label).await["spec.description"], json!("by hand"));
}

async fn delete_label(context: &Context, name: &str) {
    use slipway_core::catalog::label::LabelDefinition;

    use crate::deletion::request::{DeleteOptions, delete};
    let options = DeleteOptions::default();
    let deleted = delete::<LabelDefinition>(context, &caller(), name, options).await;
    deleted.expect("a deletion");
}

/// New resources share a transaction; each is decided by itself all the same.
async fn one_that_is_refused_takes_no_other_with_it(context: &Context) {
    let source = Source::new(context, "together");
    let new = |name: &str, spec: &Value| {
        let address = Address::new(DocumentKind::Resource, name).of_project(PROJECT);
        document(address, &none(), spec)
    };
    let good = json!({ "blueprint": BLUEPRINT });
    let folder = [
        new("together-1", &good),
        new("together-2", &json!({ "blueprint": BLUEPRINT, "parameters": { "unknown": 1 } })),
        new("together-3", &json!({ "blueprint": "there-is-none" })),
        new("together-4", &json!({ "blueprint": BLUEPRINT, "version": "v1" })),
        new("Not A Handle", &good),
        new("together-5", &good),
    ];
    let said = source.verdicts(&folder).await;
    let (parameters, blueprint) = ("parameter_values_invalid", "blueprint_not_found");
    let expected = ["created", parameters, blueprint, "created", "invalid_input", "created"];
    assert_eq!(said, expected);
    // A write that fails rolls all of them back, and then each is decided alone.
    let declare = |handle: &str| Declare {
        handle: handle.to_owned(),
        blueprint: BLUEPRINT.to_owned(),
        ..Declare::default()
    };
    let inputs = ["broken-1", "broken-2", "broken-2", "together-1", "broken-3"].map(declare);
    let announced_twice = |number: usize, commit: &mut Commit| {
        if number == 0 {
            commit.events.extend(commit.events.clone());
        }
    };
    let declared = declare_all(context, &caller(), inputs.to_vec(), announced_twice).await;
    let declared = declared.expect("an answer for each");
    let said: Vec<_> = declared.iter().map(|one| one.as_ref().map_err(Error::kind).err()).collect();
    let (stale, taken) = (Some(ErrorKind::RevisionStale), Some(ErrorKind::HandleTaken));
    assert_eq!(said, [stale, None, taken, taken, None]);
    for (handle, there) in [("broken-1", false), ("broken-2", true), ("broken-3", true)] {
        let address = Address::new(DocumentKind::Resource, handle).of_project(PROJECT);
        assert_eq!(live(context, &address).await.is_some(), there, "{handle}");
    }
}

async fn two_applies_at_once_end_as_one(context: &Context) {
    let names: Vec<String> = (0..20).map(|number| format!("race-{number}")).collect();
    let folder = |description: &str| -> Vec<Document> {
        let label = |name: &String| {
            let spec = json!({ "description": description, "propagate": true });
            document(at(DocumentKind::Label, name), &none(), &spec)
        };
        names.iter().map(label).collect()
    };
    let (one, two) = (Source::new(context, "race-1"), Source::new(context, "race-2"));
    let (first, second) = (folder("same"), folder("same"));
    let (one_said, two_said) = tokio::join!(one.verdicts(&first), two.verdicts(&second));
    for (mine, theirs) in one_said.iter().zip(&two_said) {
        let both = [*mine, *theirs];
        assert!(both.contains(&"created") && both.contains(&"unchanged"), "{both:?}");
    }
    // Both want another value: one of them gets it, the other is told who did.
    let (first, second) = (folder("a"), folder("b"));
    for said in [one.verdicts(&first).await, two.verdicts(&second).await] {
        assert!(said.iter().all(|word| *word == "field_conflict"), "{said:?}");
    }
}

async fn a_source_lists_and_forgets_what_it_declared(context: &Context) {
    let (one, two) = (Source::new(context, "lists-1"), Source::new(context, "lists-2"));
    let folder: Vec<Document> = ["l-1", "l-2", "l-3"]
        .iter()
        .map(|name| document(at(DocumentKind::Label, name), &none(), &json!({ "propagate": true })))
        .collect();
    one.apply(&folder).await;
    two.apply(&folder[..1]).await;
    delete_label(context, "l-3").await;
    let listed = async |limit, after| {
        let page = Page { after, limit };
        read::declared(context, &caller(), "lists-1", page).await.expect("a page")
    };
    let all = listed(100, None).await;
    let shown: Vec<_> = all
        .iter()
        .map(|line| (line.declared.0.address.name.as_str(), line.shared_with.len()))
        .collect();
    assert_eq!(shown, [("l-1", 1), ("l-2", 0)], "what was deleted is not listed");
    let first = listed(1, None).await;
    let next = listed(2, first.next).await;
    assert_eq!((first.len(), next.len()), (1, 1));
    let label = at(DocumentKind::Label, "l-1");
    apply::release(context, &caller(), "lists-2", &label).await.expect("it was declared");
    let again = apply::release(context, &caller(), "lists-2", &label).await;
    assert_eq!(again.expect_err("it was forgotten").kind(), ErrorKind::SourceNotFound);
    assert_eq!(listed(1, None).await[0].shared_with.len(), 0);
    let sources = read::sources(context, &caller(), Some("lists"), 1).await.expect("sources");
    assert_eq!((sources[0].name.as_str(), sources[0].objects), ("lists-1", 3));
}

async fn faults_are_kept_until_they_are_mended(context: &Context) {
    let files = &context.stores.files;
    let fault = |file: &str, line| Fault {
        file: file.to_owned(),
        line,
        code: "invalid_input".to_owned(),
        message: "is no YAML".to_owned(),
    };
    let (one, two) = (fault("a.yaml", Some(3)), fault("b.yaml", None));
    let record = async |faults: Vec<Fault>| {
        let faults = Faults::new(faults, 0);
        faults::record(context, &caller(), "faulty", &faults).await.expect("a record");
    };
    let shown = async || faults::faults(context, &caller(), "faulty").await;
    assert_eq!(shown().await.expect_err("no source").kind(), ErrorKind::SourceNotFound);
    record(vec![]).await;
    assert_eq!(shown().await.expect_err("nothing was written").kind(), ErrorKind::SourceNotFound);
    record(vec![one.clone(), two.clone()]).await;
    assert_eq!(shown().await.expect("faults"), [one, two.clone()]);
    let listed = read::sources(context, &caller(), Some("fault"), 1).await.expect("sources");
    assert_eq!((listed[0].name.as_str(), listed[0].objects, listed[0].faults), ("faulty", 0, 2));
    let page = Page { after: None, limit: 10 };
    let declared = read::declared(context, &caller(), "faulty", page).await.expect("it is known");
    assert!(declared.is_empty());
    record(vec![two.clone()]).await;
    record(vec![two.clone()]).await;
    let last = shown().await.expect("faults");
    assert_eq!(last, std::slice::from_ref(&two), "the last apply counts");
    let all = files.faults_list(10).await.expect("a list");
    assert_eq!(all, [SourceFaults { source: "faulty".to_owned(), total: 1 }]);
    // A key of a project has faults of its own, and sees no others.
    let project = live(context, &at(DocumentKind::Project, PROJECT)).await.expect("the seed");
    let theirs = Some(ProjectId::new(project.subject_id));
    assert!(files.faults_of("faulty", theirs).await.expect("faults").is_empty());
    files.faults_put("faulty", theirs, &Faults::new(vec![two], 0)).await.expect("a record");
    assert_eq!(files.faults_of("faulty", None).await.expect("faults").total, 2);
    files.faults_put("faulty", theirs, &Faults::default()).await.expect("a record");
    assert_eq!(files.faults_prune(Duration::from_secs(3_600), 10).await.expect("a prune"), 0);
    record(vec![]).await;
    assert!(files.faults_list(10).await.expect("a list").is_empty(), "mended");
    record(vec![fault("c.yaml", None)]).await;
    assert_eq!(files.faults_prune(Duration::ZERO, 10).await.expect("a prune"), 1);
    assert!(files.faults_list(10).await.expect("a list").is_empty());
}
