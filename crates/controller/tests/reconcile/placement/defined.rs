//! Definitions on the in-memory cluster. An XRD is established on the first
//! observation after it was applied.

use std::collections::BTreeMap;

use async_trait::async_trait;
use slipway_app::ports::Definitions;
use slipway_app::ports::substrate::Error;
use slipway_core::catalog::blueprint_version::CompositeType;
use slipway_core::placement::definitions::{
    DefinitionKey, DefinitionKind, DefinitionState, ObservedDefinition, Owner,
};
use slipway_render::definitions::{self, DefinitionObject, LABEL_BLUEPRINT, LABEL_VERSION};

use super::cluster::Cluster;

#[derive(Debug, Default)]
pub(super) struct Defined {
    objects: BTreeMap<DefinitionKey, ObservedDefinition>,
    /// The numbers of the calls about them.
    pub(super) calls: Vec<u64>,
}

impl Cluster {
    pub(super) fn definitions(&self) -> Vec<DefinitionKind> {
        self.defined.lock().unwrap().objects.keys().map(|key| key.kind).collect()
    }

    fn note_call(&self) {
        let number = self.calls() + 1;
        self.defined.lock().unwrap().calls.push(number);
    }

    fn define_now(&self, object: &DefinitionObject) -> DefinitionState {
        let label =
            |name: &str| object.value["metadata"]["labels"][name].as_str().map(str::to_owned);
        let mut defined = self.defined.lock().unwrap();
        if defined.objects.contains_key(&object.key) {
            self.violation(format!("{:?} was put twice", object.key));
        }
        let established = |(key, seen): (&DefinitionKey, &ObservedDefinition)| {
            key.kind == DefinitionKind::Xrd && seen.established.is_ok()
        };
        if object.key.kind == DefinitionKind::Composition
            && !defined.objects.iter().any(established)
        {
            self.violation("a Composition was put before its kind was there".to_owned());
        }
        let seen = ObservedDefinition {
            owner: Owner::Ours(label(LABEL_BLUEPRINT)),
            version: label(LABEL_VERSION),
            fits: true,
            terminating: false,
            established: Err("not yet".to_owned()),
            serves: definitions::served(&object.value),
        };
        defined.objects.insert(object.key.clone(), seen.clone());
        DefinitionState::Seen(seen)
    }
}

#[async_trait]
impl Definitions for Cluster {
    async fn observe(&self, object: &DefinitionObject) -> DefinitionState {
        self.note_call();
        let looked = self.call(|| {
            let mut defined = self.defined.lock().unwrap();
            let Some(seen) = defined.objects.get_mut(&object.key) else {
                return Ok(DefinitionState::Absent);
            };
            let now = seen.clone();
            seen.established = Ok(());
            Ok(DefinitionState::Seen(now))
        });
        looked.await.unwrap_or_else(|error| DefinitionState::Unreadable(error.to_string()))
    }

    async fn define(&self, object: &DefinitionObject) -> Result<DefinitionState, Error> {
        self.note_call();
        self.call(|| Ok(self.define_now(object))).await
    }

    async fn lacking(&self, _kind: &CompositeType) -> Result<Vec<String>, Error> {
        self.note_call();
        self.call(|| Ok(Vec::new())).await
    }
}
