//! Whether something is within the project of a caller.

use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::ResourceId;

use crate::access::authorise::Caller;
use crate::access::port::Owned;
use crate::ports::store;
use crate::{Context, Error};

/// Refuses a resource out of the caller's reach as if it did not exist. Called
/// before anything else, also before a change: a resource never changes its
/// project, so the answer stays true.
pub(crate) async fn reach_resource(
    context: &Context,
    caller: &Caller,
    id: ResourceId,
) -> Result<(), Error> {
    // The same text as the store's answer for a missing resource.
    let unknown = || store::Error::NotFound { kind: ResourceId::KIND }.into();
    reach(context, caller, Owned::Resource(id), unknown).await
}

/// Costs nothing for a caller that reaches everything.
pub(crate) async fn reach(
    context: &Context,
    caller: &Caller,
    owned: Owned,
    missing: impl FnOnce() -> Error + Send,
) -> Result<(), Error> {
    let Some(own) = caller.project else { return Ok(()) };
    match context.stores.access.project_of(owned).await? {
        Some(project) if project == own => Ok(()),
        _ => Err(missing()),
    }
}

pub(crate) fn not_found(error: ErrorKind, kind: &str, id: impl std::fmt::Display) -> Error {
    Refusal::new(error, format!("there is no {kind} {id}; check the id")).into()
}
