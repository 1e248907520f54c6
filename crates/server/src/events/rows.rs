//! The rows of events.

use slipway_app::access::authorise::Operation::*;
use slipway_wire::events::{Event, Subscription};

use super::{feed, subscriptions};
use crate::routes::{Route, delete, get};

#[rustfmt::skip]
pub(crate) fn rows() -> Vec<Route> {
    vec![
        get   ("/events",               EventRead,          feed::list,            "List events in the order of their positions")
            .page::<Event>().refuses(410),
        get   ("/events/stream",        EventRead,          feed::follow,          "Stream events")
            .stream("text/event-stream").query(&["after"]).refuses(410),
        get   ("/subscriptions",        SubscriptionRead,   subscriptions::list,   "List subscriptions")
            .all::<Subscription>(),
        delete("/subscriptions/{name}", SubscriptionRemove, subscriptions::remove, "Delete a subscription").nothing(),
    ]
}
