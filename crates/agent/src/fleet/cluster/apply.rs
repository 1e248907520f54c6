//! Applies the objects of a stack.
//!
//! *Expected flow:* read what is there → refuse if one object is another owner's → try
//! everything that can be tried (`try_all`) → namespaces → definitions of kinds, until they are
//! served → try the rest → apply the rest (`apply_all`). *Guarantees:* if the server refuses one
//! object in a trial, nothing but namespaces and definitions was applied. Each write is
//! bound to what was read, so that one that arrives late does no harm.

use std::collections::BTreeSet;
use std::time::Duration;

use slipway_cluster::{DynamicObject, ObjectMeta, Reason, Terms, Version, api_resource};
use tokio::time::{Instant, sleep};

use super::super::backend::{Fault, Owner, Stamp};
use super::super::inventory::{Reference, short_digest};
use super::super::manifest::Manifest;
use super::backend::{ClusterBackend, FIELD_MANAGER, Kind, at_once, fault, object_ref};
use super::marks::{Whose, is_adopted, marked, whose};

/// Where a namespaced object without one goes, as with every client of Kubernetes.
const DEFAULT_NAMESPACE: &str = "default";

/// How long a new kind may take to be served.
const SERVED_WITHIN: Duration = Duration::from_secs(20);
const SERVED_POLL: Duration = Duration::from_millis(100);

/// How often a write is repeated because the object was written in between, such as by
/// the controller that keeps its status.
const ATTEMPTS: u32 = 5;

/// In the order in which they are applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    Namespace,
    Definition,
    Rest,
}

pub(super) fn rank(reference: &Reference) -> Rank {
    let group = reference.api_version.split_once('/').map_or("", |(group, _)| group);
    match (group, &*reference.kind) {
        ("", "Namespace") => Rank::Namespace,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Rank::Definition,
        _ => Rank::Rest,
    }
}

/// An object with what was read of it.
struct Item<'a> {
    manifest: &'a Manifest,
    live: Option<&'a ObjectMeta>,
}

fn items<'a>(manifests: &'a [Manifest], live: &'a [Option<ObjectMeta>]) -> Vec<Item<'a>> {
    let both = manifests.iter().zip(live);
    both.map(|(manifest, live)| Item { manifest, live: live.as_ref() }).collect()
}

/// What a stack brings along that its own objects need.
struct New {
    /// Version and kind.
    kinds: BTreeSet<(String, String)>,
    namespaces: BTreeSet<String>,
}

impl New {
    fn of(manifests: &[Manifest]) -> Self {
        let kinds = defined(manifests).into_iter().map(|(key, _)| key).collect();
        Self { kinds, namespaces: BTreeSet::new() }
    }

    /// With the namespaces that are not there yet.
    fn with_namespaces(mut self, items: &[Item<'_>]) -> Self {
        let missing = items.iter().filter(|item| item.live.is_none());
        let missing = missing.map(|item| &item.manifest.reference);
        let missing = missing.filter(|reference| rank(reference) == Rank::Namespace);
        self.namespaces = missing.map(|reference| reference.name.clone()).collect();
        self
    }

    fn has_kind(&self, one: &Reference) -> bool {
        self.kinds.contains(&(one.api_version.clone(), one.kind.clone()))
    }

    /// Whether an object can be tried only after others of its stack were applied.
    fn delays(&self, item: &Item<'_>) -> bool {
        let reference = &item.manifest.reference;
        let namespace = reference.namespace.as_ref();
        self.has_kind(reference)
            || namespace.is_some_and(|namespace| self.namespaces.contains(namespace))
    }
}

/// The kinds that the definitions of a stack will bring: version and kind.
fn defined(manifests: &[Manifest]) -> Vec<((String, String), Kind)> {
    let definitions = manifests.iter().filter(|one| rank(&one.reference) == Rank::Definition);
    let kinds = definitions.flat_map(|one| {
        let spec = &one.body["spec"];
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let (group, kind) = (text(&spec["group"]), text(&spec["names"]["kind"]));
        let plural = text(&spec["names"]["plural"]);
        let is_namespaced = spec["scope"] == "Namespaced";
        let versions = spec["versions"].as_array().cloned().unwrap_or_default();
        versions.into_iter().filter(|version| version["served"] == true).map(move |version| {
            let api_version = format!("{group}/{}", text(&version["name"]));
            let resource = api_resource(&api_version, &kind, &plural);
            ((api_version, kind.clone()), Kind { resource, is_namespaced })
        })
    });
    kinds.collect()
}

impl ClusterBackend {
    /// Finds the kind of each manifest and where it goes.
    pub(super) async fn resolve_all(
        &mut self,
        mut manifests: Vec<Manifest>,
    ) -> Result<Vec<Manifest>, Fault> {
        let new = defined(&manifests);
        for manifest in &mut manifests {
            let reference = &mut manifest.reference;
            let defined = new
                .iter()
                .find(|(key, _)| (&key.0, &key.1) == (&reference.api_version, &reference.kind));
            let kind = match defined {
                Some((_, kind)) => kind.clone(),
                None => {
                    let found = self.kind(&reference.api_version, &reference.kind).await?;
                    found.ok_or_else(|| {
                        Fault::Refused(format!(
                            "the cluster does not know the kind {} ({}) of {}; install its definition, or put it into the stack",
                            reference.kind, reference.api_version, reference.name
                        ))
                    })?
                }
            };
            reference.plural = kind.resource.plural;
            reference.namespace = match (kind.is_namespaced, reference.namespace.take()) {
                (false, _) => None,
                (true, None) => Some(DEFAULT_NAMESPACE.to_owned()),
                (true, namespace) => namespace,
            };
            if let Some(metadata) = manifest.body["metadata"].as_object_mut() {
                match &reference.namespace {
                    Some(namespace) => {
                        metadata.insert("namespace".to_owned(), namespace.clone().into());
                    }
                    None => {
                        metadata.remove("namespace");
                    }
                }
            }
            let is_inventory = reference.kind == "ConfigMap"
                && reference.namespace.as_ref() == Some(&self.namespace)
                && ["slipway-stack-", "slipway-agent-"]
                    .iter()
                    .any(|prefix| reference.name.starts_with(prefix));
            if is_inventory {
                return Err(Fault::Refused(format!(
                    "{reference} would be a part of the agent's inventory; name it otherwise"
                )));
            }
        }
        Ok(manifests)
    }

    /// Reads what is there, refuses what is another owner's, and tries what can be tried
    /// now.
    pub(super) async fn try_all(
        &mut self,
        stamp: &Stamp<'_>,
        manifests: &[Manifest],
        known: &[Reference],
    ) -> Result<Vec<Option<ObjectMeta>>, Fault> {
        let owner = self.owner()?.clone();
        let new = New::of(manifests);
        let references: Vec<_> = manifests.iter().map(|one| &one.reference).collect();
        let live = self.metadata(&references, |one| new.has_kind(one)).await?;
        let items = items(manifests, &live);
        let new = new.with_namespaces(&items);
        let applier = Applier { backend: self, owner: &owner, stamp, known };
        applier.refuse_others(&items)?;
        let early: Vec<_> = items.iter().filter(|item| !new.delays(item)).collect();
        applier.write_all(&early, true).await?;
        drop(items);
        Ok(live)
    }

    pub(super) async fn apply_all(
        &mut self,
        stamp: &Stamp<'_>,
        manifests: &[Manifest],
        known: &[Reference],
        live: Vec<Option<ObjectMeta>>,
    ) -> Result<Vec<Reference>, Fault> {
        let owner = self.owner()?.clone();
        let items = items(manifests, &live);
        let new = New::of(manifests).with_namespaces(&items);
        let applier = Applier { backend: self, owner: &owner, stamp, known };
        let of = |wanted: Rank| -> Vec<&Item<'_>> {
            items.iter().filter(|item| rank(&item.manifest.reference) == wanted).collect()
        };
        let mut applied = applier.write_all(&of(Rank::Namespace), false).await?;
        applied.extend(applier.write_all(&of(Rank::Definition), false).await?);
        applier.until_served(&new.kinds).await?;
        let late: Vec<_> = items.iter().filter(|item| new.delays(item)).collect();
        applier.write_all(&late, true).await?;
        applied.extend(applier.write_all(&of(Rank::Rest), false).await?);
        Ok(applied)
    }

    /// What is not as it was applied. Kubernetes keeps the fields that our apply owns;
    /// somebody who changes one of them takes it over.
    pub(super) async fn drift_of(
        &mut self,
        reference: &Reference,
    ) -> Result<Option<String>, Fault> {
        let live = match self.connection.get_metadata(&object_ref(reference)).await {
            // Its kind is gone, and the objects with it.
            Err(error) if *error.reason() == Reason::NotFound => None,
            found => found.map_err(fault)?,
        };
        Ok(match live {
            None => Some("was deleted".to_owned()),
            // It cannot be applied again before it is gone.
            Some(live) if live.deletion_timestamp.is_some() => None,
            Some(live) if owned_fields(&live) != reference.digest => {
                Some("was changed in fields that the stack has".to_owned())
            }
            Some(_) => None,
        })
    }
}

/// The refusal without what it may quote of the content: reports are shown to people who
/// may not see that.
fn without_content(reference: &Reference, fault: Fault) -> Fault {
    let Fault::Refused(text) = fault else { return fault };
    let quotes = ["error found in #", "got &value", "got \""];
    let end = quotes.iter().filter_map(|quote| text.find(quote)).min();
    let is_secret = reference.kind == "Secret" && reference.api_version == "v1";
    Fault::Refused(match end {
        _ if is_secret && !text.contains(" cannot ") => format!(
            "the API server refused {reference}; its answer is not shown, since it may quote the content of a Secret; apply it by hand with a dry run to see it"
        ),
        Some(end) => format!("{}(the rest quotes the content of {reference})", &text[..end]),
        None => text,
    })
}

/// A digest of the fields that our apply owns.
fn owned_fields(live: &ObjectMeta) -> Option<String> {
    let entries = live.managed_fields.iter().flatten();
    let mut ours = entries.filter(|entry| {
        entry.manager.as_deref() == Some(FIELD_MANAGER)
            && entry.operation.as_deref() == Some("Apply")
    });
    let fields = ours.next()?.fields_v1.as_ref()?;
    Some(short_digest(fields.0.to_string().as_bytes()))
}

/// One apply of a stack.
struct Applier<'a> {
    backend: &'a ClusterBackend,
    owner: &'a Owner,
    stamp: &'a Stamp<'a>,
    known: &'a [Reference],
}

impl Applier<'_> {
    /// Refuses all if one object is somebody else's.
    fn refuse_others(&self, items: &[Item<'_>]) -> Result<(), Fault> {
        let refused = items.iter().find_map(|item| {
            let found = whose(item.live?, self.owner, self.stamp.stack);
            let Whose::Others(whose) = found else { return None };
            Some(format!(
                "{} belongs to {whose}; take it out of one of them; nothing was applied",
                item.manifest.reference
            ))
        });
        refused.map_or(Ok(()), |reason| Err(Fault::Refused(reason)))
    }

    /// Writes or tries these objects, in parallel. All are attempted; the first refusal
    /// is returned.
    async fn write_all(&self, items: &[&Item<'_>], dry_run: bool) -> Result<Vec<Reference>, Fault> {
        let requests = items.iter().map(|item| self.write(item, dry_run));
        at_once(requests.collect()).await.into_iter().collect()
    }

    async fn write(&self, item: &Item<'_>, dry_run: bool) -> Result<Reference, Fault> {
        let reference = &item.manifest.reference;
        let object = object_ref(reference);
        let mut live = item.live.cloned();
        for attempt in 1.. {
            let written = self.write_on(item.manifest, live.as_ref(), dry_run).await;
            let error = match written {
                Ok(object) => {
                    let digest = owned_fields(&object.metadata);
                    return Ok(Reference { digest, is_stale: false, ..reference.clone() });
                }
                Err(error) => error,
            };
            if *error.reason() != Reason::Conflict || attempt == ATTEMPTS {
                return Err(match without_content(reference, fault(error)) {
                    Fault::Refused(text) if dry_run => {
                        Fault::Refused(text + "; nothing of the stack was changed")
                    }
                    fault => fault,
                });
            }
            live = self.backend.connection.get_metadata(&object).await.map_err(fault)?;
            let again = Item { manifest: item.manifest, live: live.as_ref() };
            self.refuse_others(std::slice::from_ref(&again))?;
        }
        Err(Fault::Unreachable(format!("{reference} was not written")))
    }

    /// What nobody marked and we did not apply before is taken only if nobody else wants
    /// its fields to be otherwise; what is ours is forced.
    async fn write_on(
        &self,
        manifest: &Manifest,
        live: Option<&ObjectMeta>,
        dry_run: bool,
    ) -> Result<DynamicObject, slipway_cluster::Error> {
        let key = manifest.reference.key();
        let is_known = || self.known.iter().any(|one| one.digest.is_some() && one.key() == key);
        let is_ours = live.is_some_and(|live| {
            whose(live, self.owner, self.stamp.stack) == Whose::Ours || is_known()
        });
        let adopts = live.is_some_and(|live| is_adopted(live) || !is_ours);
        let body = marked(&manifest.body, self.owner, self.stamp, adopts);
        let terms = Terms { field_manager: FIELD_MANAGER, takes_over: is_ours, dry_run };
        let object = object_ref(&manifest.reference);
        let read = live.and_then(Version::of);
        let applied = self.backend.connection.apply_on(&object, read.as_ref(), &body, terms).await;
        applied.map(|applied| applied.object)
    }

    /// Waits until new kinds are served.
    async fn until_served(&self, kinds: &BTreeSet<(String, String)>) -> Result<(), Fault> {
        let begun = Instant::now();
        for (api_version, kind) in kinds {
            loop {
                let found = self.backend.connection.kind_named(api_version, kind).await;
                if found.map_err(fault)?.is_some() {
                    break;
                }
                if begun.elapsed() > SERVED_WITHIN {
                    return Err(Fault::Refused(format!(
                        "the cluster does not serve the kind {kind} ({api_version}) {} s after its definition was applied; see the conditions of the CustomResourceDefinition",
                        SERVED_WITHIN.as_secs()
                    )));
                }
                sleep(SERVED_POLL).await;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::inventory::tests::mk_reference;
    use super::*;

    #[test]
    fn a_refusal_quotes_no_content() {
        let map = mk_reference("a");
        let secret = Reference { kind: "Secret".to_owned(), ..map.clone() };
        let shown = |reference: &Reference, text: &str| match without_content(
            reference,
            Fault::Refused(text.to_owned()),
        ) {
            Fault::Refused(text) => text,
            other => panic!("{other:?}"),
        };
        let typed = "could not try it: .data.value: expected string, got &value{hunter2}";
        let decoded = "could not try it: bad base64, error found in #9 byte of ...|hunter2|...";
        for text in [typed, decoded] {
            for reference in [&map, &secret] {
                let shown = shown(reference, text);
                assert!(!shown.contains("hunter2") && shown.contains("n/a"), "{shown}");
            }
        }
        let plain = "could not try it: spec.ports: Required value";
        assert_eq!(shown(&map, plain), plain);
        let forbidden = "could not try it: User \"x\" cannot patch resource \"secrets\"";
        assert_eq!(shown(&secret, forbidden), forbidden);
    }
}
