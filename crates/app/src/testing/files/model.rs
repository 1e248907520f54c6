//! Any sequence of edits to a folder, applied with crashes and a second source beside it,
//! ends with the store equal to the folders, nothing touched that another source owns, no
//! difference left, and objects that can be applied as they are shown.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use slipway_core::catalog::cloud::Cloud;
use slipway_core::catalog::label::LabelDefinition;
use slipway_core::files::document::{Address, DocumentKind};
use slipway_core::precondition::Expected;

use super::client::{Source, caller, context, document, fields, live};
use super::suite::as_they_are;
use crate::Context;
use crate::catalog::projects;
use crate::deletion::request::{DeleteOptions, delete};
use crate::files::kind::Document;
use crate::files::{apply, read};
use crate::ports::Stores;
use crate::ports::store::Page;
use crate::testing::Dice;
use crate::testing::world::{BLUEPRINT, PROJECT, World};

/// Edits of one sequence.
const EDITS: u32 = 12;

/// Runs one sequence for each of these dice; on a store that nobody else uses.
pub async fn files_model(stores: Stores, dice: impl IntoIterator<Item = Dice>) {
    World::new(stores.clone()).await;
    let context = &context(stores);
    for (number, dice) in dice.into_iter().enumerate() {
        let mut model =
            Model { context, number, dice, folders: [BTreeMap::new(), BTreeMap::new()] };
        for _ in 0..EDITS {
            model.edit();
            model.crash().await;
            model.by_hand().await;
        }
        model.finish().await;
    }
}

const SOURCES: [&str; 2] = ["model-a", "model-b"];

struct Model<'a> {
    context: &'a Context,
    number: usize,
    dice: Dice,
    /// The documents of each source.
    folders: [BTreeMap<Address, Document>; 2],
}

impl Model<'_> {
    fn roll(&mut self, below: u64) -> u64 {
        (self.dice)(below)
    }

    fn source(&self, of: usize) -> Source<'_> {
        Source::new(self.context, SOURCES[of])
    }

    /// Puts a document into one of the folders, or takes one away.
    fn edit(&mut self) {
        let of = usize::from(self.roll(2) == 1);
        let (kind, name) = (self.roll(4), self.roll(2));
        let name = format!("m-{}-{name}", self.number);
        let address = match kind {
            0 => Address::new(DocumentKind::Label, name),
            1 => Address::new(DocumentKind::Cloud, name),
            2 => Address::new(DocumentKind::Project, name),
            _ => Address::new(DocumentKind::Resource, name).of_project(PROJECT),
        };
        // Projects and resources are not taken down here.
        if kind < 2 && self.roll(3) == 0 {
            self.folders[of].remove(&address);
            return;
        }
        let (labels, spec) = self.fields(of, kind);
        let document = document(address.clone(), &labels, &spec);
        self.folders[of].insert(address, document);
    }

    /// Random labels and spec; no field is of both sources, but for those that never change.
    fn fields(&mut self, of: usize, kind: u64) -> (Value, Value) {
        let (there, value) = (self.roll(2) == 0, self.roll(3));
        let label = match there {
            true => json!({ SOURCES[of]: value.to_string() }),
            false => json!({}),
        };
        let none = json!({});
        match (kind, of) {
            (0, 0) if there => (none, json!({ "description": value.to_string() })),
            (0, 1) if there => (none, json!({ "propagate": value > 0 })),
            (1, _) => {
                let endpoint = if there { json!({ SOURCES[of]: value.to_string() }) } else { none };
                (json!({}), json!({ "provider": "local", "endpoint": endpoint }))
            }
            (2, _) => (label, none),
            (3, 0) if there => {
                let parameters = json!({ "size": value });
                (label, json!({ "blueprint": BLUEPRINT, "parameters": parameters }))
            }
            (3, _) => (label, json!({ "blueprint": BLUEPRINT })),
            _ => (none.clone(), none),
        }
    }

    /// Applies both folders at once and goes away at some point.
    async fn crash(&mut self) {
        let steps = self.roll(400);
        let folders = self.folders.clone().map(|folder| folder.into_values().collect::<Vec<_>>());
        let (one, two) = (self.source(0), self.source(1));
        let gone = async {
            for _ in 0..steps {
                tokio::task::yield_now().await;
            }
        };
        let both = async { tokio::join!(one.apply(&folders[0]), two.apply(&folders[1])) };
        tokio::select! {
            _ = both => {}
            () = gone => {}
        }
    }

    /// Somebody changes the labels of a project, and leaves one of their own.
    async fn by_hand(&mut self) {
        let name = format!("m-{}-0", self.number);
        let change = || {
            let labels =
                [("hand".to_owned(), "1".to_owned()), (SOURCES[0].to_owned(), "x".to_owned())];
            projects::Change { labels: Some(labels.into()), mesh_cidr: None }
        };
        if self.roll(4) == 0 && live(self.context, &project(&name)).await.is_some() {
            let changed =
                projects::update(self.context, &caller(), &name, change(), Expected::Any).await;
            changed.expect("a change by hand");
        }
    }

    /// Applies both folders to the end, and checks what the store has then.
    async fn finish(&mut self) {
        for of in [0, 1] {
            self.apply(of).await;
            self.prune(of).await;
        }
        // What the first one prunes of an object of both, the second one still declares.
        for of in [0, 1, 0] {
            self.apply(of).await;
        }
        for of in [0, 1] {
            let documents: Vec<Document> = self.folders[of].values().cloned().collect();
            let unchanged = vec!["unchanged"; documents.len()];
            assert_eq!(
                self.source(of).dry().verdicts(&documents).await,
                unchanged,
                "no difference"
            );
            for document in &documents {
                let shown = fields(self.context, &document.address).await;
                for (path, value) in document.fields() {
                    assert_eq!(shown.get(&path), Some(&value), "{} {path}", document.address);
                }
                self.check_rest(&document.address, &shown);
            }
            let again = as_they_are(self.context, &documents).await;
            let said = Source::new(self.context, "model-again").dry().verdicts(&again).await;
            assert_eq!(said, unchanged, "it can be applied as it is shown");
        }
        self.check_gone().await;
    }

    async fn apply(&self, of: usize) {
        let documents: Vec<Document> = self.folders[of].values().cloned().collect();
        let said = self.source(of).verdicts(&documents).await;
        let good = ["created", "changed", "unchanged"];
        assert!(said.iter().all(|word| good.contains(word)), "{said:?}");
    }

    /// A field of ours that no folder has any more is gone, or has its default.
    fn check_rest(&self, address: &Address, shown: &slipway_core::files::fields::Fields) {
        let declared: BTreeSet<String> = self
            .folders
            .iter()
            .filter_map(|folder| folder.get(address))
            .flat_map(|document| document.fields().into_keys())
            .collect();
        let ours =
            |path: &&String| path.contains("model-") || path.as_str() == "spec.parameters.size";
        for path in shown.keys().filter(ours) {
            // A value that somebody wrote by hand while nobody owned the field is theirs.
            let by_hand = shown[path] == json!("x");
            assert!(declared.contains(path) || by_hand, "{address} has {path}");
        }
    }

    /// What the source declared and no longer does is deleted, unless the other declares it.
    async fn prune(&self, of: usize) {
        let page = Page { after: None, limit: 500 };
        let declared = read::declared(self.context, &caller(), SOURCES[of], page).await;
        let prefix = format!("m-{}-", self.number);
        // A source that declared nothing is unknown.
        for line in declared.into_iter().flatten() {
            let address = &line.declared.0.address;
            let is_mine = address.name.starts_with(&prefix);
            if !is_mine || self.folders[of].contains_key(address) {
                continue;
            }
            if !line.shared_with.is_empty() {
                let forgot = apply::release(self.context, &caller(), SOURCES[of], address).await;
                forgot.expect("it was declared");
                continue;
            }
            let (name, options) = (address.name.as_str(), DeleteOptions::default());
            let deleted = match address.kind {
                DocumentKind::Label => {
                    delete::<LabelDefinition>(self.context, &caller(), name, options).await
                }
                _ => delete::<Cloud>(self.context, &caller(), name, options).await,
            };
            deleted.expect("a deletion");
        }
    }

    /// Nothing is left that no folder declares.
    async fn check_gone(&self) {
        for name in 0..2 {
            for kind in [DocumentKind::Label, DocumentKind::Cloud] {
                let address = Address::new(kind, format!("m-{}-{name}", self.number));
                let declared = self.folders.iter().any(|folder| folder.contains_key(&address));
                let there = live(self.context, &address).await.is_some();
                assert_eq!(there, declared, "{address}");
            }
        }
    }
}

fn project(name: &str) -> Address {
    Address::new(DocumentKind::Project, name)
}
