//! HTTP. Our API under `/api/v1` ([`routes`]), in it Fleet's protocol
//! ([`fleet`]), the node protocol under `/v1` ([`nodes`], with errors of its
//! own), and probes and metrics for machines.
//!
//! This crate translates: a request into the call of one use-case, its result
//! into a document, a refusal into a status. It decides nothing, keeps no state
//! between two requests (the latest events that [`events`] caches for streams
//! are in the database too), and knows neither the database nor the loops.
//!
//! The path of a request: [`correlation`] gives it an id, [`metrics`] counts
//! it, the guard in [`routes`] admits its caller by the row, [`request`]
//! validates it, the handler in a domain module calls the application, and
//! [`error`] writes refusals.

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
mod files;
mod fleet;
mod nodes;
mod operations;
mod placement;
mod rollouts;
mod tenants;
mod topology;

mod health;
mod metrics;
mod openapi;
mod trace_parent;

pub use catalog::submitted_content;
pub use events::{EventStreams, StreamLimits, event_document};
pub use metrics::{LoopMetrics, Metrics};
pub use openapi::{document as openapi_document, document_schema, metadata_schema};
pub use rate::RateLimits;
pub use router::{TABLE, probe_router, router};
pub use routes::Route;
pub use serve::{Listening, Proxy, Tls, TlsError, TlsFiles, serve, serve_probes};
pub use state::{LoopsView, NodeSettings, ServerState};
