//! Leaks: outside objects that should not exist, or missing ones that should. A
//! scan finds them (`finder.rs`), a person requests their removal
//! (`removal.rs`), and they are resolved when they are over.

mod finder;
mod removal;

use std::collections::BTreeMap;

use slipway_core::deletion::leak::{self, Leak};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::LeakRecordId;
use slipway_core::nearest::not_one_of;
use slipway_core::text::Reason;

pub use self::finder::{Finder, ScanReport, Suspected};
use crate::access::authorise::{Caller, Operation, authorise};
use crate::deletion::port::LeakFilter;
use crate::ports::store::Page;
use crate::{Context, Error};

pub async fn leaks(
    context: &Context,
    caller: &Caller,
    filter: &LeakFilter,
    page: Page<LeakRecordId>,
) -> Result<Vec<Leak>, Error> {
    authorise(caller, Operation::LeakRead)?;
    if let Some(kind) = &filter.kind {
        let kinds = leak::kinds();
        if !kinds.contains(&kind.as_str()) {
            return Err(not_one_of("kind", kind, &kinds).into());
        }
    }
    Ok(context.stores.deletion.leak_list(filter, page).await?)
}

pub async fn leak(context: &Context, caller: &Caller, id: LeakRecordId) -> Result<Leak, Error> {
    authorise(caller, Operation::LeakRead)?;
    fetch(context, id).await
}

/// How many are open, by kind; for metrics, so without authorisation.
pub async fn open_counts(context: &Context) -> Result<BTreeMap<String, u64>, Error> {
    Ok(context.stores.deletion.leak_open_counts().await?)
}

/// Scans everything now, and returns the findings.
pub async fn find(finder: &Finder, caller: &Caller) -> Result<Vec<ScanReport>, Error> {
    authorise(caller, Operation::LeakFind)?;
    finder.scan_all().await
}

/// Closes a leak at a person's request, if our own observation confirms it.
pub async fn resolve(
    finder: &Finder,
    caller: &Caller,
    id: LeakRecordId,
    reason: &str,
) -> Result<Leak, Error> {
    let actor = authorise(caller, Operation::LeakResolve)?;
    let reason = Reason::parse(reason)?;
    finder.resolve(id, &reason, &actor).await?;
    fetch(finder.context(), id).await
}

/// Removes the object of a leak that no row claims. Returns the leak as it is
/// then: resolved, or still being removed.
pub async fn remove(
    finder: &Finder,
    caller: &Caller,
    id: LeakRecordId,
    reason: &str,
) -> Result<Leak, Error> {
    let actor = authorise(caller, Operation::LeakRemove)?;
    let reason = Reason::parse(reason)?;
    finder.remove(id, caller.role, &reason, &actor).await?;
    fetch(finder.context(), id).await
}

async fn fetch(context: &Context, id: LeakRecordId) -> Result<Leak, Error> {
    let found = context.stores.deletion.leak_fetch(id).await?;
    found.ok_or_else(|| {
        Refusal::new(ErrorKind::LeakNotFound, format!("there is no leak {id}; check the id")).into()
    })
}
