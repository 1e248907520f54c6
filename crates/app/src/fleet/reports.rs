//! What agents say: that they live, how objects went, and how healthy they are.

use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::fleet::agent::{ClusterHealth, KEEP};
use slipway_core::fleet::report::{
    HEALTH_MAX, HealthStatus, NewReport, ObjectHealth, Report, check_summary,
};
use slipway_core::ids::{AgentId, DeploymentObjectId};
use slipway_core::time::Timestamp;

use super::{agents, stacks};
use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::reach::not_found;
use crate::{Context, Error};

/// What an agent says with a heartbeat.
#[derive(Debug, Clone, Default)]
pub struct SubmitHeartbeat {
    pub is_reachable: Option<bool>,
    pub latency_millis: Option<i32>,
    /// Those that nobody knows here are ignored.
    pub capabilities: Vec<String>,
}

impl From<(Option<bool>, Option<i32>)> for SubmitHeartbeat {
    fn from((is_reachable, latency_millis): (Option<bool>, Option<i32>)) -> Self {
        Self { is_reachable, latency_millis, ..Self::default() }
    }
}

/// A heartbeat, with what the agent says about the API server of its cluster, and what it can
/// do until the next one.
pub async fn heartbeat(
    context: &Context,
    caller: &Caller,
    id: AgentId,
    input: impl Into<SubmitHeartbeat>,
) -> Result<(), Error> {
    authorise(caller, Operation::FleetReport)?;
    agents::fetch(context, caller, id, false).await?;
    let SubmitHeartbeat { is_reachable, latency_millis, capabilities } = input.into();
    let says = is_reachable.is_some() || latency_millis.is_some();
    let cluster =
        says.then_some(ClusterHealth { is_reachable, latency_millis, at: Timestamp::ZERO });
    let can_keep = capabilities.iter().any(|one| one == KEEP);
    if context.stores.fleet.heartbeat_record(id, cluster, can_keep).await? {
        return Ok(());
    }
    Err(not_found(ErrorKind::AgentNotFound, AgentId::KIND, id))
}

/// What an agent reports about an object, unchecked.
#[derive(Debug, Clone)]
pub struct SubmitReport {
    pub object: DeploymentObjectId,
    pub event_type: String,
    pub status: String,
    pub message: Option<String>,
}

/// Records a report. The same one again is the same row.
pub async fn report(
    context: &Context,
    caller: &Caller,
    agent: AgentId,
    input: SubmitReport,
) -> Result<Report, Error> {
    authorise(caller, Operation::FleetReport)?;
    agents::fetch(context, caller, agent, false).await?;
    let SubmitReport { object, event_type, status, message } = input;
    let id = context.entropy.uuid();
    let new = NewReport::parse(id, (agent, object), &event_type, &status, message.as_deref())?;
    let recorded = context.stores.fleet.report_record(&new).await?;
    // A member of a roll-out may be healthy by now, or have failed.
    context.wakes.ticked.notify_one();
    recorded.ok_or_else(|| {
        not_found(ErrorKind::DeploymentObjectNotFound, DeploymentObjectId::KIND, object)
    })
}

/// Newest first.
pub async fn list(
    context: &Context,
    caller: &Caller,
    agent: AgentId,
    limit: u32,
) -> Result<Vec<Report>, Error> {
    agents::fetch(context, caller, agent, false).await?;
    Ok(context.stores.fleet.report_list(Some(agent), None, limit).await?)
}

/// The health of one object, unchecked.
#[derive(Debug, Clone)]
pub struct SubmitHealth {
    pub object: DeploymentObjectId,
    pub status: String,
    pub summary: Option<serde_json::Value>,
    pub checked_at: Timestamp,
}

/// Objects that the agent was not offered are left out.
pub async fn health(
    context: &Context,
    caller: &Caller,
    agent: AgentId,
    input: Vec<SubmitHealth>,
) -> Result<u64, Error> {
    authorise(caller, Operation::FleetReport)?;
    agents::fetch(context, caller, agent, false).await?;
    if input.len() > HEALTH_MAX {
        let problem = format!("must have at most {HEALTH_MAX} entries; send several");
        return Err(Refusal::invalid("deployment_objects", problem).into());
    }
    let mut checked = std::collections::BTreeMap::new();
    for one in input {
        if let Some(summary) = &one.summary {
            check_summary(summary)?;
        }
        let health = ObjectHealth {
            id: context.entropy.uuid(),
            agent_id: agent,
            object_id: one.object,
            status: HealthStatus::parse_field("status", &one.status)?,
            summary: one.summary,
            checked_at: one.checked_at,
        };
        // A statement writes a row once; of two the last counts.
        checked.insert(one.object, health);
    }
    let checked: Vec<_> = checked.into_values().collect();
    let recorded = context.stores.fleet.health_record(&checked).await?;
    context.wakes.ticked.notify_one();
    Ok(recorded)
}

pub async fn health_of(
    context: &Context,
    caller: &Caller,
    object: DeploymentObjectId,
) -> Result<Vec<ObjectHealth>, Error> {
    authorise(caller, Operation::FleetOverview)?;
    let missing =
        || not_found(ErrorKind::DeploymentObjectNotFound, DeploymentObjectId::KIND, object);
    let found = context.stores.fleet.object_fetch(object).await?.ok_or_else(missing)?;
    stacks::fetch(context, caller, found.stack_id, true).await.map_err(|_| missing())?;
    Ok(context.stores.fleet.health_list(object).await?)
}
