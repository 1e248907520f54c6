//! Agents.

use std::collections::BTreeSet;

use slipway_core::access::idempotency::Request;
use slipway_core::error::ErrorKind;
use slipway_core::fleet::FleetName;
use slipway_core::fleet::agent::{self, Agent, AgentChange, AgentSnapshot, NewAgent};
use slipway_core::ids::{AgentId, DeletionId, GeneratorId};
use slipway_core::precondition::Expected;
use slipway_core::secret::Secret;

use super::port::{AgentKey, FleetFilter};
use super::principal;
use crate::access::authorise::{Caller, Operation, Principal, authorise};
use crate::access::reach::not_found;
use crate::deletion::request::{self, DeletableKind, DeleteOptions};
use crate::kind::{self, StoredKind, check};
use crate::ports::store::{Page, Stores};
use crate::ports::{KindStore, Listed};
use crate::{Context, Error};

/// An agent sees itself. A list for a generator has those that are registered with it.
impl StoredKind for Agent {
    type Key = AgentKey;
    type Snapshot = AgentSnapshot;
    type Filter = FleetFilter;
    const READ: Operation = Operation::FleetRead;

    fn store(stores: &Stores) -> &dyn KindStore<Self> {
        &*stores.fleet
    }

    fn seen_by(self, caller: &Caller) -> Option<Self> {
        let own = match caller.principal {
            Principal::Agent(own) => own == self.id,
            Principal::Holder | Principal::Generator(_) => true,
        };
        (caller.reaches(self.project_id) && own).then_some(self)
    }
}

impl DeletableKind for Agent {
    const OPERATION: Operation = Operation::FleetAgentDelete;
}

/// An agent as received, unchecked.
#[derive(Debug, Clone, Default)]
pub struct CreateAgent {
    /// Name or id; `default` or the caller's own if not said.
    pub project: Option<String>,
    pub name: String,
    pub cluster_name: String,
    /// It registers with these.
    pub generators: BTreeSet<GeneratorId>,
}

/// With its key, whose text only this answer has.
pub async fn create(
    context: &Context,
    caller: &Caller,
    input: CreateAgent,
    request: Option<Request>,
) -> Result<(AgentId, Secret), Error> {
    let actor = authorise(caller, Operation::FleetAgentCreate)?;
    let project = principal::project(caller, input.project);
    check("project", &project)?;
    let registered = input.generators.iter();
    let new = NewAgent {
        id: AgentId::new(context.entropy.uuid()),
        name: FleetName::parse("name", &input.name)?,
        cluster_name: FleetName::parse("cluster_name", &input.cluster_name)?,
        registrations: registered.map(|id| (context.entropy.uuid(), *id)).collect(),
    };
    let (text, first) = principal::draw_key(context, Principal::Agent(new.id))?;
    let key = AgentKey::New {
        project,
        name: new.name.to_string(),
        cluster_name: new.cluster_name.to_string(),
        generators: input.generators,
    };
    let rule = |snapshot: &AgentSnapshot| {
        let project = snapshot.project.filter(|project| caller.reaches(*project));
        let made = agent::create(&AgentSnapshot { project, ..snapshot.clone() }, &new, &actor)?;
        principal::with_key(made, &first, project, snapshot.now, &actor)
    };
    let id = kind::create::<Agent>(context, request, new.id, &key, rule).await?;
    context.wakes.wake_offers();
    Ok((id, text))
}

/// A generator does not see agents one by one, since which of them are registered with it
/// only a list knows.
pub async fn fetch(
    context: &Context,
    caller: &Caller,
    id: AgentId,
    show_deleted: bool,
) -> Result<Agent, Error> {
    if matches!(caller.principal, Principal::Generator(_)) {
        return Err(not_found(ErrorKind::AgentNotFound, AgentId::KIND, id));
    }
    kind::fetch(context, caller, &id.to_string(), show_deleted).await
}

pub async fn list(
    context: &Context,
    caller: &Caller,
    filter: &FleetFilter,
    page: Page<AgentId>,
) -> Result<Listed<Agent>, Error> {
    let project = caller.project.or(filter.project);
    let generator = match caller.principal {
        Principal::Generator(own) => Some(own),
        _ => filter.generator,
    };
    kind::list(context, caller, &FleetFilter { project, generator, ..filter.clone() }, page).await
}

pub async fn update(
    context: &Context,
    caller: &Caller,
    id: AgentId,
    change: &AgentChange,
    expected: Expected,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::FleetAgentUpdate)?;
    fetch(context, caller, id, false).await?;
    let mut rule = |snapshot: &_| agent::update(snapshot, change, expected, &actor);
    Ok(context.stores.kind::<Agent>().decide(&AgentKey::Existing(id), &mut rule).await?)
}

/// What it holds becomes leak records, and its key is refused.
pub async fn delete(
    context: &Context,
    caller: &Caller,
    id: AgentId,
    options: DeleteOptions<'_>,
) -> Result<DeletionId, Error> {
    authorise(caller, Operation::FleetAgentDelete)?;
    fetch(context, caller, id, false).await?;
    request::delete::<Agent>(context, caller, &AgentKey::Leaving(id), options).await
}

/// The text of its key, which replaces the one before.
pub async fn key(context: &Context, caller: &Caller, id: AgentId) -> Result<Secret, Error> {
    let actor = authorise(caller, Operation::FleetKeyRotate)?;
    let found = fetch(context, caller, id, false).await?;
    principal::key(context, Principal::Agent(id), found.project_id, &actor).await
}
