//! Updating a resource in place: labels, parameters, version. The loop applies what
//! changed: a rendering that differs from the substrate is drift.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::access::audit::{About, Actor, AuditEntry};
use crate::broker::BrokerWrite;
use crate::broker::event;
use crate::broker::phase::Phase;
use crate::broker::redeclare::{self, Corrections, RedeclareSnapshot, Redeclared};
use crate::broker::resource::Resource;
use crate::broker::snapshot::{DeclareSnapshot, ResourceSnapshot};
use crate::broker::surge;
use crate::broker::teardown::Scope;
use crate::catalog::blueprint_version::{BlueprintVersion, CompositeType};
use crate::commit::{Commit, Write};
use crate::deletion::record::{Deletion, DeletionState};
use crate::error::{ErrorKind, Refusal};
use crate::event::Event;
use crate::precondition::Expected;
use crate::text::Labels;
use crate::topology::owner::{self, Verb};

/// What an update asks for. Anything else stays as declared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    /// Another version of the same blueprint.
    pub version: Option<String>,
    /// New values by their names; `null` takes a value away.
    pub parameters: BTreeMap<String, Value>,
    /// All labels, in place of those that it has.
    pub labels: Option<BTreeMap<String, String>>,
}

impl Changes {
    pub fn corrections(&self) -> Corrections {
        Corrections { version: self.version.clone(), parameters: self.parameters.clone() }
    }
}

/// The difference in one field, for the person who asks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldChange {
    /// `version`, `parameters.<name>` or `labels.<key>`.
    pub field: String,
    pub before: Option<Value>,
    pub after: Option<Value>,
}

/// An accepted update. Without changes its commit is empty.
#[derive(Debug, Clone, Default)]
pub struct Updated {
    pub changes: Vec<FieldChange>,
    pub commit: Commit,
}

/// Updates version and parameters, and the labels with them.
pub fn update(
    snapshot: &RedeclareSnapshot,
    changes: &Changes,
    expected: Expected,
    actor: &Actor,
) -> Result<Updated, Refusal> {
    owner::check(&snapshot.resource, Verb::Update)?;
    accept(snapshot, changes, expected, actor)
}

/// The same if whoever owns the resource has agreed.
pub(crate) fn accept(
    snapshot: &RedeclareSnapshot,
    changes: &Changes,
    expected: Expected,
    actor: &Actor,
) -> Result<Updated, Refusal> {
    let RedeclareSnapshot { resource, project, declared } = snapshot;
    stays(resource, expected)?;
    // A version is retired for what is new. What was made from it before stays on it.
    let keeps = |version: &BlueprintVersion| version.id == resource.blueprint.id;
    let kept = declared
        .blueprint
        .as_ref()
        .is_some_and(keeps)
        .then(|| DeclareSnapshot { blueprint_retired: false, ..declared.clone() });
    let declared = kept.as_ref().unwrap_or(declared);
    // Taken away already, perhaps by the same request: its answer may have been lost.
    let has = |name: &String| resource.attempt.parameter_values().as_map().contains_key(name);
    let mut corrections = changes.corrections();
    corrections.parameters.retain(|name, value| !value.is_null() || has(name));
    let redeclared = redeclare::check(resource, project, declared, &corrections)?;
    // What is declared so already is so in every phase.
    if !redeclare::changed(&resource.attempt, &redeclared.correction).is_empty() {
        converges(resource)?;
        in_place(resource, &redeclared)?;
    }
    written(resource, Some(redeclared), changes.labels.as_ref(), actor)
}

/// Replaces the labels alone, which may become cloud tags of the composite. Any phase but
/// the end takes it, and nothing else of the declaration is checked again.
pub fn relabel(
    resource: &ResourceSnapshot,
    labels: Option<&BTreeMap<String, String>>,
    expected: Expected,
    actor: &Actor,
) -> Result<Updated, Refusal> {
    stays(resource, expected)?;
    written(resource, None, labels, actor)
}

fn stays(snapshot: &ResourceSnapshot, expected: Expected) -> Result<(), Refusal> {
    let resource = &snapshot.resource;
    expected.check("resource", resource.revision)?;
    if resource.deleted_at.is_some() {
        let message = format!("resource {} is deleted; it stays as it was", resource.id);
        return Err(Refusal::new(ErrorKind::ResourceNotFound, message));
    }
    Ok(())
}

/// Refuses where the loop would not apply what is declared.
fn converges(snapshot: &ResourceSnapshot) -> Result<(), Refusal> {
    let handle = &snapshot.resource.handle;
    // What replaces it would not have the change.
    if snapshot.beside().is_some() && !snapshot.attempt.phase().is_deletion() {
        return Err(surge::under_way(snapshot));
    }
    match snapshot.attempt.phase() {
        Phase::Failed => {
            let message = format!(
                "resource `{handle}` is Failed, and nothing is applied to what failed for good; `slipway resource retry {handle}` takes the same changes and makes it anew"
            );
            Err(Refusal::new(ErrorKind::ResourceFailed, message))
        }
        phase if phase.is_deletion() => Err(leaving(snapshot)),
        _ => Ok(()),
    }
}

/// Its attempt is being taken down.
pub(crate) fn leaving(snapshot: &ResourceSnapshot) -> Refusal {
    let (handle, attempt) = (&snapshot.resource.handle, snapshot.attempt.attempt());
    let follows = |deletion: &Deletion| Scope::of(deletion) == Scope::Attempt;
    let message = match snapshot.deletion.as_ref().is_some_and(follows) {
        true => format!(
            "attempt {attempt} of resource `{handle}` is being taken down, and another one follows it; change that one when it is there (`slipway resource get {handle}`)"
        ),
        false => format!("resource `{handle}` is being deleted, and cannot be changed any more"),
    };
    Refusal::new(ErrorKind::Leaving, message)
}

/// Its deletion is scheduled, so that nothing of it is replaced.
pub(crate) fn scheduled(snapshot: &ResourceSnapshot) -> Option<Refusal> {
    let deletion = snapshot.deletion.as_ref()?;
    let message = format!(
        "resource `{}` is scheduled for deletion; to keep it and try again, first `slipway deletion cancel {}`",
        snapshot.resource.handle, deletion.id
    );
    let refusal = Refusal::new(ErrorKind::Leaving, message);
    (deletion.state == DeletionState::Scheduled).then_some(refusal)
}

/// Refuses what only another object can have: an immutable parameter, or a version whose
/// objects are of another type. The schemas of both versions say what is immutable.
fn in_place(resource: &ResourceSnapshot, redeclared: &Redeclared<'_>) -> Result<(), Refusal> {
    let handle = &resource.resource.handle;
    let (old, new) = (&*resource.blueprint, redeclared.blueprint);
    let differs = [
        ("the type of its composite", object_type(old) != object_type(new)),
        ("its mesh role", old.mesh_role != new.mesh_role),
        ("its injection strategy", old.injection_strategy != new.injection_strategy),
        ("its ProviderConfig", old.own_provider_config != new.own_provider_config),
    ];
    let differs: Vec<_> = differs.into_iter().filter(|(_, differs)| *differs).collect();
    let version = (!differs.is_empty()).then(|| {
        let what: Vec<_> = differs.iter().map(|(what, _)| *what).collect();
        let message = format!(
            "version `{}` differs from `{}` in {}, which cannot be changed in place; `slipway resource replace {handle} --version {}` makes it anew",
            new.version,
            old.version,
            what.join(", "),
            new.version,
        );
        Refusal::new(ErrorKind::VersionNeedsReplace, message).at("version")
    });
    let before = resource.attempt.parameter_values();
    let after = &redeclared.correction.parameter_values;
    let schemas = [&old.parameter_schema, &new.parameter_schema];
    let paths: BTreeSet<String> =
        schemas.iter().flat_map(|schema| schema.immutable_changes(before, after)).collect();
    let immutable = paths.into_iter().map(|path| {
        let name = path.strip_prefix("parameters.").unwrap_or(&path);
        let message = format!(
            "parameter `{name}` is immutable and cannot be changed in place; `slipway resource replace {handle} --param {name}=…` makes it anew"
        );
        Refusal::new(ErrorKind::ParameterImmutable, message).at(path)
    });
    Refusal::all(version.into_iter().chain(immutable))
}

/// The type of its objects on a cluster. One object is served in all versions of its kind.
fn object_type(version: &BlueprintVersion) -> Option<CompositeType> {
    let kind = version.composite_type.clone()?;
    Some(CompositeType { version: String::new(), ..kind })
}

fn written(
    snapshot: &ResourceSnapshot,
    redeclared: Option<Redeclared<'_>>,
    labels: Option<&BTreeMap<String, String>>,
    actor: &Actor,
) -> Result<Updated, Refusal> {
    let (resource, attempt, now) = (&snapshot.resource, &snapshot.attempt, snapshot.now);
    let labels = labels.cloned().map(Labels::parse).transpose()?;
    let relabelled = labels.as_ref().filter(|labels| **labels != resource.labels);
    let mut updated = Updated::default();
    let mut details = json!({});
    let mut changed = Vec::new();
    if let Some(Redeclared { blueprint, correction }) = &redeclared {
        changed = redeclare::changed(attempt, correction);
        let names = redeclare::changed_parameters(attempt.parameter_values(), correction);
        if snapshot.blueprint.id != blueprint.id {
            let (before, after) = (json!(snapshot.blueprint.version), json!(blueprint.version));
            details["changed"]["version"] = json!({ "from": before, "to": after });
            updated.differs("version", Some(before), Some(after));
        }
        // Values may be private: the audit and the event name the parameters only.
        for name in &names {
            let before = attempt.parameter_values().as_map().get(name);
            let after = correction.parameter_values.as_map().get(name);
            updated.differs(format!("parameters.{name}"), before.cloned(), after.cloned());
        }
        if !names.is_empty() {
            details["changed"]["parameters"] = json!(names);
        }
    }
    if let Some(labels) = relabelled {
        details["before"] = json!(resource.labels);
        details["after"] = json!(labels);
        let (before, after) = (resource.labels.as_map(), labels.as_map());
        let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
        for key in keys.into_iter().filter(|key| before.get(*key) != after.get(*key)) {
            let value = |labels: &BTreeMap<String, String>| labels.get(key).map(|text| json!(text));
            updated.differs(format!("labels.{key}"), value(before), value(after));
        }
    }
    if updated.changes.is_empty() {
        return Ok(updated);
    }
    let commit = &mut updated.commit;
    let slot = match relabelled {
        Some(labels) => Resource { labels: labels.clone(), ..resource.clone() },
        None => resource.clone(),
    };
    commit.writes.push(Write::Broker(BrokerWrite::ResourceUpdate(slot)));
    if let Some(Redeclared { correction, .. }) = redeclared.filter(|_| !changed.is_empty()) {
        let after = attempt.redeclared(correction);
        let revision = after.revision().next();
        changed.extend(relabelled.map(|_| "labels".to_owned()));
        let announced = event::announce(event::UPDATED, &after, revision, now);
        commit.events.push(Event { changed, ..announced });
        let observed = snapshot.with_update_pending();
        commit.writes.push(Write::Broker(BrokerWrite::AttemptUpdate(after)));
        commit.writes.push(Write::Broker(BrokerWrite::ObservedReplace(attempt.id(), observed)));
    }
    commit.wakes.push(attempt.id().into());
    if let Some(other) = &snapshot.other {
        commit.wakes.push(other.attempt.id().into());
    }
    let subject = About::new(resource.id).of(resource.project_id).at(resource.revision.next());
    commit.audit.push(AuditEntry::new("resource.update", actor, subject, now).with(details));
    Ok(updated)
}

impl Updated {
    fn differs(&mut self, field: impl Into<String>, before: Option<Value>, after: Option<Value>) {
        self.changes.push(FieldChange { field: field.into(), before, after });
    }
}

#[cfg(test)]
mod tests;
