//! Access to a Kubernetes cluster, for everything that reads or writes objects
//! there. This crate knows objects and no domain: the caller decides what an
//! object means, and whether it may be written.
//!
//! * `access`: which kubeconfigs are accepted, and how their content is read.
//! * `connection`: the client, replaced when its credentials change, and the
//!   identity of the cluster behind it.
//! * `error`: classifies the refusals of an API server.
//! * `reachability`: logs when a cluster stops answering and when it is back.
//! * `objects`: get and list, each with a time limit.
//! * `writes`: create, update and delete, each bound to what was read.
//! * `discovery`: the version and the kinds that an API server serves.
//! * `index`, `watch`: facts about every object of one kind, kept in memory.

pub mod access;
mod connection;
mod discovery;
mod error;
mod index;
mod objects;
mod reachability;
mod watch;
mod writes;

pub use access::{Access, InvalidKubeconfig};
pub use connection::{Connection, require_identity};
pub use discovery::{Kinds, ServedKind};
pub use error::{Error, Reason};
pub use index::{Changes, Facts, Index, IndexState, object_key};
pub use kube::api::{ApiResource, DynamicObject, ObjectMeta};
pub use objects::{Listing, ObjectRef, Page, api_resource};
pub use watch::{Watch, WatchConfig};
pub use writes::{Terms, Updated, Version};
