//! HTTP. Three protocols, three routers, each with its own error writer: ours
//! under `/api/v1` ([`api`]), the nodes' under `/v1` ([`plexd`]), and the
//! probes and metrics that machines ask for.
//!
//! This crate translates: a request into the call of one use-case, its answer
//! into a document, a refusal into a status. It decides nothing, keeps nothing
//! between two requests (the last events while somebody streams them, see
//! [`streams`], are in the database too), and knows neither the database nor the loops.
//!
//! Way of a request: [`correlation`] names it, [`metrics`] counts it, the
//! extractors in [`extract`] authenticate and check it, a handler calls the
//! application, and [`error`] writes what was refused.

mod router;
mod serve;
mod state;

mod correlation;
mod error;
mod extract;
mod once;
mod precondition;
mod query;
mod rate;

mod api;
mod openapi;
mod plexd;

mod health;
mod metrics;
mod streams;
mod trace_parent;

pub use api::{Route, TABLE, event_document};
pub use metrics::{LoopMetrics, Metrics};
pub use openapi::document as openapi_document;
pub use rate::RateLimits;
pub use router::router;
pub use serve::serve;
pub use state::{LoopsView, NodeSettings, ServerState};
pub use streams::{EventStreams, StreamLimits};
