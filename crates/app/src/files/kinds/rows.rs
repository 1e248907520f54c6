//! What the kinds share: live rows by their names, and fields of a spec.

use std::collections::BTreeMap;

use serde_json::Value;
use slipway_core::catalog::project::Project;
use slipway_core::files::document::{Address, DocumentKind};
use slipway_core::files::fields::Fields;
use slipway_core::ids::ProjectId;

use crate::access::authorise::{Caller, authorise};
use crate::kind::StoredKind;
use crate::{Context, Error};

/// The live rows of these names that the caller may see.
pub(super) async fn named<K: StoredKind>(
    context: &Context,
    caller: &Caller,
    names: impl IntoIterator<Item = String>,
) -> Result<Vec<K>, Error> {
    authorise(caller, K::READ)?;
    let mut names: Vec<String> = names.into_iter().collect();
    names.sort_unstable();
    names.dedup();
    let found = context.stores.kind::<K>().named(&names).await?;
    Ok(found.into_iter().filter_map(|found| found.seen_by(caller)).collect())
}

pub(super) fn names(wanted: &[Address]) -> impl Iterator<Item = String> {
    wanted.iter().map(|address| address.name.clone())
}

/// The ids of the projects that these addresses are in.
pub(in crate::files) async fn projects(
    context: &Context,
    caller: &Caller,
    wanted: impl IntoIterator<Item = &Address>,
) -> Result<BTreeMap<String, ProjectId>, Error> {
    let outer = |address: &Address| match address.kind {
        DocumentKind::Placement => Some(address.name.clone()),
        _ => address.project.clone(),
    };
    let names: Vec<String> = wanted.into_iter().filter_map(outer).collect();
    if names.is_empty() {
        return Ok(BTreeMap::new());
    }
    let found = named::<Project>(context, caller, names).await?;
    Ok(found.into_iter().map(|project| (project.name.to_string(), project.id)).collect())
}

/// Fields of a spec; those without a value are left out.
pub(super) fn spec<const N: usize>(fields: [(&str, Option<Value>); N]) -> Fields {
    let present = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
    present.map(|(name, value)| (format!("spec.{name}"), value)).collect()
}
