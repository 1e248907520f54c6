//! An agent: the program that brings stacks to one cluster. It acts only while it is ACTIVE,
//! and sees only stacks of generators that it is registered with.

use serde_json::json;
use uuid::Uuid;

use crate::access::audit::{About, Actor};
use crate::closed_set::closed_set;
use crate::commit::{Commit, Write};
use crate::deletion::DeletionWrite;
use crate::deletion::leak::LeakRecord;
use crate::deletion::request::{Deletable, Leaving};
use crate::error::{ErrorKind, Refusal};
use crate::fleet::event::{Announced, Happened};
use crate::fleet::generator::Generator;
use crate::fleet::links::{self, RegistrationSnapshot};
use crate::fleet::object::derived;
use crate::fleet::{FleetName, FleetWrite};
use crate::ids::{AgentId, DeletionId, GeneratorId, LeakRecordId, ProjectId, Revision, StackId};
use crate::kind::{audited, existing, free, kind, unknown};
use crate::precondition::Expected;
use crate::time::Timestamp;

/// The kind of the leak that a deleted agent leaves for each stack that it holds.
pub const LEAK_KIND: &str = "held_by_deleted_agent";

/// The capability of an agent that can let go of what it deployed.
pub const KEEP: &str = "keep";

closed_set!(
    /// Whether an agent carries out what it is offered.
    AgentStatus {
        Inactive => "INACTIVE",
        Active => "ACTIVE",
    }
);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    pub id: AgentId,
    pub project_id: ProjectId,
    /// Unique with the name of its cluster in its project among the not deleted.
    pub name: FleetName,
    pub cluster_name: FleetName,
    pub status: AgentStatus,
    pub heartbeat: Option<Heartbeat>,
    /// Whether its last heartbeat said [`KEEP`].
    pub can_keep: bool,
    pub revision: Revision,
    pub deletion_id: Option<DeletionId>,
    pub deleted_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

kind!(Agent, AgentId, AgentNotFound);

/// What an agent said last about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat {
    pub at: Timestamp,
    pub cluster: Option<ClusterHealth>,
}

/// What an agent said last about the API server of its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterHealth {
    pub is_reachable: Option<bool>,
    pub latency_millis: Option<i32>,
    pub at: Timestamp,
}

/// An agent, its row locked.
#[derive(Debug, Clone)]
pub struct AgentSnapshot {
    pub now: Timestamp,
    /// The project of a new one, if it is live; locked against deletion.
    pub project: Option<ProjectId>,
    /// The addressed agent, or the one that has the requested names.
    pub agent: Option<Agent>,
    /// The stacks that it holds; read for a deletion only.
    pub held: Vec<HeldStack>,
    /// The live ones of the generators that a new one registers with, locked against deletion.
    pub generators: Vec<Generator>,
}

/// A stack that an agent was offered and did not report as removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldStack {
    pub id: StackId,
    pub name: String,
}

#[derive(Debug, Clone)]
pub struct NewAgent {
    pub id: AgentId,
    pub name: FleetName,
    pub cluster_name: FleetName,
    /// The generators that it registers with, each with the id of its row.
    pub registrations: Vec<(Uuid, GeneratorId)>,
}

/// The fields to change; `None` leaves one unchanged.
#[derive(Debug, Clone, Default)]
pub struct AgentChange {
    pub name: Option<FleetName>,
    pub cluster_name: Option<FleetName>,
    pub status: Option<AgentStatus>,
}

pub fn create(snapshot: &AgentSnapshot, new: &NewAgent, actor: &Actor) -> Result<Commit, Refusal> {
    let Some(project_id) = snapshot.project else {
        return Err(unknown(ErrorKind::ProjectNotFound, "project").at("project"));
    };
    free(&snapshot.agent, "name", new.name.as_str())?;
    let agent = Agent {
        id: new.id,
        project_id,
        name: new.name.clone(),
        cluster_name: new.cluster_name.clone(),
        status: AgentStatus::Inactive,
        heartbeat: None,
        can_keep: false,
        revision: Revision::FIRST,
        deletion_id: None,
        deleted_at: None,
        created_at: snapshot.now,
        updated_at: snapshot.now,
    };
    let details = json!({ "name": agent.name, "cluster_name": agent.cluster_name });
    let about = about(&agent);
    let event = announced(&agent, agent.revision, snapshot.now).happened(Happened::Created, None);
    let write = FleetWrite::AgentInsert(agent.clone());
    let mut commit = audited(write, "agent.create", about, actor, snapshot.now, details);
    commit.events.extend(event);
    for (id, generator) in &new.registrations {
        let found = snapshot.generators.iter().find(|found| found.id == *generator);
        let pair = RegistrationSnapshot {
            now: snapshot.now,
            agent: Some(agent.clone()),
            generator: found.cloned(),
            registration: None,
        };
        let registered = links::register(&pair, *id, actor);
        commit.join(registered.map_err(|refusal| refusal.at("generator_ids"))?);
    }
    Ok(commit)
}

pub fn update(
    snapshot: &AgentSnapshot,
    change: &AgentChange,
    expected: Expected,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let before = existing(&snapshot.agent, expected)?;
    let after = Agent {
        name: change.name.clone().unwrap_or_else(|| before.name.clone()),
        cluster_name: change.cluster_name.clone().unwrap_or_else(|| before.cluster_name.clone()),
        status: change.status.unwrap_or(before.status),
        ..before.clone()
    };
    if after == *before {
        return Ok(Commit::default());
    }
    let shown = |agent: &Agent| {
        json!({
            "name": agent.name, "cluster_name": agent.cluster_name, "status": agent.status,
        })
    };
    let details = json!({ "before": shown(before), "after": shown(&after) });
    let write = FleetWrite::AgentUpdate(after);
    let about = about(before).at(before.revision.next());
    Ok(audited(write, "agent.update", about, actor, snapshot.now, details))
}

pub(crate) fn about(agent: &Agent) -> About {
    About::new(agent.id).of(agent.project_id)
}

fn announced(agent: &Agent, revision: Revision, at: Timestamp) -> Announced<'_> {
    let Agent { id, project_id, .. } = *agent;
    Announced { subject: id.into(), name: agent.name.as_str(), project_id, revision, at }
}

/// Nobody removes what it holds any more: each stack becomes a leak record. Its restore
/// closes them.
impl Deletable for Agent {
    type Snapshot = AgentSnapshot;
    const DELETE: &'static str = "agent.delete";

    fn found(snapshot: &AgentSnapshot) -> (&Option<Self>, Timestamp) {
        (&snapshot.agent, snapshot.now)
    }

    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn project(&self) -> Option<ProjectId> {
        Some(self.project_id)
    }

    fn leaving(&self, snapshot: &AgentSnapshot, leaving: &Leaving<'_>) -> Commit {
        let Leaving { deletion_id, now, .. } = *leaving;
        let names = (self.name.as_str(), self.cluster_name.as_str());
        let gone = announced(self, self.revision.next(), now);
        Commit {
            writes: leaks(self.id, names, &snapshot.held, deletion_id, now).collect(),
            events: gone.happened(Happened::Deleted, Some(deletion_id)).into_iter().collect(),
            ..Commit::default()
        }
    }

    fn free(&self, _snapshot: &AgentSnapshot, _cascade: bool) -> Result<(), Refusal> {
        Ok(())
    }
}

/// A leak record for each stack that a deleted agent holds.
pub(crate) fn leaks(
    id: AgentId,
    (name, cluster_name): (&str, &str),
    held: &[HeldStack],
    deletion_id: DeletionId,
    now: Timestamp,
) -> impl Iterator<Item = Write> {
    held.iter().map(move |stack| {
        let leak = LeakRecord {
            id: LeakRecordId::new(leak_id(id, stack.id)),
            kind: LEAK_KIND,
            subject: id.into(),
            found_at: now,
            last_known: None,
            evidence: json!({
                "agent": name, "cluster_name": cluster_name, "stack_id": stack.id,
                "stack": stack.name, "deletion_id": deletion_id,
            }),
        };
        Write::Deletion(DeletionWrite::LeakInsert(leak))
    })
}

/// One record for an agent and a stack, however often the agent is deleted and restored.
fn leak_id(agent: AgentId, stack: StackId) -> Uuid {
    derived(Timestamp::ZERO, LEAK_KIND, &[agent.as_uuid(), stack.as_uuid()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deletion::door::Door;
    use crate::deletion::request::request;
    use crate::fixtures::catalog::mk_ask;
    use crate::fixtures::fleet::{mk_agent, mk_generator, mk_stack};
    use crate::fixtures::{at, mk_actor, uuid};

    fn snapshot() -> AgentSnapshot {
        let held = vec![HeldStack { id: mk_stack().id, name: "web".to_owned() }];
        let (now, agent) = (at(1_000), Some(mk_agent()));
        AgentSnapshot { now, project: None, agent, held, generators: vec![mk_generator()] }
    }

    #[test]
    fn a_new_agent_waits_to_be_activated() {
        let new = NewAgent {
            id: mk_agent().id,
            name: mk_agent().name,
            cluster_name: mk_agent().cluster_name,
            registrations: vec![(uuid(7), mk_generator().id)],
        };
        let taken = AgentSnapshot { project: Some(mk_agent().project_id), ..snapshot() };
        assert_eq!(create(&taken, &new, &mk_actor()).unwrap_err().kind, ErrorKind::NameTaken);
        let free = AgentSnapshot { agent: None, ..taken };
        let commit = create(&free, &new, &mk_actor()).unwrap();
        let Write::Fleet(write) = &commit.writes[0] else { panic!("{commit:?}") };
        assert!(
            matches!(&**write, FleetWrite::AgentInsert(agent) if agent.status == AgentStatus::Inactive)
        );
        assert_eq!(commit.writes.len(), 2, "and its registration");
        let other = AgentSnapshot { generators: Vec::new(), ..free };
        let refusal = create(&other, &new, &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::GeneratorNotFound);
        assert_eq!(refusal.field.as_deref(), Some("generator_ids"));
        let change = AgentChange { status: Some(AgentStatus::Inactive), ..AgentChange::default() };
        let commit = update(&snapshot(), &change, Expected::Any, &mk_actor()).unwrap();
        assert_eq!(commit.audit[0].details["after"]["status"], "INACTIVE");
    }

    #[test]
    fn what_a_deleted_agent_holds_becomes_one_leak_for_each_stack() {
        let delete = || {
            let asked = request::<Agent>(&snapshot(), &Door::default(), &mk_ask(), &mk_actor());
            let writes = asked.unwrap().commit.writes;
            let leaks = writes.into_iter().filter_map(|write| match write {
                Write::Deletion(DeletionWrite::LeakInsert(leak)) => Some(leak),
                _ => None,
            });
            leaks.collect::<Vec<_>>()
        };
        let leaks = delete();
        assert_eq!(leaks.len(), 1);
        assert_eq!((leaks[0].kind, leaks[0].subject), (LEAK_KIND, mk_agent().id.into()));
        assert_eq!(leaks[0].id, delete()[0].id, "deleted again, it is the same leak");
    }
}
