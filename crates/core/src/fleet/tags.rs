//! Labels and annotations of agents, stacks and templates. A label or an annotation that an
//! agent and a stack share associates them.

use serde_json::json;
use uuid::Uuid;

use crate::access::audit::{About, Actor};
use crate::commit::Commit;
use crate::error::{ErrorKind, Refusal};
use crate::fleet::FleetWrite;
use crate::fleet::object::of_row;
use crate::ids::ProjectId;
use crate::kind::{audited, unknown};
use crate::subject::{Subject, SubjectKind};
use crate::time::Timestamp;

/// The most labels, and the most annotations, of one thing.
pub const TAGS_MAX: i64 = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    pub id: Uuid,
    pub owner: Subject,
    pub label: String,
    pub created_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    pub id: Uuid,
    pub owner: Subject,
    pub key: String,
    pub value: String,
    pub created_at: Timestamp,
}

/// What labels and annotations have in common.
pub trait Tag: Clone + Send + Sync + 'static {
    const NOUN: &'static str;
    const FIELD: &'static str;
    /// Audit verbs of agents, stacks and templates.
    const ADDED: [&'static str; 3];
    const REMOVED: [&'static str; 3];

    fn id(&self) -> Uuid;
    fn owner(&self) -> Subject;
    /// What identifies it at its owner.
    fn key(&self) -> &str;
    fn insert(self) -> FleetWrite;
    fn remove(&self) -> FleetWrite;
}

impl Tag for Label {
    const NOUN: &'static str = "label";
    const FIELD: &'static str = "label";
    const ADDED: [&'static str; 3] = ["agent.label", "stack.label", "template.label"];
    const REMOVED: [&'static str; 3] = ["agent.unlabel", "stack.unlabel", "template.unlabel"];

    fn id(&self) -> Uuid {
        self.id
    }

    fn owner(&self) -> Subject {
        self.owner
    }

    fn key(&self) -> &str {
        &self.label
    }

    fn insert(self) -> FleetWrite {
        FleetWrite::LabelInsert(self)
    }

    fn remove(&self) -> FleetWrite {
        FleetWrite::LabelRemove(self.id)
    }
}

impl Tag for Annotation {
    const NOUN: &'static str = "annotation";
    const FIELD: &'static str = "key";
    const ADDED: [&'static str; 3] = ["agent.annotate", "stack.annotate", "template.annotate"];
    const REMOVED: [&'static str; 3] =
        ["agent.unannotate", "stack.unannotate", "template.unannotate"];

    fn id(&self) -> Uuid {
        self.id
    }

    fn owner(&self) -> Subject {
        self.owner
    }

    fn key(&self) -> &str {
        &self.key
    }

    fn insert(self) -> FleetWrite {
        FleetWrite::AnnotationInsert(self)
    }

    fn remove(&self) -> FleetWrite {
        FleetWrite::AnnotationRemove(self.id)
    }
}

/// The owner of a tag, its row locked against deletion, and the tag.
#[derive(Debug, Clone)]
pub struct TagSnapshot<T> {
    pub now: Timestamp,
    /// The project of the owner, if the owner is live.
    pub project: Option<ProjectId>,
    pub tag: Option<T>,
    /// How many of its kind the owner has.
    pub count: i64,
}

/// The position of a kind in the verbs, and the refusal if there is no such thing.
fn of_kind(kind: SubjectKind) -> (usize, ErrorKind) {
    match kind {
        SubjectKind::Agent => (0, ErrorKind::AgentNotFound),
        SubjectKind::Stack => (1, ErrorKind::StackNotFound),
        _ => (2, ErrorKind::TemplateNotFound),
    }
}

pub fn add<T: Tag>(snapshot: &TagSnapshot<T>, tag: &T, actor: &Actor) -> Result<Commit, Refusal> {
    let owner = tag.owner();
    let (index, missing) = of_kind(owner.kind);
    let project = snapshot.project.ok_or_else(|| unknown(missing, owner.kind.as_str()))?;
    if snapshot.tag.is_some() {
        let message = format!("it has {} `{}` already; remove that first", T::NOUN, tag.key());
        return Err(Refusal::new(ErrorKind::EntryExists, message).at(T::FIELD));
    }
    if snapshot.count >= TAGS_MAX {
        let problem = format!("is one too many: at most {TAGS_MAX} are kept; remove another first");
        return Err(Refusal::invalid(T::FIELD, problem));
    }
    let details = json!({ T::NOUN: tag.key() });
    let about = About::new(owner).of(project);
    let write = tag.clone().insert();
    let commit = audited(write, T::ADDED[index], about, actor, snapshot.now, details);
    Ok(of_row(commit, tag.id()))
}

pub fn remove<T: Tag>(
    snapshot: &TagSnapshot<T>,
    owner: Subject,
    key: &str,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let (index, missing) = of_kind(owner.kind);
    let project = snapshot.project.ok_or_else(|| unknown(missing, owner.kind.as_str()))?;
    let Some(tag) = &snapshot.tag else {
        let message = format!("it has no {} `{key}`; check the spelling", T::NOUN);
        return Err(Refusal::new(ErrorKind::EntryNotFound, message));
    };
    let details = json!({ T::NOUN: key });
    let about = About::new(owner).of(project);
    let commit = audited(tag.remove(), T::REMOVED[index], about, actor, snapshot.now, details);
    Ok(of_row(commit, tag.id()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::fleet::mk_agent;
    use crate::fixtures::{at, mk_actor, uuid};

    fn label() -> Label {
        let owner = mk_agent().id.into();
        Label { id: uuid(7), owner, label: "prod".to_owned(), created_at: at(1) }
    }

    #[test]
    fn a_tag_is_there_once_and_within_a_limit() {
        let project = Some(mk_agent().project_id);
        let free = TagSnapshot::<Label> { now: at(1), project, tag: None, count: 3 };
        let commit = add(&free, &label(), &mk_actor()).unwrap();
        assert_eq!(commit.audit[0].verb, "agent.label");
        let taken = TagSnapshot { tag: Some(label()), ..free.clone() };
        let refused =
            |snapshot: &TagSnapshot<Label>| add(snapshot, &label(), &mk_actor()).unwrap_err().kind;
        assert_eq!(refused(&taken), ErrorKind::EntryExists);
        assert_eq!(refused(&TagSnapshot { count: 64, ..free.clone() }), ErrorKind::InvalidInput);
        let gone = TagSnapshot { project: None, ..free.clone() };
        assert_eq!(refused(&gone), ErrorKind::AgentNotFound);
        let owner = label().owner;
        assert!(remove(&taken, owner, "prod", &mk_actor()).is_ok());
        let refusal = remove(&free, owner, "prod", &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::EntryNotFound);
    }
}
