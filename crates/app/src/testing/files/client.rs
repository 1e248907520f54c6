//! Applies documents as a source.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use slipway_core::Timestamp;
use slipway_core::blocker::Deadlines;
use slipway_core::catalog::blueprint::SubmittedContent;
use slipway_core::deletion::brake::Limits;
use slipway_core::deletion::door::Defaults;
use slipway_core::files::document::{Address, DocumentKind};
use slipway_core::files::fields::Fields;
use slipway_core::nodes::token::TokenLifetimes;
use slipway_core::placement::cluster::NamespacePrefix;
use uuid::Uuid;

use crate::Context;
use crate::access::authorise::Caller;
use crate::context::{Settings, Wakes};
use crate::files::apply::{self, Applied, Draft, Options, Verdict};
use crate::files::kind::{Document, Live, Version};
use crate::files::read;
use crate::ports::Stores;
use crate::ports::clock::{Clock, Entropy};
use crate::ports::meter::Unmetered;
use crate::ports::templates::NoTemplates;

#[derive(Debug)]
struct NoClock;

impl Clock for NoClock {
    fn now(&self) -> Timestamp {
        Timestamp::ZERO
    }
}

/// Rising ids, and key texts made of them.
#[derive(Debug, Default)]
struct Counter(AtomicU64);

impl Entropy for Counter {
    fn uuid(&self) -> Uuid {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        Uuid::from_u128((0x0191_0000_0000_7000_u128 << 64) | u128::from(number))
    }

    fn fill(&self, bytes: &mut [u8]) {
        let number = self.0.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        for (byte, from) in bytes.iter_mut().zip(number.iter().rev().cycle()) {
            *byte = *from;
        }
    }
}

pub(in crate::testing) fn context(stores: Stores) -> Context {
    Context {
        stores,
        clock: Arc::new(NoClock),
        entropy: Arc::new(Counter::default()),
        wakes: Wakes::default(),
        meter: Arc::new(Unmetered),
        templates: Arc::new(NoTemplates),
        tenants: Arc::new(crate::tenants::targets::NoTargets),
        inventories: crate::topology::inventory::Inventories::default(),
        settings: Settings {
            deadlines: Deadlines::default(),
            claimed_within: Duration::from_secs(60),
            token_lifetimes: TokenLifetimes::default(),
            token_environment: "test".to_owned(),
            namespace_prefix: NamespacePrefix::from_stored("p-".to_owned()),
            deletion: Defaults::default(),
            brake: Limits { resources: 1_000, window: Duration::from_secs(60) },
        },
    }
}

pub(in crate::testing) fn caller() -> Caller {
    Caller::trusted("files")
}

/// A document with labels and a spec.
pub(super) fn document(address: Address, labels: &Value, spec: &Value) -> Document {
    let labels: BTreeMap<String, String> = serde_json::from_value(labels.clone()).expect("labels");
    let mut spec = spec.as_object().expect("a spec").clone();
    let content = spec.remove("objects").map(|text| text.as_str().expect("a text").to_owned());
    let origin = "test.yaml".to_owned();
    Document { address, labels, spec, versions: Vec::new(), content, origin, plan: None }
}

pub(super) fn version(name: &str, provider: &str) -> Version {
    let content = SubmittedContent {
        version: name.to_owned(),
        xrd: String::new(),
        composition: String::new(),
        parameters: None,
        injection_strategy: "cloud-init-user-data".to_owned(),
        mesh_role: None,
        provider_kinds: vec![provider.to_owned()],
        install_definitions: false,
        surge: false,
    };
    let digest = json!([name, provider]).to_string();
    Version { content, digest }
}

/// Somebody who applies documents.
#[derive(Debug, Clone)]
pub(super) struct Source<'a> {
    pub(super) context: &'a Context,
    pub(super) name: &'static str,
    pub(super) force: bool,
    pub(super) dry_run: bool,
}

impl<'a> Source<'a> {
    pub(super) fn new(context: &'a Context, name: &'static str) -> Self {
        Self { context, name, force: false, dry_run: false }
    }

    pub(super) fn forcing(&self) -> Self {
        Self { force: true, ..self.clone() }
    }

    pub(super) fn dry(&self) -> Self {
        Self { dry_run: true, ..self.clone() }
    }

    pub(super) async fn apply(&self, documents: &[Document]) -> Vec<Applied> {
        let drafts = documents.iter().map(|document| Draft {
            address: Some(document.address.clone()),
            document: Ok(document.clone()),
        });
        let Self { force, dry_run, .. } = *self;
        let options = Options { source: self.name.to_owned(), dry_run, force };
        let applied = apply::apply(self.context, &caller(), &options, drafts.collect()).await;
        applied.expect("an answer")
    }

    /// The verdicts in a word each; a refusal by its code.
    pub(super) async fn verdicts(&self, documents: &[Document]) -> Vec<&'static str> {
        self.apply(documents).await.iter().map(word).collect()
    }
}

pub(super) fn word(applied: &Applied) -> &'static str {
    match &applied.verdict {
        Verdict::Created => "created",
        Verdict::Changed => "changed",
        Verdict::Unchanged => "unchanged",
        Verdict::Refused(refusal) => refusal.kind.code(),
    }
}

pub(super) async fn live(context: &Context, address: &Address) -> Option<Live> {
    let wanted = std::slice::from_ref(address);
    let mut found = read::documents(context, &caller(), wanted).await.expect("a read");
    found.pop().flatten()
}

pub(super) async fn fields(context: &Context, address: &Address) -> Fields {
    live(context, address).await.expect("it exists").fields
}

pub(super) fn at(kind: DocumentKind, name: &str) -> Address {
    Address::new(kind, name)
}
