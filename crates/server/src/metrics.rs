//! Request metrics, and `/metrics`. Labels are bounded: the route is the
//! matched pattern, never the path, and all unknown methods share one value.

mod counts;
mod events;
mod loops;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry};
use slipway_app::Context;
use slipway_app::deletion::leaks;
use slipway_core::deletion::leak::FindingKind;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::operations::control::Mode;

use self::counts::CountMetrics;
use self::events::EventMetrics;
pub use self::loops::LoopMetrics;
use crate::error::Rejection;
use crate::state::ServerState;

const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// From half a millisecond, a read from memory, to eight seconds, longer than
/// anybody waits: 0.5 ms · 2^0 … 2^14.
const BUCKETS: (f64, f64, u16) = (0.0005, 2.0, 15);

/// Label names, with values from bounded sets.
type Labels<const N: usize> = [(&'static str, Cow<'static, str>); N];

/// A metric with N labels.
type By<const N: usize, M> = Family<Labels<N>, M>;
type Histograms<const N: usize> = Family<Labels<N>, Histogram, fn() -> Histogram>;

/// A scrape waits this long for the database.
const COUNT_LIMIT: Duration = Duration::from_secs(2);

/// The metrics of this process.
pub struct Metrics {
    registry: Registry,
    /// By method, route and class of status.
    requests: By<3, Counter>,
    seconds: Histograms<2>,
    rate_limited: Counter,
    open_leaks: By<1, Gauge>,
    modes: By<1, Gauge>,
    events: EventMetrics,
    counts: CountMetrics,
}

impl Metrics {
    /// Registers the server's metrics, and those of the loops. The loops report
    /// to the returned meter.
    #[rustfmt::skip]
    pub fn with_loops() -> (Self, Arc<LoopMetrics>) {
        let mut registry = Registry::default();
        let to = &mut registry;
        let loops = Arc::new(LoopMetrics::register(to));
        to.register("slipway_build", "The version of this process", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        let metrics = Self {
            requests:     add(to, "slipway_http_requests", "Requests answered, by method, route and class of status"),
            seconds:      add_histograms(to, "slipway_http_request_seconds", "Time from the request line to the answer, by method and route", || exponential(BUCKETS)),
            open_leaks:   add(to, "slipway_open_leaks", "Leaks that are open in this installation, by kind; absent while the database is"),
            modes:        add(to, "slipway_control_mode", "1 for the mode of the installation, 0 for the others; absent while the database is"),
            rate_limited: add(to, "slipway_http_rate_limited", "Requests refused because a key, a node or an address asked too often"),
            events: EventMetrics::register(to),
            counts: CountMetrics::register(to, Arc::clone(&loops)),
            registry,
        };
        (metrics, loops)
    }

    async fn show_mode(&self, context: &Context) {
        let asked =
            tokio::time::timeout(COUNT_LIMIT, context.stores.operations.control_fetch()).await;
        self.modes.clear();
        match asked {
            Ok(Ok(control)) => {
                let mode = control.mode();
                for name in Mode::NAMES {
                    let gauge = self.modes.get_or_create(&[("mode", name.into())]);
                    gauge.set(i64::from(name == mode.name()));
                }
            }
            Ok(Err(error)) if error.is_logged() => {}
            Ok(Err(error)) => tracing::warn!(%error, "the mode could not be read"),
            Err(_) => tracing::debug!("the mode could not be read in time"),
        }
    }

    /// Counts in the database, so that every replica shows the same. An unknown
    /// count is absent: a stale number would pass for a current one.
    async fn count_leaks(&self, context: &Context) {
        let counts = tokio::time::timeout(COUNT_LIMIT, leaks::open_counts(context)).await;
        self.open_leaks.clear();
        match counts {
            Ok(Ok(counts)) => {
                // Show zeros too, so that an increase from zero is visible.
                for kind in FindingKind::ALL {
                    self.open_leaks.get_or_create(&[("kind", kind.as_str().into())]).set(0);
                }
                for (kind, open) in counts {
                    let open = i64::try_from(open).unwrap_or(i64::MAX);
                    self.open_leaks.get_or_create(&[("kind", kind.into())]).set(open);
                }
            }
            Ok(Err(error)) if error.is_logged() => {}
            Ok(Err(error)) => tracing::warn!(%error, "open leaks could not be counted"),
            Err(_) => tracing::debug!("open leaks could not be counted in time"),
        }
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// Registers a metric.
fn add<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

fn add_histograms<const N: usize>(
    registry: &mut Registry,
    name: &str,
    help: &str,
    histogram: fn() -> Histogram,
) -> Histograms<N> {
    let metric = Histograms::new_with_constructor(histogram);
    registry.register(name, help, metric.clone());
    metric
}

fn exponential((start, factor, length): (f64, f64, u16)) -> Histogram {
    Histogram::new(exponential_buckets(start, factor, length))
}

/// Counts a request and how long it took.
pub(crate) async fn count(
    State(state): State<ServerState>,
    request: Request,
    next: Next,
) -> Response {
    let begun = Instant::now();
    let method = method_label(request.method());
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or(Cow::Borrowed("unmatched"), |path| path.as_str().to_owned().into());
    let response = next.run(request).await;
    if response.status() == StatusCode::TOO_MANY_REQUESTS {
        state.metrics.rate_limited.inc();
    }
    let status = status_label(response.status().as_u16());
    let seconds = begun.elapsed().as_secs_f64();
    let [method, route] = [("method", method.into()), ("route", route)];
    state.metrics.seconds.get_or_create(&[method.clone(), route.clone()]).observe(seconds);
    state.metrics.requests.get_or_create(&[method, route, ("status", status.into())]).inc();
    response
}

pub(crate) async fn show(State(state): State<ServerState>) -> Result<Response, Rejection> {
    let metrics = &state.metrics;
    // Concurrently: each waits for the database on its own, and a scrape times
    // out after ten seconds.
    tokio::join!(
        metrics.count_leaks(&state.context),
        metrics.show_mode(&state.context),
        metrics.events.refresh(&state),
        metrics.counts.refresh(&state),
    );
    let mut text = String::new();
    encode(&mut text, &state.metrics.registry)
        .map_err(|_| Refusal::new(ErrorKind::Internal, "the metrics could not be written"))?;
    Ok(([(CONTENT_TYPE, MEDIA_TYPE)], text).into_response())
}

fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

const fn status_label(status: u16) -> &'static str {
    match status {
        100..=199 => "1xx",
        200..=299 => "2xx",
        300..=399 => "3xx",
        400..=499 => "4xx",
        _ => "5xx",
    }
}
