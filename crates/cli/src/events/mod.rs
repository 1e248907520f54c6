//! Events, page by page or as they happen, and who gets every one of them.

pub(crate) mod event;

mod follow;
mod sse;
mod subscription;
