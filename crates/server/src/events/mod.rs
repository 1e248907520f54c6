//! Events as a list and as a stream, and their subscriptions.

mod feed;
mod rows;
mod streams;
mod subscriptions;

pub use feed::document as event_document;
pub(crate) use rows::rows;
pub use streams::{EventStreams, StreamLimits};
