//! Registrations and targets. By a registration an agent agrees to take stacks of a generator;
//! without it no label and no target brings one. A target names a stack for an agent.

use serde_json::json;
use uuid::Uuid;

use crate::access::audit::Actor;
use crate::commit::Commit;
use crate::error::{ErrorKind, Refusal};
use crate::fleet::FleetWrite;
use crate::fleet::agent::{Agent, about};
use crate::fleet::generator::Generator;
use crate::fleet::object::of_row;
use crate::fleet::stack::Stack;
use crate::ids::{AgentId, GeneratorId, StackId};
use crate::kind::{audited, existing, unknown};
use crate::precondition::Expected;
use crate::time::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registration {
    pub id: Uuid,
    pub agent_id: AgentId,
    pub generator_id: GeneratorId,
    pub registered_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    pub id: Uuid,
    pub agent_id: AgentId,
    pub stack_id: StackId,
}

/// An agent and a generator, both locked against deletion.
#[derive(Debug, Clone)]
pub struct RegistrationSnapshot {
    pub now: Timestamp,
    pub agent: Option<Agent>,
    pub generator: Option<Generator>,
    pub registration: Option<Registration>,
}

pub fn register(
    snapshot: &RegistrationSnapshot,
    id: Uuid,
    actor: &Actor,
) -> Result<Commit, Refusal> {
    let agent =
        existing(&snapshot.agent, Expected::Any).map_err(|refusal| refusal.at("agent_id"))?;
    // One of another project is as unknown as one that does not exist.
    let generator = snapshot.generator.as_ref().filter(|one| one.project_id == agent.project_id);
    let missing = || unknown(ErrorKind::GeneratorNotFound, "generator");
    let generator = generator.ok_or_else(missing)?;
    if snapshot.registration.is_some() {
        let message = format!(
            "agent `{}` is registered with generator `{}` already",
            agent.name, generator.name
        );
        return Err(Refusal::new(ErrorKind::EntryExists, message));
    }
    let registered_at = snapshot.now;
    let row = Registration { id, agent_id: agent.id, generator_id: generator.id, registered_at };
    let details = json!({ "generator_id": generator.id, "generator": generator.name });
    let write = FleetWrite::RegistrationInsert(row);
    let commit = audited(write, "agent.register", about(agent), actor, snapshot.now, details);
    Ok(of_row(commit, row.id))
}

/// The agent is told to remove the stacks of the generator that it holds.
pub fn unregister(snapshot: &RegistrationSnapshot, actor: &Actor) -> Result<Commit, Refusal> {
    let agent = existing(&snapshot.agent, Expected::Any)?;
    let Some(row) = snapshot.registration else {
        let message = format!("agent `{}` is not registered with this generator", agent.name);
        return Err(Refusal::new(ErrorKind::EntryNotFound, message));
    };
    let details = json!({ "generator_id": row.generator_id });
    let write = FleetWrite::RegistrationRemove(row.id);
    let commit = audited(write, "agent.unregister", about(agent), actor, snapshot.now, details);
    Ok(of_row(commit, row.id))
}

/// An agent and a stack, both locked against deletion.
#[derive(Debug, Clone)]
pub struct TargetSnapshot {
    pub now: Timestamp,
    pub agent: Option<Agent>,
    pub stack: Option<Stack>,
    /// Whether the agent is registered with the generator of the stack.
    pub is_registered: bool,
    pub target: Option<Target>,
}

pub fn target(snapshot: &TargetSnapshot, id: Uuid, actor: &Actor) -> Result<Commit, Refusal> {
    let agent = existing(&snapshot.agent, Expected::Any)?;
    let stack = snapshot.stack.as_ref().filter(|stack| stack.project_id == agent.project_id);
    let missing = || unknown(ErrorKind::StackNotFound, "stack").at("stack_id");
    let stack = stack.ok_or_else(missing)?;
    if !snapshot.is_registered {
        let message = format!(
            "agent `{}` is not registered with the generator of stack `{}`; register it first",
            agent.name, stack.name
        );
        return Err(Refusal::new(ErrorKind::TargetGeneratorMismatch, message).at("stack_id"));
    }
    if snapshot.target.is_some() {
        let message =
            format!("stack `{}` is a target of agent `{}` already", stack.name, agent.name);
        return Err(Refusal::new(ErrorKind::EntryExists, message).at("stack_id"));
    }
    let row = Target { id, agent_id: agent.id, stack_id: stack.id };
    let details = json!({ "stack_id": stack.id, "stack": stack.name });
    let write = FleetWrite::TargetInsert(row);
    let commit = audited(write, "agent.target", about(agent), actor, snapshot.now, details);
    Ok(of_row(commit, row.id))
}

/// Also of a stack that is deleted: a target that nobody can remove would come back with it.
pub fn untarget(snapshot: &TargetSnapshot, actor: &Actor) -> Result<Commit, Refusal> {
    let agent = existing(&snapshot.agent, Expected::Any)?;
    let Some(row) = snapshot.target else {
        let message = format!("agent `{}` has no such target", agent.name);
        return Err(Refusal::new(ErrorKind::EntryNotFound, message));
    };
    let details = json!({ "stack_id": row.stack_id });
    let write = FleetWrite::TargetRemove(row.id);
    let commit = audited(write, "agent.untarget", about(agent), actor, snapshot.now, details);
    Ok(of_row(commit, row.id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::fleet::{mk_agent, mk_generator, mk_stack};
    use crate::fixtures::{at, mk_actor, uuid};
    use crate::ids::ProjectId;

    #[test]
    fn an_agent_agrees_once_and_within_its_project() {
        let there = RegistrationSnapshot {
            now: at(1),
            agent: Some(mk_agent()),
            generator: Some(mk_generator()),
            registration: None,
        };
        assert!(register(&there, uuid(7), &mk_actor()).is_ok());
        assert_eq!(unregister(&there, &mk_actor()).unwrap_err().kind, ErrorKind::EntryNotFound);
        let row = Registration {
            id: uuid(7),
            agent_id: mk_agent().id,
            generator_id: mk_generator().id,
            registered_at: at(1),
        };
        let twice = RegistrationSnapshot { registration: Some(row), ..there.clone() };
        let refusal = register(&twice, uuid(8), &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::EntryExists);
        assert!(unregister(&twice, &mk_actor()).is_ok());
        let other = Generator { project_id: ProjectId::new(uuid(99)), ..mk_generator() };
        let foreign = RegistrationSnapshot { generator: Some(other), ..there };
        let refusal = register(&foreign, uuid(7), &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::GeneratorNotFound);
    }

    #[test]
    fn a_target_needs_a_registration() {
        let there = TargetSnapshot {
            now: at(1),
            agent: Some(mk_agent()),
            stack: Some(mk_stack()),
            is_registered: true,
            target: None,
        };
        assert!(target(&there, uuid(7), &mk_actor()).is_ok());
        let stranger = TargetSnapshot { is_registered: false, ..there.clone() };
        let refusal = target(&stranger, uuid(7), &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::TargetGeneratorMismatch);
        let other = Stack { project_id: ProjectId::new(uuid(99)), ..mk_stack() };
        let foreign = TargetSnapshot { stack: Some(other), ..there.clone() };
        let refusal = target(&foreign, uuid(7), &mk_actor()).unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::StackNotFound);
        let row = Target { id: uuid(7), agent_id: mk_agent().id, stack_id: mk_stack().id };
        let gone = TargetSnapshot { stack: None, target: Some(row), ..there };
        assert!(untarget(&gone, &mk_actor()).is_ok(), "the stack is deleted");
    }
}
