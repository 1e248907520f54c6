//! HTTP. Three protocols, three routers, each with its own error writer: ours
//! under `/api/v1` ([`routes`]), the nodes' under `/v1` ([`nodes`]), and the
//! probes and metrics that machines ask for.
//!
//! This crate translates: a request into the call of one use-case, its answer
//! into a document, a refusal into a status. It decides nothing, keeps nothing
//! between two requests (the last events while somebody streams them, see
//! [`events`], are in the database too), and knows neither the database nor the
//! loops.
//!
//! Way of a request: [`correlation`] names it, [`metrics`] counts it, the guard
//! in [`routes`] admits its caller by the row, [`request`] checks it, the handler
//! in one of the rooms calls the application, and [`error`] writes what was
//! refused.

mod router;
mod serve;
mod state;

mod correlation;
mod error;
mod rate;
mod request;
mod routes;

mod access;
mod broker;
mod catalog;
mod deletion;
mod events;
mod nodes;
mod operations;
mod placement;

mod health;
mod metrics;
mod openapi;
mod trace_parent;

pub use events::{EventStreams, StreamLimits, event_document};
pub use metrics::{LoopMetrics, Metrics};
pub use openapi::document as openapi_document;
pub use rate::RateLimits;
pub use router::router;
pub use routes::{Route, TABLE};
pub use serve::serve;
pub use state::{LoopsView, NodeSettings, ServerState};
