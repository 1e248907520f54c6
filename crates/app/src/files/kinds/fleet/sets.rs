//! Lists of a spec whose order means nothing, and the rows that they stand for.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use slipway_core::error::ErrorKind::{self, EntryExists, EntryNotFound};
use slipway_core::error::Refusal;
use slipway_core::files::document::Address;
use slipway_core::files::fields::{Fields, entries};
use slipway_core::fleet::generator::Generator;
use slipway_core::fleet::stack::Stack;
use slipway_core::ids::{GeneratorId, ProjectId, StackId};
use slipway_core::subject::Subject;
use uuid::Uuid;

use super::rows::map;
use crate::Error;
use crate::files::kind::{Applier, Desired, Document};
use crate::fleet::tags;
use crate::kind::StoredKind;

/// Somebody else added or removed an entry since it was read. The rest is done all the same, and
/// the object is read again afterwards.
#[derive(Debug, Default)]
pub(super) struct Overtaken(Option<Error>);

impl Overtaken {
    pub(super) fn unless<T>(&mut self, done: Result<T, Error>) -> Result<(), Error> {
        match done {
            Err(error) if [EntryExists, EntryNotFound].contains(&error.kind()) => {
                self.0 = Some(error);
                Ok(())
            }
            done => done.map(drop),
        }
    }

    pub(super) fn end(self) -> Result<(), Error> {
        self.0.map_or(Ok(()), Err)
    }
}

/// What should be there and is not, and the reverse.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) added: Vec<String>,
    pub(super) removed: Vec<String>,
}

impl Difference {
    /// Of a list that is new.
    pub(super) fn of_new(document: &Document, name: &str) -> Self {
        let added = texts(document.spec.get(name)).into_iter().collect();
        Self { added, removed: Vec::new() }
    }

    /// Of a list that changes.
    pub(super) fn of(wanted: &Desired<'_>, name: &str) -> Self {
        let Some(after) = wanted.value(name) else { return Self::default() };
        let path = format!("spec.{name}");
        let (after, before) = (texts(Some(after)), texts(wanted.live.fields.get(&path)));
        Self {
            added: after.difference(&before).cloned().collect(),
            removed: before.difference(&after).cloned().collect(),
        }
    }
}

fn texts(list: Option<&Value>) -> BTreeSet<String> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| Some(item.as_str()?.to_owned())).collect()
}

/// The field of a list; an empty one is left out, which is its default.
pub(super) fn list(name: &str, items: impl IntoIterator<Item = String>) -> Fields {
    let items: BTreeSet<String> = items.into_iter().collect();
    let field = (!items.is_empty()).then(|| (format!("spec.{name}"), json!(items)));
    field.into_iter().collect()
}

/// Labels and annotations, by what they belong to.
#[derive(Debug, Default)]
pub(super) struct Tags {
    labels: BTreeMap<Uuid, Vec<String>>,
    annotations: BTreeMap<Uuid, BTreeMap<String, Value>>,
}

impl Tags {
    /// Two reads for all.
    pub(super) async fn read(by: Applier<'_>, owners: &[Uuid]) -> Result<Self, Error> {
        let mut tags = Self::default();
        if owners.is_empty() {
            return Ok(tags);
        }
        for label in by.context.stores.fleet.labels_of(owners).await? {
            tags.labels.entry(label.owner.id).or_default().push(label.label);
        }
        for one in by.context.stores.fleet.annotations_of(owners).await? {
            let annotations = tags.annotations.entry(one.owner.id).or_default();
            annotations.insert(one.key, json!(one.value));
        }
        Ok(tags)
    }

    pub(super) fn fields(&mut self, owner: Uuid) -> Fields {
        let mut fields = list("labels", self.labels.remove(&owner).unwrap_or_default());
        let annotations = self.annotations.remove(&owner).unwrap_or_default();
        fields.extend(map("annotations", &annotations));
        fields
    }
}

/// Labels and annotations that are to come, and those that are to go. What comes is written
/// first, so that an agent that keeps a stack by another label is never told to remove it.
#[derive(Debug, Default)]
pub(super) struct TagChanges {
    labels: Difference,
    annotated: Vec<(String, String)>,
    unannotated: Vec<String>,
}

impl TagChanges {
    pub(super) fn of_new(document: &Document) -> Self {
        let fields = document.fields();
        let annotated = entries(&fields, "annotations").into_iter();
        Self {
            labels: Difference::of_new(document, "labels"),
            annotated: annotated
                .filter_map(|(key, v)| Some((key, v.as_str()?.to_owned())))
                .collect(),
            unannotated: Vec::new(),
        }
    }

    pub(super) fn of(wanted: &Desired<'_>) -> Self {
        let mut changes = Self { labels: Difference::of(wanted, "labels"), ..Self::default() };
        for change in wanted.changes {
            let Some(key) = change.path.strip_prefix("spec.annotations.") else { continue };
            if change.before.is_some() {
                changes.unannotated.push(key.to_owned());
            }
            let after = change.after.as_ref().and_then(Value::as_str);
            changes.annotated.extend(after.map(|value| (key.to_owned(), value.to_owned())));
        }
        changes
    }

    /// One value replaces the other: no agent has the stack by both.
    pub(super) async fn add(
        &self,
        Applier { context, caller }: Applier<'_>,
        owner: Subject,
        overtaken: &mut Overtaken,
    ) -> Result<(), Error> {
        for label in &self.labels.added {
            overtaken.unless(tags::add_label(context, caller, owner, label).await)?;
        }
        for (key, value) in &self.annotated {
            if self.unannotated.contains(key) {
                overtaken.unless(tags::remove_annotation(context, caller, owner, key).await)?;
            }
            overtaken.unless(tags::add_annotation(context, caller, owner, (key, value)).await)?;
        }
        Ok(())
    }

    pub(super) async fn remove(
        &self,
        Applier { context, caller }: Applier<'_>,
        owner: Subject,
        overtaken: &mut Overtaken,
    ) -> Result<(), Error> {
        for label in &self.labels.removed {
            overtaken.unless(tags::remove_label(context, caller, owner, label).await)?;
        }
        let replaced = |key: &&String| self.annotated.iter().any(|(added, _)| added == *key);
        for key in self.unannotated.iter().filter(|key| !replaced(key)) {
            overtaken.unless(tags::remove_annotation(context, caller, owner, key).await)?;
        }
        Ok(())
    }
}

/// The generators of these names in a project.
pub(super) async fn generators(
    by: Applier<'_>,
    project: Option<ProjectId>,
    names: &[String],
) -> Result<Vec<GeneratorId>, Error> {
    let is_it =
        |one: &Generator, name: &str| one.name.as_str() == name && Some(one.project_id) == project;
    Ok(named(by, names, is_it).await?.into_iter().map(|one| one.id).collect())
}

/// The stacks of these names in a project.
pub(super) async fn stacks(
    by: Applier<'_>,
    project: Option<ProjectId>,
    names: &[String],
) -> Result<Vec<StackId>, Error> {
    let is_it =
        |one: &Stack, name: &str| one.name.as_str() == name && Some(one.project_id) == project;
    Ok(named(by, names, is_it).await?.into_iter().map(|one| one.id).collect())
}

async fn named<K: StoredKind>(
    by: Applier<'_>,
    names: &[String],
    is_it: impl Fn(&K, &str) -> bool + Send,
) -> Result<Vec<K>, Error> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let found = by.named::<K>(names.iter().cloned()).await?;
    let one = |name: &String| {
        let one = found.iter().find(|one| is_it(one, name)).cloned();
        one.ok_or_else(|| missing(K::MISSING, K::KIND, name))
    };
    Ok(names.iter().map(one).collect::<Result<_, Refusal>>()?)
}

fn missing(kind: ErrorKind, noun: &str, name: &str) -> Refusal {
    let message = format!("there is no {noun} `{name}` in this project; check its name");
    Refusal::new(kind, message).at(format!("spec.{noun}s"))
}

/// The project of a document, if it exists.
pub(super) async fn project_of(
    by: Applier<'_>,
    address: &Address,
) -> Result<Option<ProjectId>, Error> {
    let projects = by.projects([address]).await?;
    Ok(address.project.as_ref().and_then(|name| projects.get(name).copied()))
}
