//! Updating a resource in place.

pub use slipway_core::broker::update::{Changes, FieldChange};

use slipway_core::broker::redeclare::RedeclareSnapshot;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::broker::update;
use slipway_core::commit::Commit;
use slipway_core::error::Refusal;
use slipway_core::ids::ResourceId;
use slipway_core::precondition::Expected;
use slipway_core::text::check_reference;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::reach;
use crate::broker::port::{RedeclareKey, Redeclared, ResourceKey};
use crate::{Context, Error};

/// Records the changes, and returns the difference. Without one it writes nothing. The loop
/// applies what is declared.
pub async fn update(
    context: &Context,
    caller: &Caller,
    id: ResourceId,
    changes: Changes,
    expected: Expected,
) -> Result<Vec<FieldChange>, Error> {
    let changed = decide(context, caller, id, &changes, expected, |commit| commit).await?;
    if !changed.is_empty() {
        tracing::info!(resource_id = %id, fields = changed.len(), "update accepted");
        context.wakes.wake();
    }
    Ok(changed)
}

/// Checks the changes like [`update`], and returns the difference alone.
pub async fn preview(
    context: &Context,
    caller: &Caller,
    id: ResourceId,
    changes: &Changes,
    expected: Expected,
) -> Result<Vec<FieldChange>, Error> {
    decide(context, caller, id, changes, expected, |_| Commit::default()).await
}

async fn decide(
    context: &Context,
    caller: &Caller,
    id: ResourceId,
    changes: &Changes,
    expected: Expected,
    written: fn(Commit) -> Commit,
) -> Result<Vec<FieldChange>, Error> {
    let actor = authorise(caller, Operation::ResourceUpdate)?;
    reach::reach_resource(context, caller, id).await?;
    let version = changes.version.as_deref();
    version.map_or(Ok(()), |text| check_reference("version", text)).map_err(Refusal::from)?;
    let mut changed = Vec::new();
    let store = &context.stores.broker;
    if changes.corrections().is_empty() {
        let labels = changes.labels.as_ref();
        let mut rule = |snapshot: &ResourceSnapshot| {
            let updated = update::relabel(snapshot, labels, expected, &actor)?;
            changed = updated.changes;
            Ok(written(updated.commit))
        };
        store.decide(ResourceKey::Resource(id), &mut rule).await?;
    } else {
        let version = changes.version.clone();
        let key = RedeclareKey { resource: id, version, of: Redeclared::InUse };
        let mut rule = |snapshot: &RedeclareSnapshot| {
            let updated = update::update(snapshot, changes, expected, &actor)?;
            changed = updated.changes;
            Ok(written(updated.commit))
        };
        store.decide_redeclaration(&key, &mut rule).await?;
    }
    Ok(changed)
}
