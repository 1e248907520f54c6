//! Label definitions, and which labels are in effect.

use std::collections::BTreeMap;

use serde_json::json;

use crate::access::audit::Actor;
use crate::broker::{BrokerWrite, Labelled};
use crate::catalog::CatalogWrite;
use crate::closed_set::closed_set;
use crate::commit::{Commit, Write};
use crate::deletion::request::{Deletable, Leaving};
use crate::error::Refusal;
use crate::ids::{DeletionId, LabelDefinitionId, Revision};
use crate::kind::{about, audited, existing, free, kind};
use crate::precondition::Expected;
use crate::text::{InvalidText, Labels};
use crate::time::Timestamp;

/// What a label means, and whether it becomes a tag in the cloud. Labels
/// without a definition are labels all the same, and never propagate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelDefinition {
    pub id: LabelDefinitionId,
    pub key: LabelKey,
    pub description: String,
    pub propagate: bool,
    pub revision: Revision,
    pub deletion_id: Option<DeletionId>,
    pub deleted_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

kind!(LabelDefinition, LabelDefinitionId, LabelNotFound);

/// A key as labels have it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LabelKey(String);

impl LabelKey {
    pub fn parse(field: &str, text: &str) -> Result<Self, InvalidText> {
        // `Labels::parse` has the rule; check a set of this one key.
        Labels::parse(BTreeMap::from([(text.to_owned(), String::new())]))
            .map_err(|invalid| InvalidText::new(field, invalid.problem))?;
        Ok(Self(text.to_owned()))
    }

    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

closed_set!(
    /// Where a label in effect was set.
    LabelSource {
        Project => "project",
        Resource => "resource",
    }
);

/// A label in effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effective<'a> {
    pub value: &'a str,
    pub source: LabelSource,
}

/// The project's labels overlaid by the resource's: the nearer wins.
pub fn effective<'a>(
    project: &'a Labels,
    resource: &'a Labels,
) -> BTreeMap<&'a str, Effective<'a>> {
    let of = |labels: &'a Labels, source| {
        let pairs = labels.as_map().iter();
        pairs.map(move |(key, value)| (key.as_str(), Effective { value: value.as_str(), source }))
    };
    // A later pair replaces an earlier one of the same key.
    of(project, LabelSource::Project).chain(of(resource, LabelSource::Resource)).collect()
}

/// One condition on the labels in effect: `key` is there, or has this value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelSelector {
    pub key: LabelKey,
    pub value: Option<String>,
}

impl LabelSelector {
    /// `key` or `key=value`.
    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        let (key, value) = match text.split_once('=') {
            None => (text, None),
            Some((key, value)) => (key, Some(value)),
        };
        let value_is_plain = |value: &str| {
            // Selectors of other tools: these would look for such a value, and find none.
            let several = value.split_once(',').is_some_and(|(_, rest)| rest.contains('='));
            !value.contains('\0') && !value.starts_with('=') && !several
        };
        if !value.is_none_or(value_is_plain) {
            let problem = "must be one selector, `key` or `key=value`; repeat it for several";
            return Err(InvalidText::new("label", problem));
        }
        Ok(Self { key: LabelKey::parse("label", key)?, value: value.map(str::to_owned) })
    }
}

/// A label definition, its row locked.
#[derive(Debug, Clone)]
pub struct LabelSnapshot {
    pub now: Timestamp,
    pub label: Option<LabelDefinition>,
}

#[derive(Debug, Clone)]
pub struct NewLabel {
    pub id: LabelDefinitionId,
    pub key: LabelKey,
    pub description: String,
    pub propagate: bool,
}

pub fn define(snapshot: &LabelSnapshot, new: &NewLabel, actor: &Actor) -> Result<Commit, Refusal> {
    free(&snapshot.label, "key", new.key.as_str())?;
    let label = LabelDefinition {
        id: new.id,
        key: new.key.clone(),
        description: new.description.clone(),
        propagate: new.propagate,
        revision: Revision::FIRST,
        deletion_id: None,
        deleted_at: None,
        created_at: snapshot.now,
        updated_at: snapshot.now,
    };
    let details = json!({ "key": label.key.as_str(), "propagate": label.propagate });
    let about = about(&label);
    let tags = label.propagate.then(|| label.key.clone());
    let write = CatalogWrite::LabelInsert(label);
    Ok(waking(audited(write, "label.define", about, actor, snapshot.now, details), tags))
}

pub fn update(
    snapshot: &LabelSnapshot,
    description: Option<&str>,
    propagate: Option<bool>,
    expected: Expected,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let label = existing(&snapshot.label, expected)?;
    let updated = LabelDefinition {
        description: description.unwrap_or(&label.description).to_owned(),
        propagate: propagate.unwrap_or(label.propagate),
        ..label.clone()
    };
    let details = json!({
        "key": label.key.as_str(),
        "before": { "description": label.description, "propagate": label.propagate },
        "after": { "description": updated.description, "propagate": updated.propagate },
    });
    let tags = (updated.propagate != label.propagate).then(|| label.key.clone());
    let write = CatalogWrite::LabelUpdate(updated);
    Ok(waking(audited(write, "label.update", about(label), actor, snapshot.now, details), tags))
}

/// Labels with the key stay and no longer propagate.
impl Deletable for LabelDefinition {
    type Snapshot = LabelSnapshot;
    const DELETE: &'static str = "label.delete";

    fn found(snapshot: &LabelSnapshot) -> (&Option<Self>, Timestamp) {
        (&snapshot.label, snapshot.now)
    }

    fn name(&self) -> &str {
        self.key.as_str()
    }

    fn leaving(&self, _snapshot: &LabelSnapshot, _leaving: &Leaving<'_>) -> Commit {
        waking(Commit::default(), self.propagate.then(|| self.key.clone()))
    }

    fn free(&self, _snapshot: &LabelSnapshot, _cascade: bool) -> Result<(), Refusal> {
        Ok(())
    }
}

/// Wakes what has or had a cloud tag of this label.
fn waking(mut commit: Commit, tags: Option<LabelKey>) -> Commit {
    commit.writes.extend(tags.map(|key| wake_labelled(Labelled::Label(key))));
    commit
}

/// Cloud tags are part of the composites.
pub(crate) fn wake_labelled(labelled: Labelled) -> Write {
    Write::Broker(BrokerWrite::LabelledWake(labelled))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::deletion::door::Door;
    use crate::deletion::request::request;
    use crate::error::ErrorKind;
    use crate::fixtures::catalog::{mk_ask, mk_label};
    use crate::fixtures::{at, mk_actor};

    fn labels() -> impl Strategy<Value = Labels> {
        proptest::collection::btree_map("[a-c]", "[x-z]{0,2}", 0..4)
            .prop_map(|map| Labels::parse(map).unwrap())
    }

    proptest! {
        #[test]
        fn the_nearer_label_wins_and_says_where_it_is_from(
            project in labels(), resource in labels(),
        ) {
            let shown = effective(&project, &resource);
            for (key, found) in &shown {
                let near = resource.as_map().get(*key).map(String::as_str);
                let far = project.as_map().get(*key).map(String::as_str);
                prop_assert_eq!(Some(found.value), near.or(far));
                let expected =
                    if near.is_some() { LabelSource::Resource } else { LabelSource::Project };
                prop_assert_eq!(found.source, expected);
            }
            let keys = project.as_map().keys().chain(resource.as_map().keys());
            for key in keys {
                prop_assert!(shown.contains_key(key.as_str()), "{key} is lost");
            }
        }
    }

    #[test]
    fn a_selector_is_a_key_or_a_pair() {
        let bare = LabelSelector::parse("team").unwrap();
        assert_eq!((bare.key.as_str(), bare.value), ("team", None));
        let pair = LabelSelector::parse("team=a=b").unwrap();
        assert_eq!(pair.value.as_deref(), Some("a=b"));
        for bad in ["", "=x", "a b", "a=\0"] {
            assert_eq!(LabelSelector::parse(bad).unwrap_err().field, "label", "{bad:?}");
        }
    }

    #[test]
    fn a_key_is_defined_once_and_an_update_names_its_revision() {
        let there = LabelSnapshot { now: at(1_000), label: Some(mk_label()) };
        let new = NewLabel {
            id: mk_label().id,
            key: mk_label().key,
            description: String::new(),
            propagate: true,
        };
        assert_eq!(define(&there, &new, &mk_actor()).unwrap_err().kind, ErrorKind::NameTaken);
        let stale = Expected::Exactly(Revision(99));
        let refusal = update(&there, None, Some(true), stale, &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::RevisionStale);
        let absent = LabelSnapshot { label: None, ..there };
        assert!(define(&absent, &new, &mk_actor()).is_ok());
        let refusal = request::<LabelDefinition>(&absent, &Door::default(), &mk_ask(), &mk_actor())
            .unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::LabelNotFound);
    }

    /// Only a tag that comes or goes changes a composite.
    #[test]
    fn a_change_of_a_cloud_tag_wakes_what_has_the_label() {
        let delete = |there: &LabelSnapshot| {
            let asked = request::<LabelDefinition>(there, &Door::default(), &mk_ask(), &mk_actor());
            asked.map(|asked| asked.commit)
        };
        let wakes = |commit: Result<Commit, Refusal>| {
            let key = mk_label().key;
            commit.unwrap().writes.contains(&wake_labelled(Labelled::Label(key)))
        };
        for propagate in [false, true] {
            let label = LabelDefinition { propagate, ..mk_label() };
            let new = NewLabel {
                id: label.id,
                key: label.key.clone(),
                description: String::new(),
                propagate,
            };
            let absent = LabelSnapshot { now: at(1_000), label: None };
            assert_eq!(wakes(define(&absent, &new, &mk_actor())), propagate);
            let there = LabelSnapshot { label: Some(label), ..absent };
            assert_eq!(wakes(delete(&there)), propagate);
            for changed in [None, Some(propagate), Some(!propagate)] {
                let commit = update(&there, Some("x"), changed, Expected::Any, &mk_actor());
                assert_eq!(wakes(commit), changed == Some(!propagate), "{changed:?}");
            }
        }
    }
}
