//! Progress of events: numbered, delivered, streamed. Read from the database on
//! a scrape, so without scrapes it costs nothing.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use slipway_app::ports::store;
use tokio::time::timeout;

use super::{By, add};
use crate::state::ServerState;

/// A scrape takes about ten seconds at most; unread values stay as they were.
const LIMIT: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct EventMetrics {
    streams: Gauge,
    last_position: Gauge,
    unrelayed: Gauge,
    relay_lag: Gauge<f64, AtomicU64>,
    /// By subscription; there is one per configured sink.
    subscription_lag: By<1, Gauge>,
    subscription_failures: By<1, Gauge>,
}

impl EventMetrics {
    #[rustfmt::skip]
    pub(super) fn register(to: &mut Registry) -> Self {
        Self {
            streams:               add(to, "slipway_event_streams", "Streams of events that are open at this replica"),
            last_position:         add(to, "slipway_event_last_position", "The highest position that an event was given"),
            unrelayed:             add(to, "slipway_events_unrelayed", "Events that are committed and have no position yet, counted up to 10,000"),
            relay_lag:             add(to, "slipway_event_relay_lag_seconds", "How long ago the oldest event without a position happened; 0 if there is none"),
            subscription_lag:      add(to, "slipway_subscription_lag_events", "Events that a subscription has not had yet"),
            subscription_failures: add(to, "slipway_subscription_failures", "Deliveries to a subscription that failed in a row"),
        }
    }

    pub(super) async fn refresh(&self, state: &ServerState) {
        self.streams.set(as_gauge(state.streams.open()));
        match timeout(LIMIT, self.read(state)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) if error.is_logged() => {}
            Ok(Err(error)) => tracing::warn!(%error, "the metrics of events are not up to date"),
            Err(_) => {
                tracing::debug!("the metrics of events are not up to date: no answer in time");
            }
        }
    }

    async fn read(&self, state: &ServerState) -> Result<(), store::Error> {
        let store = &state.context.stores;
        let backlog = store.events.outbox_backlog().await?;
        self.unrelayed.set(as_gauge(backlog.waiting));
        self.relay_lag.set(backlog.oldest.unwrap_or_default().as_secs_f64());
        self.last_position.set(store.events.event_span().await?.last);
        let subscriptions = store.events.subscription_list().await?;
        // A removed subscription must disappear from the metrics.
        self.subscription_lag.clear();
        self.subscription_failures.clear();
        for found in subscriptions {
            let labels = [("subscription", found.name.into())];
            let lag = found.last_position - found.position;
            self.subscription_lag.get_or_create(&labels).set(lag);
            self.subscription_failures.get_or_create(&labels).set(i64::from(found.failures));
        }
        Ok(())
    }
}

fn as_gauge(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}
