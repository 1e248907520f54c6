//! Deployment objects: immutable content with a number, or a marker that tells agents to
//! remove what the stack has deployed. Of a stack the newest that nobody withdrew counts.

use serde_json::json;
use uuid::Uuid;

use crate::access::audit::{About, Actor};
use crate::commit::{Commit, Write};
use crate::error::{ErrorKind, Refusal};
use crate::event::{EventType, derive_id};
use crate::fleet::FleetWrite;
use crate::fleet::content::{Content, marker_checksum};
use crate::fleet::event::{Announced, OBJECT_SUBMITTED, OBJECT_WITHDRAWN};
use crate::fleet::per_agent::PerAgent;
use crate::fleet::rollout::{self, AssociatedAgent, Rolling};
use crate::fleet::stack::{Stack, about, announced, next_sequence};
use crate::fleet::template::TemplateText;
use crate::ids::{AgentId, AuditEntryId, DeletionId, DeploymentObjectId, StackId};
use crate::kind::{audited, existing, unknown};
use crate::precondition::Expected;
use crate::rollouts::record::Rollout;
use crate::rollouts::rules;
use crate::time::Timestamp;

/// How many objects of a live stack are kept, beside those that something needs.
pub const KEPT_OBJECTS: u32 = 10;

#[derive(Clone, PartialEq, Eq)]
pub struct DeploymentObject {
    pub id: DeploymentObjectId,
    pub stack_id: StackId,
    /// The only agent that a marker or a rendering is for; `None` means all of them.
    pub agent_id: Option<AgentId>,
    /// Rises within the stack.
    pub sequence: i64,
    /// Empty in a marker.
    pub content: String,
    pub checksum: String,
    /// Its content is the text of a template, of which each agent has its own rendering.
    pub per_agent: Option<PerAgent>,
    pub is_marker: bool,
    /// A marker that tells agents to let go of what the stack has deployed, and to remove
    /// nothing.
    pub keeps: bool,
    pub submitted_at: Timestamp,
    pub withdrawn_at: Option<Timestamp>,
    /// When its content was overwritten.
    pub erased_at: Option<Timestamp>,
    /// When its stack was deleted.
    pub deleted_at: Option<Timestamp>,
}

/// Without the content, which may be confidential: whatever prints an object prints no
/// content.
impl std::fmt::Debug for DeploymentObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeploymentObject")
            .field("id", &self.id)
            .field("stack_id", &self.stack_id)
            .field("sequence", &self.sequence)
            .field("bytes", &self.content.len())
            .field("checksum", &self.checksum)
            .field("is_marker", &self.is_marker)
            .finish_non_exhaustive()
    }
}

/// An object that the store makes without having read content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewObject {
    pub id: DeploymentObjectId,
    pub stack_id: StackId,
    pub agent_id: Option<AgentId>,
    pub sequence: i64,
    /// The object whose content it has; `None` makes a marker.
    pub copy_of: Option<DeploymentObjectId>,
    /// Of a marker; a copy has that of its original.
    pub checksum: String,
    /// A marker that tells agents to let go.
    pub keeps: bool,
    pub submitted_at: Timestamp,
}

impl NewObject {
    pub(crate) fn marker(
        id: DeploymentObjectId,
        stack_id: StackId,
        sequence: i64,
        submitted_at: Timestamp,
    ) -> Self {
        Self {
            id,
            stack_id,
            agent_id: None,
            sequence,
            copy_of: None,
            checksum: marker_checksum(id),
            keeps: false,
            submitted_at,
        }
    }

    /// The marker of a stack that is deleted. A transaction that runs again makes the same.
    pub(crate) fn marker_of_deletion(
        stack: StackId,
        deletion: DeletionId,
        sequence: i64,
        now: Timestamp,
    ) -> Self {
        let id = derived(now, "marker", &[stack.as_uuid(), deletion.as_uuid()]);
        Self::marker(DeploymentObjectId::new(id), stack, sequence, now)
    }

    /// A marker that tells agents to let go, if they are to.
    pub(crate) fn keeping(self, keeps: bool) -> Self {
        Self { keeps, ..self }
    }

    /// The marker that tells one agent alone.
    pub(crate) fn for_agent(self, agent: AgentId) -> Self {
        Self { agent_id: Some(agent), ..self }
    }

    pub(crate) fn copy(
        id: DeploymentObjectId,
        stack_id: StackId,
        original: DeploymentObjectId,
        sequence: i64,
        submitted_at: Timestamp,
    ) -> Self {
        Self {
            id,
            stack_id,
            agent_id: None,
            sequence,
            copy_of: Some(original),
            checksum: String::new(),
            keeps: false,
            submitted_at,
        }
    }
}

/// An id that a transaction which runs again draws again.
pub(crate) fn derived(at: Timestamp, what: &str, of: &[Uuid]) -> Uuid {
    let ids = of.iter().map(|id| &id.as_bytes()[..]);
    let parts: Vec<&[u8]> = std::iter::once(what.as_bytes()).chain(ids).collect();
    derive_id(at, &parts)
}

/// Tells apart the audit entries about rows that hang on one subject: they leave its revision
/// as it is, and may be written at one moment.
pub(crate) fn of_row(mut commit: Commit, row: Uuid) -> Commit {
    for entry in &mut commit.audit {
        let id = derived(entry.at, entry.verb, &[entry.subject.id, row]);
        entry.id = AuditEntryId::new(id);
    }
    commit
}

/// What a generator submits.
#[derive(Debug, Clone)]
pub enum Submitted {
    Content(Content),
    Marker,
    /// The text of a template, of which each agent has its own rendering.
    Template(String, PerAgent),
    /// The content of the addressed object again.
    Again,
}

impl Submitted {
    /// A marker has no content, and whatever is no marker has some.
    pub fn parse(content: &str, is_marker: bool) -> Result<Self, Refusal> {
        if !is_marker {
            return Content::parse(content).map(Self::Content);
        }
        if content.is_empty() {
            return Ok(Self::Marker);
        }
        let problem = "must be empty in a deletion marker, which removes everything that the stack has deployed";
        Err(Refusal::invalid("yaml_content", problem))
    }
}

/// Why a Secret is refused.
pub(crate) const SECRET_REFUSED: &str = "`yaml_content` has a Secret with values, and its generator takes none: refer to the vault instead (an ExternalSecret), or let an admin set `accepts_secrets` of the generator";

/// SHA-256 over the text and the parameters, in hexadecimal.
fn checksum_of_template(text: &str, per_agent: &PerAgent) -> String {
    let parameters = json!([per_agent.parameters, per_agent.schema]).to_string();
    TemplateText { content: text.to_owned(), parameters_schema: parameters }.checksum()
}

/// A stack, its row locked, and the object that a decision is about.
#[derive(Debug, Clone)]
pub struct ObjectSnapshot {
    pub now: Timestamp,
    pub stack: Option<Stack>,
    /// Whether its generator lets Secrets with values in.
    pub accepts_secrets: bool,
    /// The addressed object, if it is of this stack and for all agents.
    pub object: Option<ObjectRow>,
    /// The newest object that nobody withdrew.
    pub newest: Option<DeploymentObjectId>,
    pub newest_is_marker: bool,
    /// The newest content that nobody withdrew, apart from the addressed object.
    pub remaining: Option<DeploymentObjectId>,
    /// The roll-out of the stack that has not ended.
    pub rollout: Option<Rollout>,
    /// The active agents that are associated with it, by name; read if it has a strategy.
    pub agents: Vec<AssociatedAgent>,
}

/// What a decision knows about an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectRow {
    pub id: DeploymentObjectId,
    pub is_marker: bool,
    pub is_withdrawn: bool,
}

pub fn submit(
    snapshot: &ObjectSnapshot,
    id: DeploymentObjectId,
    submitted: &Submitted,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let stack = existing(&snapshot.stack, Expected::Any)?;
    let now = snapshot.now;
    let sequence = next_sequence(stack.last_sequence, now);
    let mut object = DeploymentObject {
        id,
        stack_id: stack.id,
        agent_id: None,
        sequence,
        content: String::new(),
        checksum: String::new(),
        per_agent: None,
        is_marker: false,
        keeps: false,
        submitted_at: now,
        withdrawn_at: None,
        erased_at: None,
        deleted_at: None,
    };
    let mut details = json!({ "object_id": id, "sequence": sequence });
    let made = match submitted {
        Submitted::Again => {
            let original = snapshot.object.filter(|one| !one.is_withdrawn && !one.is_marker);
            let missing = || unknown(ErrorKind::DeploymentObjectNotFound, DeploymentObjectId::KIND);
            let original = original.ok_or_else(missing)?.id;
            details["copy_of"] = json!(original);
            let copy = NewObject::copy(id, stack.id, original, sequence, now);
            FleetWrite::ObjectsMake(vec![copy])
        }
        Submitted::Content(content) if content.has_secret() && !snapshot.accepts_secrets => {
            let refusal = Refusal::new(ErrorKind::SecretNotAccepted, SECRET_REFUSED);
            return Err(refusal.at("yaml_content"));
        }
        _ => {
            (object.content, object.checksum, object.is_marker) = match submitted {
                Submitted::Content(content) => {
                    (content.as_str().to_owned(), content.checksum(), false)
                }
                Submitted::Template(text, per_agent) => {
                    object.per_agent = Some(per_agent.clone());
                    details["template"] = json!(per_agent.template);
                    (text.clone(), checksum_of_template(text, per_agent), false)
                }
                _ => (String::new(), marker_checksum(id), true),
            };
            details["checksum"] = json!(object.checksum);
            details["bytes"] = json!(object.content.len());
            details["is_deletion_marker"] = json!(object.is_marker);
            FleetWrite::ObjectInsert(object.clone())
        }
    };
    let event = object_event(stack, OBJECT_SUBMITTED, &object, now);
    let before = snapshot.newest.filter(|_| !snapshot.newest_is_marker);
    let begun = rollout::begin(stack, &snapshot.agents, (id, sequence), before, (actor, now));
    let (rolling, started) = begun.unwrap_or_else(|| (stack.rolling.open(), Commit::default()));
    let write = numbered(stack, sequence, rolling);
    let mut commit = audited(write, "stack.submit", changed(stack), actor, now, details);
    commit.writes.push(made.into());
    commit.events.push(event);
    commit.join(superseded(snapshot, "a newer object was submitted", actor));
    commit.join(started);
    Ok(commit)
}

/// Ends the roll-out that was under way.
fn superseded(snapshot: &ObjectSnapshot, why: &str, actor: &Actor) -> Commit {
    let ended = snapshot.rollout.as_ref();
    ended.map_or_else(Commit::default, |one| rules::superseded(one, why, actor, snapshot.now))
}

/// Withdraws one object. If it was the newest, the newest content that remains becomes a new
/// object, since agents take the highest number; if none remains, a marker does.
pub fn withdraw(
    snapshot: &ObjectSnapshot,
    successor: DeploymentObjectId,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let stack = existing(&snapshot.stack, Expected::Any)?;
    let missing = || unknown(ErrorKind::DeploymentObjectNotFound, DeploymentObjectId::KIND);
    let object = snapshot.object.filter(|object| !object.is_withdrawn).ok_or_else(missing)?;
    if object.is_marker {
        let problem = "names a deletion marker, which agents may have carried out; submit content to have the stack deployed again";
        return Err(Refusal::invalid("object", problem));
    }
    let now = snapshot.now;
    let mut details = json!({ "object_id": object.id });
    let mut writes = vec![FleetWrite::ObjectWithdraw(object.id, now).into()];
    let is_newest = snapshot.newest == Some(object.id);
    let sequence =
        if is_newest { next_sequence(stack.last_sequence, now) } else { stack.last_sequence };
    if is_newest {
        let made = match snapshot.remaining {
            Some(original) => NewObject::copy(successor, stack.id, original, sequence, now),
            None => NewObject::marker(successor, stack.id, sequence, now),
        };
        details["successor"] = json!({ "object_id": successor, "copy_of": snapshot.remaining });
        writes.push(FleetWrite::ObjectsMake(vec![made]).into());
    }
    // What remains is what agents had before, so nobody waits for it.
    let rolling = if is_newest { stack.rolling.open() } else { stack.rolling.clone() };
    let write = numbered(stack, sequence, rolling);
    let mut commit = audited(write, "stack.withdraw", changed(stack), actor, now, details);
    commit.writes.extend(writes);
    if is_newest {
        commit.join(superseded(snapshot, "its object was withdrawn", actor));
    }
    let subject = DeploymentObject {
        id: object.id,
        stack_id: stack.id,
        agent_id: None,
        sequence,
        content: String::new(),
        checksum: String::new(),
        per_agent: None,
        is_marker: false,
        keeps: false,
        submitted_at: now,
        withdrawn_at: Some(now),
        erased_at: None,
        deleted_at: None,
    };
    commit.events.push(object_event(stack, OBJECT_WITHDRAWN, &subject, now));
    Ok(commit)
}

/// The stack at the revision that the write gives it.
fn changed(stack: &Stack) -> About {
    about(stack).at(stack.revision.next())
}

/// The stack with the number of its newest object, and who may have that.
fn numbered(stack: &Stack, last_sequence: i64, rolling: Rolling) -> Write {
    FleetWrite::StackUpdate(Stack { last_sequence, rolling, ..stack.clone() }).into()
}

fn object_event(
    stack: &Stack,
    event_type: EventType,
    object: &DeploymentObject,
    now: Timestamp,
) -> crate::event::Event {
    let after = Announced { revision: stack.revision.next(), ..announced(stack, now) };
    after.object(event_type, object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::fleet::mk_stack;
    use crate::fixtures::{at, mk_actor, uuid};

    fn object(number: u128) -> DeploymentObjectId {
        DeploymentObjectId::new(uuid(number))
    }

    fn snapshot() -> ObjectSnapshot {
        ObjectSnapshot {
            now: at(1_000),
            stack: Some(mk_stack()),
            accepts_secrets: false,
            object: Some(ObjectRow { id: object(1), is_marker: false, is_withdrawn: false }),
            newest: Some(object(1)),
            newest_is_marker: false,
            remaining: Some(object(2)),
            rollout: None,
            agents: Vec::new(),
        }
    }

    fn content(text: &str) -> Submitted {
        Submitted::parse(text, false).unwrap()
    }

    #[test]
    fn a_marker_has_no_content_and_content_is_no_marker() {
        assert!(matches!(Submitted::parse("", true), Ok(Submitted::Marker)));
        assert!(Submitted::parse("kind: A", true).is_err());
        assert!(Submitted::parse("", false).is_err());
    }

    #[test]
    fn an_object_is_newer_than_all_others_and_says_nothing_of_its_content() {
        let there = snapshot();
        let text = "kind: ConfigMap\ndata: {password: hunter2}";
        let commit = submit(&there, object(9), &content(text), &mk_actor()).unwrap();
        let FleetWrite::StackUpdate(stack) = written(&commit)[0] else { panic!("{commit:?}") };
        let FleetWrite::ObjectInsert(made) = written(&commit)[1] else { panic!("{commit:?}") };
        assert!(made.sequence > mk_stack().last_sequence);
        assert_eq!(stack.last_sequence, made.sequence);
        assert_eq!(made.content, text);
        assert!(!format!("{commit:?}").contains("hunter2"), "neither event nor audit nor Debug");
        assert_eq!(commit.events[0].revision, mk_stack().revision.next());
    }

    #[test]
    fn older_content_is_submitted_again() {
        let there = snapshot();
        let commit = submit(&there, object(9), &Submitted::Again, &mk_actor()).unwrap();
        let FleetWrite::ObjectsMake(made) = written(&commit)[1] else { panic!("{commit:?}") };
        assert_eq!((made[0].copy_of, made[0].id), (Some(object(1)), object(9)));
        assert!(made[0].sequence > mk_stack().last_sequence);
        let row = ObjectRow { id: object(1), is_marker: true, is_withdrawn: false };
        let marker = ObjectSnapshot { object: Some(row), ..there };
        assert!(submit(&marker, object(9), &Submitted::Again, &mk_actor()).is_err());
    }

    #[test]
    fn a_secret_is_taken_only_where_the_generator_says_so() {
        let there = snapshot();
        let secret = content("kind: Secret\nstringData: {a: hunter2}");
        let refusal = submit(&there, object(9), &secret, &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::SecretNotAccepted);
        assert!(!refusal.message.contains("hunter2"));
        let open = ObjectSnapshot { accepts_secrets: true, ..there.clone() };
        assert!(submit(&open, object(9), &secret, &mk_actor()).is_ok());
        let gone = ObjectSnapshot { stack: None, ..there };
        let refusal = submit(&gone, object(9), &Submitted::Marker, &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::StackNotFound);
    }

    #[test]
    fn the_newest_that_remains_follows_a_withdrawn_one() {
        let made = |there: &ObjectSnapshot| {
            let commit = withdraw(there, object(9), &mk_actor()).unwrap();
            written(&commit).into_iter().find_map(|write| match write {
                FleetWrite::ObjectsMake(made) => Some(made[0].clone()),
                _ => None,
            })
        };
        let there = snapshot();
        let copy = made(&there).unwrap();
        assert_eq!(copy.copy_of, Some(object(2)));
        assert!(copy.sequence > mk_stack().last_sequence);
        let last = ObjectSnapshot { remaining: None, ..there.clone() };
        assert_eq!(made(&last).unwrap().copy_of, None, "a marker: nothing is left to deploy");
        let older = ObjectSnapshot { newest: Some(object(3)), ..there.clone() };
        assert_eq!(made(&older), None, "a newer one counts anyway");
        let row = there.object.unwrap();
        for (row, kind) in [
            (None, ErrorKind::DeploymentObjectNotFound),
            (Some(ObjectRow { is_withdrawn: true, ..row }), ErrorKind::DeploymentObjectNotFound),
            (Some(ObjectRow { is_marker: true, ..row }), ErrorKind::InvalidInput),
        ] {
            let there = ObjectSnapshot { object: row, ..there.clone() };
            assert_eq!(withdraw(&there, object(9), &mk_actor()).unwrap_err().kind, kind);
        }
    }

    fn written(commit: &Commit) -> Vec<&FleetWrite> {
        let fleet = commit.writes.iter().filter_map(|write| match write {
            Write::Fleet(write) => Some(&**write),
            _ => None,
        });
        fleet.collect()
    }
}
