//! Why a resource is where it is: one answer over store, registry, the last
//! observation and the deadlines.

use slipway_core::ids::ResourceId;
use slipway_core::rules::explain;
use slipway_core::snapshot::ResourceSnapshot;
use slipway_core::time::Timestamp;

use crate::authorise::Caller;
use crate::ports::store::HistoryLine;
use crate::usecases::read;
use crate::{Context, Error};

/// The answer.
#[derive(Debug, Clone)]
pub struct Explanation {
    pub snapshot: ResourceSnapshot,
    /// What has to happen for the phase to change.
    pub waiting_for: Option<String>,
    /// When that becomes a blocker.
    pub deadline: Option<Timestamp>,
    pub history: Vec<HistoryLine>,
}

pub async fn explain(
    context: &Context,
    caller: &Caller,
    id: ResourceId,
) -> Result<Explanation, Error> {
    let mut snapshot = read::resource(context, caller, id).await?;
    snapshot.blockers.extend(explain::not_served(&snapshot, context.settings.claimed_within));
    let history = context.store.history_list(snapshot.attempt.id()).await?;
    Ok(Explanation {
        waiting_for: explain::waiting_for(&snapshot),
        deadline: explain::deadline(&snapshot, &context.settings.deadlines),
        history,
        snapshot,
    })
}
