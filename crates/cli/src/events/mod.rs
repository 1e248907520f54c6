//! Events, as a list or as they happen, and their subscriptions.

pub(crate) mod event;

mod follow;
mod sse;
mod wakes;

pub(crate) use wakes::{Wake, Wakes};
