//! Adds to an explanation what holds a teardown that is overdue, as this process observes it
//! now. The stored blocker says since when; this says which object, whose, and what its
//! provider answered last.

use futures::future::try_join_all;
use serde_json::{Value, json};
use slipway_core::blocker::{Blocker, BlockerCode};
use slipway_core::broker::holding::Holder;
use slipway_core::ids::ProvisionedResourceId;
use slipway_core::operations::explanation::Explanation;

use crate::Error;
use crate::deletion::leaks::Finder;

/// Parts of one explanation that are observed; the others keep what is stored.
const PARTS: usize = 3;

pub async fn add(finder: &Finder, explanation: &mut Explanation) -> Result<(), Error> {
    if let (Some(blocker), Some(resource)) =
        (explanation.blockers.iter_mut().find(is_overdue), explanation.resource_id)
        && let Some(snapshot) = finder.context().stores.broker.resource_fetch(resource).await?
    {
        add_to(blocker, holding(finder, snapshot.attempt.id()).await?);
    }
    let parts = explanation.parts.iter_mut().filter_map(|part| {
        let attempt = ProvisionedResourceId::new(part.id);
        let own = part.kind == ProvisionedResourceId::KIND;
        Some((attempt, part.blockers.iter_mut().find(is_overdue).filter(|_| own)?))
    });
    let observed = parts.take(PARTS).map(async |(attempt, blocker)| {
        add_to(blocker, holding(finder, attempt).await?);
        Ok::<_, Error>(())
    });
    try_join_all(observed).await?;
    Ok(())
}

fn is_overdue(blocker: &&mut Blocker) -> bool {
    blocker.code == BlockerCode::DeprovisioningOverdue
}

fn add_to(blocker: &mut Blocker, holding: Value) {
    if let Some(evidence) = blocker.evidence.as_object_mut() {
        evidence.insert("holding".to_owned(), holding);
    }
}

/// What holds it, or why this process cannot say.
async fn holding(finder: &Finder, attempt: ProvisionedResourceId) -> Result<Value, Error> {
    Ok(match finder.holders(attempt).await? {
        None => json!("this control plane does not serve its cluster; ask one that does"),
        Some(Err(problem)) => json!(format!("it cannot be read: {problem}")),
        Some(Ok(holders)) => json!(holders.iter().map(Holder::document).collect::<Vec<_>>()),
    })
}
