//! What explanations of stacks, agents and generators read.

use slipway_core::error::Refusal;
use slipway_core::fleet::agent::Agent;
use slipway_core::fleet::progress::AgentLine;
use slipway_core::ids::{AgentId, GeneratorId, StackId};
use slipway_core::operations::control::Mode;
use slipway_core::operations::explain::{self, FleetFacts};
use slipway_core::operations::explanation::{ExplainedKind, Explanation};
use slipway_core::operations::reference;
use slipway_core::subject::SubjectKind;
use uuid::Uuid;

use crate::access::authorise::Caller;
use crate::fleet::port::{FleetFilter, PairsOf};
use crate::fleet::{agents, generators, links, stacks};
use crate::ports::store::Page;
use crate::{Context, Error};

/// Agents of a stack, or stacks of an agent, that are read.
const PAIRS: u32 = 1_000;

pub(super) async fn stack(
    context: &Context,
    caller: &Caller,
    reference: &str,
) -> Result<Explanation, Error> {
    let (kind, explained) = (SubjectKind::Stack, ExplainedKind::Stack);
    let id = StackId::new(find(context, caller, kind, explained, reference).await?);
    let stack = stacks::fetch(context, caller, id, true).await?;
    let generator = stack.generator_id.as_uuid();
    let names = context.stores.access.names(&[generator]).await?;
    let generator = names.get(&generator).cloned().unwrap_or_else(|| generator.to_string());
    let pairs = context.stores.fleet.pair_list(PairsOf::Stack(id), PAIRS).await?;
    Ok(explain::stack(&stack, &generator, &pairs, facts(context).await?))
}

pub(super) async fn agent(
    context: &Context,
    caller: &Caller,
    reference: &str,
) -> Result<Explanation, Error> {
    let (kind, explained) = (SubjectKind::Agent, ExplainedKind::Agent);
    let id = AgentId::new(find(context, caller, kind, explained, reference).await?);
    let agent = agents::fetch(context, caller, id, true).await?;
    let registered = match agent.deleted_at {
        None => {
            let page = Page { after: None, limit: PAIRS };
            links::registrations_of_agent(context, caller, id, page).await?
        }
        Some(_) => Vec::new(),
    };
    let ids: Vec<Uuid> = registered.iter().map(|one| one.generator_id.as_uuid()).collect();
    let names = context.stores.access.names(&ids).await?;
    let generators: Vec<String> = names.into_values().collect();
    let pairs = context.stores.fleet.pair_list(PairsOf::Agent(id), PAIRS).await?;
    let refused = context.stores.fleet.prune_fetch(id).await?;
    let facts = facts(context).await?;
    Ok(explain::agent(&agent, &generators, &pairs, refused.as_ref(), facts))
}

pub(super) async fn generator(
    context: &Context,
    caller: &Caller,
    reference: &str,
) -> Result<Explanation, Error> {
    let (kind, explained) = (SubjectKind::Generator, ExplainedKind::Generator);
    let id = GeneratorId::new(find(context, caller, kind, explained, reference).await?);
    let generator = generators::fetch(context, caller, id, true).await?;
    let counts = context.stores.fleet.stack_counts(id, PAIRS).await?;
    let filter = FleetFilter { generator: Some(id), ..FleetFilter::default() };
    let page = Page { after: None, limit: PAIRS };
    let agents = agents::list(context, caller, &filter, page).await?;
    let line = |agent: &Agent| AgentLine {
        id: agent.id,
        name: agent.name.to_string(),
        cluster_name: agent.cluster_name.to_string(),
        status: agent.status,
        heartbeat_at: agent.heartbeat.map(|heartbeat| heartbeat.at),
        can_keep: agent.can_keep,
    };
    let agents: Vec<AgentLine> = agents.iter().map(line).collect();
    Ok(explain::generator(&generator, &counts, &agents, facts(context).await?))
}

/// By its name within the reach of the caller, its id or the beginning of it.
async fn find(
    context: &Context,
    caller: &Caller,
    kind: SubjectKind,
    explained: ExplainedKind,
    text: &str,
) -> Result<Uuid, Error> {
    let found = crate::access::reference::find(context, caller, kind, text).await?;
    Ok(found.ok_or_else(|| -> Refusal { reference::missing(explained, text) })?)
}

async fn facts(context: &Context) -> Result<FleetFacts, Error> {
    let control = context.stores.operations.control_fetch().await?;
    let is_frozen = matches!(control.mode(), Mode::Frozen(_));
    Ok(FleetFacts { now: control.now, is_frozen })
}
