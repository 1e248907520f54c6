//! What the kinds share: live rows by their names, and fields of a spec.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use slipway_core::catalog::project::Project;
use slipway_core::files::document::Address;
use slipway_core::files::fields::{Fields, label_path};
use slipway_core::ids::ProjectId;
use slipway_core::text::Labels;

use crate::Error;
use crate::access::authorise::authorise;
use crate::files::kind::{Applier, Live};
use crate::kind::StoredKind;

impl Applier<'_> {
    /// The live rows of these names that the caller may see, by one read.
    pub(super) async fn named<K: StoredKind>(
        self,
        names: impl IntoIterator<Item = String>,
    ) -> Result<Vec<K>, Error> {
        authorise(self.caller, K::READ)?;
        let mut names: Vec<String> = names.into_iter().collect();
        names.sort_unstable();
        names.dedup();
        let found = self.context.stores.kind::<K>().named(&names).await?;
        Ok(found.into_iter().filter_map(|found| found.seen_by(self.caller)).collect())
    }

    /// The objects of a kind whose names alone tell which row they are.
    pub(super) async fn rows<K: StoredKind>(
        self,
        wanted: &[Address],
        live: impl Fn(K) -> Live,
    ) -> Result<Vec<Live>, Error> {
        Ok(self.named::<K>(names(wanted)).await?.into_iter().map(live).collect())
    }

    /// The ids of the projects that these addresses are in.
    pub(in crate::files) async fn projects(
        self,
        wanted: impl IntoIterator<Item = &Address>,
    ) -> Result<BTreeMap<String, ProjectId>, Error> {
        let outer = wanted.into_iter().filter_map(|address| address.home().cloned());
        let names: Vec<String> = outer.collect();
        if names.is_empty() {
            return Ok(BTreeMap::new());
        }
        let found = self.named::<Project>(names).await?;
        Ok(found.into_iter().map(|project| (project.name.to_string(), project.id)).collect())
    }
}

pub(super) fn names(wanted: &[Address]) -> impl Iterator<Item = String> {
    wanted.iter().map(|address| address.name.clone())
}

/// Fields of a spec; those that are null are left out.
pub(super) fn spec<const N: usize>(fields: [(&str, Value); N]) -> Fields {
    let present = fields.into_iter().filter(|(_, value)| !value.is_null());
    present.map(|(name, value)| (format!("spec.{name}"), value)).collect()
}

/// The fields of a map of the spec.
pub(super) fn map<'v>(
    name: &str,
    entries: impl IntoIterator<Item = (&'v String, &'v Value)>,
) -> Fields {
    entries.into_iter().map(|(key, v)| (format!("spec.{name}.{key}"), v.clone())).collect()
}

/// The labels as fields.
pub(super) fn labelled(labels: &Labels) -> Fields {
    labels.as_map().iter().map(|(key, value)| (label_path(key), json!(value))).collect()
}
