//! Any sequence of edits to a folder, applied with crashes and a second source beside it,
//! ends with the store equal to the folders, nothing touched that another source owns, no
//! difference left, and objects that can be applied as they are shown.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use slipway_core::catalog::blueprint::Blueprint;
use slipway_core::catalog::cloud::Cloud;
use slipway_core::catalog::credential::Credential;
use slipway_core::catalog::label::LabelDefinition;
use slipway_core::catalog::project::Project;
use slipway_core::files::document::{Address, DocumentKind};
use slipway_core::files::write::DeclaredObject;
use slipway_core::ids::{
    AgentId, ApiKeyId, CloudCredentialId, GeneratorId, ResourceId, StackId, TenantId, WorkspaceId,
};
use slipway_core::placement::cluster::Cluster;
use slipway_core::precondition::Expected;
use slipway_core::tenants::profile::TenantProfile;

use super::client::{Source, caller, context, document, fields, live};
use super::suite::as_they_are;
use crate::access::keys;
use crate::broker;
use crate::catalog::port::{BlueprintKey, CredentialKey};
use crate::catalog::{credentials, projects};
use crate::deletion::request::{DeleteOptions, delete};
use crate::files::kind::{self, Document};
use crate::files::{apply, read};
use crate::fleet::port::FleetFilter;
use crate::fleet::{agents, generators, stacks, templates};
use crate::placement::clusters;
use crate::ports::Stores;
use crate::ports::store::Page;
use crate::tenants::provision;
use crate::testing::Dice;
use crate::testing::world::{BLUEPRINT, PROJECT, World};
use crate::topology::workspaces;
use crate::{Context, Error};

/// Edits of one sequence.
const EDITS: u32 = 20;

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

    /// An object of this kind, of which there are two in every sequence.
    fn address(&self, kind: DocumentKind, index: u64) -> Address {
        let name = format!("m-{}-{index}", self.number);
        let address = Address::new(kind, &name);
        match kind {
            DocumentKind::Credential => address.of_cloud(name),
            DocumentKind::Assignment => address.of_project(&name).of_cloud(name),
            DocumentKind::Agent => Address::new(kind, format!("{name}@east")).of_project(PROJECT),
            DocumentKind::Resource
            | DocumentKind::Generator
            | DocumentKind::Template
            | DocumentKind::Stack
            | DocumentKind::Tenant
            | DocumentKind::Workspace => address.of_project(PROJECT),
            _ => address,
        }
    }

    /// Puts a document into one of the folders, or takes one away.
    fn edit(&mut self) {
        let of = usize::from(self.roll(2) == 1);
        let (kind, index) = (self.roll(DocumentKind::ALL.len() as u64), self.roll(2));
        let address = self.address(DocumentKind::ALL[kind as usize], index);
        if self.roll(3) == 0 {
            self.folders[of].remove(&address);
            self.drop_dependants(&address);
        } else {
            self.put(of, address);
        }
    }

    /// Puts a document with random fields, and what it refers to, if no folder has that.
    fn put(&mut self, of: usize, address: Address) {
        let (labels, spec) = self.fields(of, &address);
        let document = document(address.clone(), &labels, &spec);
        let needs = kind::of(address.kind).needs(&document).into_iter();
        let prefix = self.prefix();
        let needs = needs.filter(|needed| needed.name.starts_with(&prefix));
        for needed in needs.collect::<Vec<_>>() {
            if self.folders.iter().all(|folder| !folder.contains_key(&needed)) {
                self.put(of, needed);
            }
        }
        self.folders[of].insert(address, document);
    }

    /// Takes away what refers to something that no folder has any more.
    fn drop_dependants(&mut self, address: &Address) {
        if self.folders.iter().any(|folder| folder.contains_key(address)) {
            return;
        }
        let refers =
            |document: &Document| kind::of(document.address.kind).needs(document).contains(address);
        let dependants: Vec<Address> = self
            .folders
            .iter()
            .flat_map(BTreeMap::values)
            .filter(|document| refers(document))
            .map(|document| document.address.clone())
            .collect();
        for dependant in dependants {
            for folder in &mut self.folders {
                folder.remove(&dependant);
            }
            self.drop_dependants(&dependant);
        }
    }

    fn prefix(&self) -> String {
        format!("m-{}-", self.number)
    }

    /// Random labels and spec; no field is of both sources, but for those that never change.
    fn fields(&mut self, of: usize, address: &Address) -> (Value, Value) {
        let (there, value) = (self.roll(2) == 0, self.roll(3));
        let (first, text) = (there && of == 0, value.to_string());
        let label = if there { json!({ SOURCES[of]: text }) } else { json!({}) };
        let mut spec = match address.kind {
            DocumentKind::Label | DocumentKind::Project => json!({}),
            DocumentKind::Cloud => json!({ "provider": "local" }),
            DocumentKind::Credential | DocumentKind::Assignment => {
                json!({ "cloud": address.cloud })
            }
            DocumentKind::Cluster | DocumentKind::Blueprint => json!({ "engine": "local" }),
            DocumentKind::Placement => json!({ "cluster": "local" }),
            DocumentKind::Key => json!({ "role": "viewer" }),
            DocumentKind::Resource => json!({ "blueprint": BLUEPRINT }),
            DocumentKind::Generator => json!({}),
            DocumentKind::Template => json!({ "content": "kind: A" }),
            DocumentKind::Stack => json!({ "generator": address.name }),
            DocumentKind::TenantProfile => json!({ "settings": { "engine": "sqlite" } }),
            DocumentKind::Tenant => json!({ "profile": address.name }),
            DocumentKind::Workspace => {
                let template = json!({ "hostname_pattern": format!("{}-{{n}}", address.name) });
                json!({ "groups": [{
                    "name": "workers", "role": "Worker", "count": 0, "blueprint": BLUEPRINT,
                    "scale": { "min": 0, "max": 3, "template": template },
                }] })
            }
            DocumentKind::Agent => {
                let generator = address.name.split('@').next().unwrap_or_default();
                json!({ "generators": [generator] })
            }
        };
        match address.kind {
            DocumentKind::Label if first => spec["description"] = json!(text),
            DocumentKind::Workspace if there => spec["groups"][0]["count"] = json!(value),
            DocumentKind::Label if there => spec["propagate"] = json!(value > 0),
            DocumentKind::Cloud if there => spec["endpoint"] = json!({ SOURCES[of]: text }),
            DocumentKind::Credential if first => spec["kvMount"] = json!(format!("mount{text}")),
            DocumentKind::Cluster if first => spec["region"] = json!(format!("r{text}")),
            DocumentKind::Blueprint if first => spec["description"] = json!(text),
            DocumentKind::Blueprint if there => spec["displayName"] = json!(format!("B {text}")),
            DocumentKind::Resource if first => spec["parameters"] = json!({ "size": value }),
            DocumentKind::Generator if first => spec["description"] = json!(text),
            DocumentKind::Generator if there => spec["acceptsSecrets"] = json!(value > 0),
            DocumentKind::Template if first => spec["description"] = json!(text),
            DocumentKind::Template if there => {
                spec["parametersSchema"] = json!({ "maxProperties": value });
            }
            DocumentKind::TenantProfile if first => spec["description"] = json!(text),
            DocumentKind::Stack if first => {
                spec["objects"] = json!(format!("kind: ConfigMap\nmetadata: {{name: a{text}}}\n"));
            }
            DocumentKind::Stack if there => spec["labels"] = json!([format!("l{text}")]),
            DocumentKind::Agent if first => {
                let stack = address.name.split('@').next().unwrap_or_default();
                spec["targets"] = json!([stack]);
            }
            DocumentKind::Agent if there => {
                spec["labels"] = json!(["both", format!("l{text}")]);
                spec["annotations"] = json!({ SOURCES[of]: text });
            }
            _ => {}
        }
        (if address.kind.has_labels() { label } else { json!({}) }, spec)
    }

    /// Applies both folders at once and goes away at some point.
    async fn crash(&mut self) {
        let steps = self.roll(400);
        let folders = self.folders.clone().map(|folder| folder.into_values().collect::<Vec<_>>());
        let (one, two) = (self.source(0), self.source(1));
        let both = async { tokio::join!(one.apply(&folders[0]), two.apply(&folders[1])) };
        tokio::select! {
            _ = both => {}
            () = yields(steps) => {}
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
        // A document may refer to one of the other folder, and that one to another.
        for of in [0, 1, 0, 1] {
            let documents: Vec<Document> = self.folders[of].values().cloned().collect();
            self.source(of).apply(&documents).await;
        }
        for of in [0, 1] {
            self.apply(of).await;
        }
        // Killed in the middle once. What one source prunes the other may still use, so the
        // first prunes again.
        let steps = self.roll(400);
        tokio::select! {
            () = self.prune(0) => {}
            () = yields(steps) => {}
        }
        for of in [0, 1, 0] {
            self.prune(of).await;
        }
        // What one source released of an object of both, the other one still declares.
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

    /// What the source declared and no longer does is deleted, what refers to something
    /// before it, unless the other source declares it too.
    async fn prune(&self, of: usize) {
        let page = Page { after: None, limit: 500 };
        let declared = read::declared(self.context, &caller(), SOURCES[of], page).await;
        // A source that declared nothing is unknown.
        let mut declared: Vec<_> = declared.into_iter().flatten().collect();
        declared.sort_by_key(|line| std::cmp::Reverse(line.declared.0.address.kind));
        let prefix = self.prefix();
        for line in declared {
            let row = &line.declared.0;
            if !row.address.name.starts_with(&prefix) || self.folders[of].contains_key(&row.address)
            {
                continue;
            }
            if !line.shared_with.is_empty() {
                self.release(of, &row.address).await;
                continue;
            }
            match self.delete(row).await {
                Ok(()) if row.address.kind.is_of_project() => self.release(of, &row.address).await,
                Ok(()) => {}
                // Something of the other source uses it still.
                Err(error) => {
                    let code = error.kind().code();
                    assert!(code.ends_with("_in_use"), "{}: {error}", row.address);
                }
            }
        }
    }

    async fn release(&self, of: usize, address: &Address) {
        let released = apply::release(self.context, &caller(), SOURCES[of], address).await;
        released.expect("it was declared");
    }

    /// Through the use-case that the command calls.
    async fn delete(&self, row: &DeclaredObject) -> Result<(), Error> {
        let (context, caller, options) = (self.context, &caller(), DeleteOptions::default());
        let id = &row.subject_id.to_string();
        let deleted = match row.address.kind {
            DocumentKind::Label => delete::<LabelDefinition>(context, caller, id, options).await,
            DocumentKind::Cloud => delete::<Cloud>(context, caller, id, options).await,
            DocumentKind::Cluster => delete::<Cluster>(context, caller, id, options).await,
            DocumentKind::Project => delete::<Project>(context, caller, id, options).await,
            DocumentKind::Blueprint => {
                let key = BlueprintKey { blueprint: id.clone(), version: None };
                delete::<Blueprint>(context, caller, &key, options).await
            }
            DocumentKind::Credential => {
                let key = CredentialKey::Existing(CloudCredentialId::new(row.subject_id));
                delete::<Credential>(context, caller, &key, options).await
            }
            DocumentKind::Resource => {
                let id = ResourceId::new(row.subject_id);
                broker::delete::delete(context, caller, id, options).await
            }
            DocumentKind::Generator => {
                let id = GeneratorId::new(row.subject_id);
                generators::delete(context, caller, id, options).await
            }
            DocumentKind::Stack => {
                let id = StackId::new(row.subject_id);
                stacks::delete(context, caller, id, options).await
            }
            DocumentKind::Agent => {
                let id = AgentId::new(row.subject_id);
                agents::delete(context, caller, id, options).await
            }
            DocumentKind::TenantProfile => {
                delete::<TenantProfile>(context, caller, id, options).await
            }
            DocumentKind::Tenant => {
                let id = TenantId::new(row.subject_id);
                provision::delete(context, caller, id, options).await
            }
            DocumentKind::Workspace => {
                let id = WorkspaceId::new(row.subject_id);
                workspaces::delete(context, caller, id, options).await
            }
            DocumentKind::Template => return self.delete_versions(&row.address.name).await,
            DocumentKind::Key => {
                let id = ApiKeyId::new(row.subject_id);
                return keys::revoke(context, caller, id, None, Expected::Any).await;
            }
            DocumentKind::Assignment => {
                let cloud = row.address.cloud.clone().unwrap_or_default();
                let credential = Address::new(DocumentKind::Credential, &row.address.name);
                let credential = live(context, &credential.of_cloud(cloud)).await;
                let id = credential.expect("its credential").subject_id;
                let (project, id) = (&row.address.name, CloudCredentialId::new(id));
                return credentials::withdraw(context, caller, project, id).await;
            }
            DocumentKind::Placement => {
                let project = &row.address.name;
                let gone = clusters::withdraw(context, caller, project, Expected::Any).await;
                return gone.map(drop);
            }
        };
        deleted.map(drop)
    }

    /// Every version of a template.
    async fn delete_versions(&self, name: &str) -> Result<(), Error> {
        let filter = FleetFilter { name: Some(name.to_owned()), ..FleetFilter::default() };
        let page = Page { after: None, limit: 500 };
        for version in templates::list(self.context, &caller(), &filter, page).await?.items {
            let options = DeleteOptions::default();
            templates::delete(self.context, &caller(), version.id, options).await?;
        }
        Ok(())
    }

    /// Nothing is left that no folder declares, or it is on its way out.
    async fn check_gone(&self) {
        for kind in DocumentKind::ALL {
            for index in 0..2 {
                let address = self.address(*kind, index);
                let declared = self.folders.iter().any(|folder| folder.contains_key(&address));
                let there = live(self.context, &address).await.is_some_and(|live| !live.leaving);
                assert_eq!(there, declared, "{address}");
            }
        }
    }
}

async fn yields(steps: u64) {
    for _ in 0..steps {
        tokio::task::yield_now().await;
    }
}

fn project(name: &str) -> Address {
    Address::new(DocumentKind::Project, name)
}
