//! Reads deletions.

use slipway_core::deletion::record::Deletion;
use slipway_core::error::ErrorKind;
use slipway_core::ids::DeletionId;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::port::Owned;
use crate::access::reach::{not_found, reach};
use crate::deletion::port::{DeletionFilter, Members};
use crate::ports::Listed;
use crate::ports::store::Page;
use crate::{Context, Error};

pub async fn deletion(
    context: &Context,
    caller: &Caller,
    id: DeletionId,
) -> Result<Deletion, Error> {
    authorise(caller, Operation::DeletionRead)?;
    let missing = || not_found(ErrorKind::DeletionNotFound, "deletion", id);
    reach(context, caller, Owned::Deletion(id), missing).await?;
    let found = context.stores.deletion.deletion_fetch(id).await?;
    found.ok_or_else(missing)
}

/// Members that one answer shows.
const SHOWN: u32 = 100;

/// The same with its first members.
pub async fn deletion_with_members(
    context: &Context,
    caller: &Caller,
    id: DeletionId,
) -> Result<(Deletion, Members), Error> {
    let found = deletion(context, caller, id).await?;
    let members = context.stores.deletion.deletion_members(id, SHOWN).await?;
    Ok((found, members))
}

pub async fn deletions(
    context: &Context,
    caller: &Caller,
    filter: DeletionFilter,
    page: Page<DeletionId>,
) -> Result<Listed<Deletion>, Error> {
    authorise(caller, Operation::DeletionRead)?;
    let filter = DeletionFilter { own: caller.project, ..filter };
    Ok(context.stores.deletion.deletion_list(&filter, page).await?)
}
