//! Orphaning on purpose what holds the teardown of a resource.

use slipway_core::broker::holding::Holder;
use slipway_core::broker::orphan::{self, Circumstances, KeepOrder};
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::commit::Commit;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::ResourceId;
use slipway_core::text::Reason;

use crate::Error;
use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::reach;
use crate::broker::port::ResourceKey;
use crate::deletion::leaks::Finder;
use crate::ports::store;

/// What a request leads to.
#[derive(Debug, Clone, PartialEq)]
pub struct Orphaned {
    /// Everything that holds the teardown, as it was observed for this request.
    pub holders: Vec<Holder>,
    /// What is kept outside, with its leak records. In a dry run nothing is written, and the
    /// records do not exist.
    pub kept: Vec<KeepOrder>,
}

/// Records that what holds the teardown is kept outside; the resource loop tells it so. A
/// dry run writes nothing.
pub async fn orphan(
    finder: &Finder,
    caller: &Caller,
    id: ResourceId,
    reason: &str,
    dry_run: bool,
) -> Result<Orphaned, Error> {
    let context = finder.context();
    let actor = authorise(caller, Operation::ResourceOrphan)?;
    reach::reach_resource(context, caller, id).await?;
    let reason = Reason::parse(reason).map_err(Refusal::from)?;
    let broker = &context.stores.broker;
    let current = broker.resource_fetch(id).await?;
    let current = current.ok_or(store::Error::NotFound { kind: ResourceId::KIND })?;
    let current = current.torn_down().attempt.id();
    // Observed right before the decision, and not in its transaction.
    let holders = match finder.holders(current).await? {
        Some(Err(problem)) => {
            let message =
                format!("what holds it cannot be read, so nothing is orphaned: {problem}");
            return Err(Refusal::new(ErrorKind::NotOrphanable, message).into());
        }
        found => found.transpose().unwrap_or_default(),
    };
    let mode = context.stores.operations.control_fetch().await?.mode();
    let circumstances = Circumstances {
        holders: holders.as_deref(),
        mode: &mode,
        deadlines: &context.settings.deadlines,
    };
    let mut kept = Vec::new();
    let mut rule = |snapshot: &ResourceSnapshot| {
        let orphaned = orphan::request(snapshot, &reason, circumstances, &actor)?;
        kept = orphaned.kept;
        Ok(if dry_run { Commit::default() } else { orphaned.commit })
    };
    broker.decide(ResourceKey::Attempt(current), &mut rule).await?;
    if !dry_run {
        context.wakes.wake();
    }
    Ok(Orphaned { holders: holders.unwrap_or_default(), kept })
}
