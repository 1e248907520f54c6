//! Events: the feed that clients read, subscriptions, and the sink that the
//! relay writes to.

pub mod port;
pub mod sink;

pub mod feed;
