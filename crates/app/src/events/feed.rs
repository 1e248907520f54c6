//! Reading events by position, and managing subscriptions.

use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::events::positions::check_cursor;
use slipway_core::ids::AuditEntryId;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::events::port::PositionedEvent;
use crate::events::port::Subscription;
use crate::ports::store::Page;
use crate::{Context, Error};

/// Events after a position. Refuses a cursor after which events are missing;
/// without a cursor, starts with the oldest that is kept.
pub async fn list(
    context: &Context,
    caller: &Caller,
    page: Page<i64>,
) -> Result<Vec<PositionedEvent>, Error> {
    authorise(caller, Operation::EventRead)?;
    if let Some(own) = caller.project {
        let events = context.stores.events.event_list_in(own, page).await?;
        if let Some(after) = page.after {
            check_cursor("cursor", after, context.stores.events.event_span_in(own).await?)?;
        }
        return Ok(events);
    }
    let events = context.stores.events.event_list(page).await?;
    // If the next position follows directly, there is no gap.
    let follows = |after: i64| events.first().is_some_and(|event| event.position == after + 1);
    if let Some(after) = page.after.filter(|after| !follows(*after)) {
        check_cursor("cursor", after, context.stores.events.event_span().await?)?;
    }
    Ok(events)
}

/// The position after which a stream begins. `field` is the caller's name for
/// it; without `after` the stream begins now.
pub async fn begin_stream(
    context: &Context,
    caller: &Caller,
    field: &str,
    after: Option<i64>,
) -> Result<i64, Error> {
    authorise(caller, Operation::EventRead)?;
    let span = context.stores.events.event_span().await?;
    let after = after.unwrap_or(span.last);
    let Some(own) = caller.project else {
        check_cursor(field, after, span)?;
        return Ok(after);
    };
    check_cursor(field, after, context.stores.events.event_span_in(own).await?)?;
    // What was pruned in between belonged to other projects.
    Ok(after.max(span.pruned))
}

pub async fn subscriptions(context: &Context, caller: &Caller) -> Result<Vec<Subscription>, Error> {
    authorise(caller, Operation::SubscriptionRead)?;
    Ok(context.stores.events.subscription_list().await?)
}

/// Removes a subscription whose sink is gone for good; until then events are kept for it.
pub async fn unsubscribe(context: &Context, caller: &Caller, name: &str) -> Result<(), Error> {
    let actor = authorise(caller, Operation::SubscriptionRemove)?;
    let audit = AuditEntryId::new(context.entropy.uuid());
    if context.stores.events.subscription_remove(name, audit, &actor).await? {
        return Ok(());
    }
    let shown: String = name.chars().filter(|c| !c.is_control()).take(128).collect();
    Err(Refusal::new(
        ErrorKind::SubscriptionNotFound,
        format!("there is no subscription `{shown}`; GET /api/v1/subscriptions names them"),
    )
    .into())
}
