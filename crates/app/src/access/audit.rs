//! Reading the audit, page by page, from either end.

use slipway_core::access::audit;
use slipway_core::catalog::project::Project;
use slipway_core::error::Refusal;
use slipway_core::ids::AuditEntryId;
use slipway_core::text::check_reference;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::port::{AuditFilter, AuditLine, AuditOrder};
use crate::kind;
use crate::ports::Listed;
use crate::ports::store::Page;
use crate::{Context, Error};

/// One page of what the caller reaches.
pub async fn list(
    context: &Context,
    caller: &Caller,
    filter: &AuditFilter,
    order: AuditOrder,
    page: Page<AuditEntryId>,
) -> Result<Listed<AuditLine>, Error> {
    authorise(caller, Operation::AuditRead)?;
    check(filter)?;
    if let Some(project) = &filter.project {
        kind::known::<Project>(context, caller, project).await?;
    }
    let filter = AuditFilter { within: caller.project, ..filter.clone() };
    Ok(context.stores.access.audit_list(&filter, order, page).await?)
}

fn check(filter: &AuditFilter) -> Result<(), Refusal> {
    for (field, text) in [
        ("actor", &filter.actor),
        ("verb", &filter.verb),
        ("kind", &filter.kind),
        ("project", &filter.project),
    ] {
        text.as_ref().map_or(Ok(()), |text| check_reference(field, text))?;
    }
    audit::check_filter(filter.actor.as_deref(), filter.verb.as_deref(), filter.kind.as_deref())?;
    match (filter.since, filter.until) {
        (Some(since), Some(until)) if until <= since => {
            Err(Refusal::invalid("until", "must be later than `since`"))
        }
        _ => Ok(()),
    }
}
