//! The scenario of an apply and its prune: whatever strikes, applying again does the rest, each
//! object is whole or absent, and nothing is made, changed or deleted twice.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use slipway_app::Error;
use slipway_app::broker::delete;
use slipway_app::deletion::request::{self, DeleteOptions};
use slipway_app::files::apply::{self, Draft, Options, Verdict};
use slipway_app::files::kind::Document;
use slipway_app::files::read;
use slipway_app::ports::store::Page;
use slipway_core::ErrorKind;
use slipway_core::broker::phase::Phase;
use slipway_core::catalog::cloud::Cloud;
use slipway_core::files::document::{Address, DocumentKind};
use slipway_core::ids::ResourceId;
use uuid::Uuid;

use super::plane::Plane;
use super::raw::Raw;
use super::scenarios::{CHANGED_AND_CAME, Filling, NEVER_CAME, filling};

pub(super) async fn applied(plane: &mut Plane<'_>, handle: &str) -> Vec<Filling> {
    let at = |kind| Address::new(kind, handle);
    let resource = |number: u8| {
        Address::new(DocumentKind::Resource, format!("{handle}-{number}")).of_project("default")
    };
    let sized = |size: u8| json!({ "blueprint": "local-node", "parameters": { "size": size } });
    let first = [
        document(at(DocumentKind::Label), None, &json!({ "description": "first" })),
        document(at(DocumentKind::Cloud), None, &json!({ "provider": "local" })),
        document(at(DocumentKind::Project), None, &json!({})),
        document(resource(1), None, &sized(1)),
        document(resource(2), None, &sized(1)),
    ];
    let second = [
        document(at(DocumentKind::Label), None, &json!({ "description": "second" })),
        document(at(DocumentKind::Project), Some("b"), &json!({})),
        document(resource(1), None, &sized(4)),
    ];
    plane.arm();
    plane.apply(handle, &first).await;
    let mut subjects: Vec<Uuid> = Vec::new();
    for document in &first {
        subjects.push(plane.found(&document.address).await.expect("it was made").0);
    }
    plane.apply(handle, &second).await;
    plane.prune(handle, &second).await;
    // What becomes of the resources, other scenarios show.
    plane.disarm();
    plane.check_applied(handle, &second, &subjects).await;
    let (kept, gone) = (ResourceId::new(subjects[3]), ResourceId::new(subjects[4]));
    plane.until_gone(gone).await;
    plane.until_phase(kept, Phase::Enrolling).await;
    plane.enrol(kept, 1).await;
    let attempt = plane.until_phase(kept, Phase::Ready).await.attempt.id();
    let pruned = plane.world.get(gone).await.attempt.id();
    vec![
        Filling {
            phase: Phase::Ready,
            events: CHANGED_AND_CAME,
            followed: false,
            // Nothing takes it down, and nobody retried it.
            ..filling(kept, attempt, "resource.retry")
        },
        Filling { events: NEVER_CAME, followed: false, ..filling(gone, pruned, "resource.delete") },
    ]
}

fn document(address: Address, tier: Option<&str>, spec: &Value) -> Document {
    let labels = tier.map(|tier| ("tier".to_owned(), tier.to_owned()));
    Document {
        address,
        labels: labels.into_iter().collect(),
        spec: spec.as_object().cloned().unwrap_or_default(),
        versions: Vec::new(),
        content: None,
        origin: "crash.yaml".to_owned(),
        plan: None,
    }
}

/// On a busy machine a read may wait too long for a connection; only a hanging run does so
/// again and again.
async fn patiently<T>(read: impl AsyncFn() -> Result<T, Error>) -> T {
    loop {
        match read().await {
            Err(error) if error.kind() == ErrorKind::Unavailable => {}
            done => return done.unwrap(),
        }
    }
}

impl Plane<'_> {
    /// Applies everything; whoever lost the answer applies again.
    async fn apply(&mut self, source: &str, documents: &[Document]) {
        let world = self.world;
        self.request(async |life| {
            let options = Options { source: source.to_owned(), dry_run: false, force: false };
            let drafts = documents.iter().map(|document| Draft {
                address: Some(document.address.clone()),
                document: Ok(document.clone()),
            });
            let drafts = drafts.collect();
            let applied = apply::apply(&life.context, &world.caller, &options, drafts).await?;
            for one in applied {
                assert!(!matches!(one.verdict, Verdict::Refused(_)), "{one:?}");
            }
            Ok(())
        })
        .await
        .unwrap();
    }

    /// Deletes what the source declared and no longer does, as the command does.
    async fn prune(&mut self, source: &str, documents: &[Document]) {
        let world = self.world;
        self.request(async |life| {
            let page = Page { after: None, limit: 100 };
            let declared = read::declared(&life.context, &world.caller, source, page).await?;
            for line in declared.iter().rev() {
                let row = &line.declared.0;
                if documents.iter().any(|document| document.address == row.address) {
                    continue;
                }
                let (context, options) = (&life.context, DeleteOptions::default());
                if row.address.kind == DocumentKind::Resource {
                    let id = ResourceId::new(row.subject_id);
                    delete::delete(context, &world.caller, id, options).await?;
                } else {
                    let id = row.subject_id.to_string();
                    request::delete::<Cloud>(context, &world.caller, &id, options).await?;
                }
            }
            Ok(())
        })
        .await
        .unwrap();
    }

    /// The id and the fields of an object, if it is there.
    async fn found(&self, address: &Address) -> Option<(Uuid, BTreeMap<String, Value>)> {
        let (context, caller) = (&self.world.context, &self.world.caller);
        let wanted = std::slice::from_ref(address);
        let read = async || read::documents(context, caller, wanted).await;
        let found = patiently(read).await.pop().flatten();
        found.filter(|live| !live.leaving).map(|live| (live.subject_id, live.fields))
    }

    /// The objects are what the documents say, the source declares these and no others, and
    /// each object was made, changed and deleted at most once.
    async fn check_applied(&self, source: &str, documents: &[Document], subjects: &[Uuid]) {
        let (context, caller) = (&self.world.context, &self.world.caller);
        for document in documents {
            let (_, fields) = self.found(&document.address).await.expect("it is there");
            for (path, value) in document.fields() {
                assert_eq!(fields.get(&path), Some(&value), "{} {path}", document.address);
            }
        }
        let page = Page { after: None, limit: 100 };
        let read = async || read::declared(context, caller, source, page).await;
        let declared = patiently(read).await;
        let mut declared: Vec<_> = declared.iter().map(|line| &line.declared.0.address).collect();
        let mut wanted: Vec<_> = documents.iter().map(|document| &document.address).collect();
        declared.sort();
        wanted.sort();
        assert_eq!(declared, wanted);
        let mut raw = Raw::open(&self.world.url).await;
        for subject in subjects {
            let mut verbs: Vec<_> =
                raw.audit(*subject).await.into_iter().map(|entry| entry.verb).collect();
            verbs.sort();
            let all = verbs.len();
            verbs.dedup();
            assert!(verbs.len() == all && all >= 2, "something was done twice or not: {verbs:?}");
        }
    }
}
