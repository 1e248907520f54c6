//! The members of a plan: what it would take away, as far as a later request compares it.

use std::collections::BTreeMap;

use data_encoding::{BASE64_NOPAD, HEXLOWER};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::error::{ErrorKind, Refusal};
use crate::subject::{Subject, SubjectKind};

/// One thing that would go.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "Line")]
pub struct Member {
    pub subject: Subject,
    pub name: String,
    /// The number of the current attempt of a resource.
    pub attempt: Option<i32>,
    /// The nodes that are registered for it.
    pub nodes: Vec<Uuid>,
    /// Why it is protected. That a protection is lifted ends by itself, so it is no change.
    pub protected: Option<String>,
}

/// A member as it is stored: without the names of the fields, which ten thousand repeat,
/// and with ids in base 64.
#[derive(Deserialize)]
struct Line(SubjectKind, ShortId, String, Option<i32>, Vec<ShortId>, Option<String>);

impl From<Line> for Member {
    fn from(Line(kind, ShortId(id), name, attempt, nodes, protected): Line) -> Self {
        let nodes = nodes.into_iter().map(|ShortId(id)| id).collect();
        Self { subject: Subject { kind, id }, name, attempt, nodes, protected }
    }
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct ShortId(Uuid);

impl TryFrom<String> for ShortId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let bytes = BASE64_NOPAD.decode(text.as_bytes()).ok();
        let id = bytes.and_then(|bytes| Uuid::from_slice(&bytes).ok());
        id.map(Self).ok_or_else(|| format!("`{text}` is no id"))
    }
}

impl Serialize for ShortId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = [0; 22];
        BASE64_NOPAD.encode_mut(self.0.as_bytes(), &mut text);
        serializer.serialize_str(str::from_utf8(&text).unwrap_or_default())
    }
}

impl Serialize for Member {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { subject, name, attempt, nodes, protected } = self;
        let nodes: Vec<_> = nodes.iter().map(|id| ShortId(*id)).collect();
        let line = (subject.kind, ShortId(subject.id), name, attempt, nodes, protected);
        line.serialize(serializer)
    }
}

/// Members as a text in one order, so that the same members have the same text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Members(String);

impl Members {
    pub fn new(members: &[Member]) -> Self {
        let mut members: Vec<&Member> = members.iter().collect();
        members.sort_unstable_by_key(|member| member.subject);
        // Texts, numbers and ids always serialise.
        Self(serde_json::to_string(&members).unwrap_or_default())
    }

    pub const fn from_stored(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn digest(&self) -> String {
        HEXLOWER.encode(&Sha256::digest(self.0.as_bytes()))
    }

    pub fn parse(&self) -> Result<Vec<Member>, Refusal> {
        serde_json::from_str(&self.0).map_err(|error| {
            let message = format!("the members of the plan cannot be read: {error}; plan again");
            Refusal::new(ErrorKind::RowInvalid, message)
        })
    }
}

/// What moved between two readings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    pub added: Vec<Member>,
    pub removed: Vec<Member>,
    /// As they are now, and what is different.
    pub changed: Vec<(Member, Vec<&'static str>)>,
}

pub fn difference(before: &[Member], now: &[Member]) -> Difference {
    let mut left: BTreeMap<Subject, &Member> =
        before.iter().map(|member| (member.subject, member)).collect();
    let mut difference = Difference::default();
    for member in now {
        match left.remove(&member.subject) {
            None => difference.added.push(member.clone()),
            Some(earlier) => {
                let what = changes(earlier, member);
                if !what.is_empty() {
                    difference.changed.push((member.clone(), what));
                }
            }
        }
    }
    difference.removed = left.into_values().cloned().collect();
    difference
}

fn changes(before: &Member, now: &Member) -> Vec<&'static str> {
    let fields = [
        ("name", before.name == now.name),
        ("attempt", before.attempt == now.attempt),
        ("nodes", before.nodes == now.nodes),
        ("protection", before.protected == now.protected),
    ];
    fields.into_iter().filter(|(_, same)| !same).map(|(field, _)| field).collect()
}

impl Difference {
    /// Named in the details of a refusal, of each kind of change.
    const DETAILED: usize = 100;
    /// Named in its message.
    const NAMED: usize = 5;

    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }

    /// `1 added (resource web-4), 2 changed (resource web-1: attempt; …)`.
    pub fn summary(&self) -> String {
        let named = |member: &Member| format!("{} {}", member.subject.kind, member.name);
        let changed = |(member, what): &(Member, Vec<&str>)| {
            format!("{}: {}", named(member), what.join(", "))
        };
        let parts = [
            ("added", self.added.iter().map(named).collect::<Vec<_>>()),
            ("removed", self.removed.iter().map(named).collect()),
            ("changed", self.changed.iter().map(changed).collect()),
        ];
        let parts = parts.into_iter().filter(|(_, names)| !names.is_empty()).map(|(how, names)| {
            let more = match names.len().saturating_sub(Self::NAMED) {
                0 => String::new(),
                more => format!("; {more} more"),
            };
            let shown = names[..names.len().min(Self::NAMED)].join("; ");
            format!("{} {how} ({shown}{more})", names.len())
        });
        parts.collect::<Vec<_>>().join(", ")
    }

    pub fn details(&self) -> Value {
        let one = |member: &Member| {
            let Subject { kind, id } = member.subject;
            json!({ "kind": kind, "id": id, "name": member.name })
        };
        let all =
            |members: &[Member]| members.iter().take(Self::DETAILED).map(one).collect::<Vec<_>>();
        let changed = self.changed.iter().take(Self::DETAILED).map(|(member, what)| {
            let mut one = one(member);
            one["changed"] = json!(what);
            one
        });
        json!({
            "added": all(&self.added),
            "added_count": self.added.len(),
            "removed": all(&self.removed),
            "removed_count": self.removed.len(),
            "changed": changed.collect::<Vec<_>>(),
            "changed_count": self.changed.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn members() -> impl Strategy<Value = Vec<Member>> {
        let one = (0..12_u128, "[ab]{1,2}", prop::option::of(1..3), 0..3_u128, any::<bool>());
        prop::collection::vec(one, 0..10).prop_map(|given| {
            let mut members: Vec<Member> = given
                .into_iter()
                .map(|(id, name, attempt, node, protected)| Member {
                    subject: Subject::new(SubjectKind::Resource, Uuid::from_u128(id)),
                    name,
                    attempt,
                    nodes: (0..node).map(Uuid::from_u128).collect(),
                    protected: protected.then(|| "books".to_owned()),
                })
                .collect();
            members.sort_by_key(|member| member.subject);
            members.dedup_by_key(|member| member.subject);
            members
        })
    }

    /// The later members, made from the earlier ones.
    fn applied(before: &[Member], difference: &Difference) -> Vec<Member> {
        let replaced: Vec<_> =
            difference.changed.iter().map(|(member, _)| member.clone()).collect();
        let gone = |member: &Member| {
            difference.removed.contains(member)
                || replaced.iter().any(|other| other.subject == member.subject)
        };
        let mut after: Vec<_> = before.iter().filter(|one| !gone(one)).cloned().collect();
        after.extend(difference.added.iter().cloned().chain(replaced));
        after.sort_by_key(|member| member.subject);
        after
    }

    proptest! {
        #[test]
        fn the_difference_leads_from_one_to_the_other(before in members(), now in members()) {
            let difference = difference(&before, &now);
            prop_assert_eq!(applied(&before, &difference), now.clone());
            let back = super::difference(&now, &before);
            prop_assert_eq!(&back.added, &difference.removed);
            prop_assert_eq!(&back.removed, &difference.added);
            let same = Members::new(&before).digest() == Members::new(&now).digest();
            prop_assert_eq!(difference.is_empty(), same);
        }

        #[test]
        fn members_are_read_as_they_were_written(before in members()) {
            let mut turned = before.clone();
            turned.reverse();
            let (one, other) = (Members::new(&before), Members::new(&turned));
            prop_assert_eq!(one.parse().unwrap(), before);
            prop_assert_eq!(one.digest(), other.digest());
        }
    }

    #[test]
    fn a_summary_names_a_few_of_each() {
        let member = |id: u128, name: &str| Member {
            subject: Subject::new(SubjectKind::Resource, Uuid::from_u128(id)),
            name: name.to_owned(),
            attempt: Some(1),
            nodes: Vec::new(),
            protected: None,
        };
        let before = [member(1, "web-1"), member(2, "web-2")];
        let mut now: Vec<_> = (3..10).map(|id| member(id, &format!("web-{id}"))).collect();
        now.push(Member { attempt: Some(2), ..member(1, "web-1") });
        let difference = difference(&before, &now);
        assert_eq!(
            difference.summary(),
            "7 added (resource web-3; resource web-4; resource web-5; resource web-6; \
             resource web-7; 2 more), 1 removed (resource web-2), \
             1 changed (resource web-1: attempt)"
        );
        assert_eq!(difference.details()["added_count"], 7);
        assert_eq!(difference.details()["changed"][0]["changed"], json!(["attempt"]));
    }
}
