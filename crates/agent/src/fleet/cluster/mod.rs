//! A Kubernetes cluster: objects by server-side apply, and the inventory in ConfigMaps
//! of the agent's namespace.
//!
//! Whatever is deployed carries installation, agent and stack as labels, and object and
//! checksum as annotations. Nothing is written or deleted that another owner marked.

mod apply;
mod backend;
mod find;
mod health;
mod inventory;
mod marks;
mod remove;

pub(crate) use backend::ClusterBackend;
