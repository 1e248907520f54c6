//! The management port: queries and actions on a management cluster about what
//! the resources of a project share there.

use std::collections::BTreeSet;
use std::fmt;

use async_trait::async_trait;
use serde_json::Value;
use slipway_core::catalog::blueprint_version::CompositeType;
use slipway_core::placement::cluster::ClusterAssignment;
use slipway_core::placement::rules::namespace::Removal;
use slipway_core::placement::rules::residents::Resident;
use slipway_core::placement::shared_objects::{Seen, SharedKey, SharedObjects};
use slipway_render::shared::SharedObject;

use crate::placement::definitions::Definitions;
use crate::ports::substrate::Error;

/// Identity and state of a cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterFacts {
    pub identity: String,
    /// Why no project can be placed there, if so.
    pub problem: Option<String>,
    /// Versions and known kinds, for display.
    pub facts: Value,
}

/// A management cluster. Actions are idempotent.
#[async_trait]
pub trait Management: Definitions + fmt::Debug + Send + Sync {
    /// Reads the identity of the cluster and checks that it has what is needed.
    async fn verify(&self) -> Result<ClusterFacts, Error>;

    /// Announces which kinds of composites may exist there, so that a scan misses none.
    fn expect(&self, kinds: &[CompositeType]);

    /// All shared objects of this installation, with the ProviderConfigs of
    /// these providers, from a few lists. A kind that cannot be listed is
    /// noted; only a cluster that is unreachable or has another identity is an
    /// error.
    async fn survey(
        &self,
        identity: Option<&str>,
        providers: &BTreeSet<String>,
    ) -> Result<SharedObjects, Error>;

    /// The object with this name, whoever owns it, read from the API server itself.
    async fn find(&self, key: &SharedKey) -> Result<Option<Seen>, Error>;

    /// Creates the object or updates it to what is rendered. Reads first;
    /// refuses one that is not ours. Each write is bound to what was read, so
    /// that one that arrives late overwrites nothing newer.
    async fn put(&self, object: &SharedObject) -> Result<Seen, Error>;

    /// Starts the deletion of the object as it was observed. An absent object is
    /// success; one that was written since, or has another uid, a conflict.
    async fn remove(&self, removal: &Removal) -> Result<(), Error>;

    /// Objects that hold the namespace of this assignment, at least one if there
    /// is any. An error if a kind cannot be listed: missing permission does not
    /// make a namespace empty.
    async fn residents(&self, assignment: &ClusterAssignment) -> Result<Vec<Resident>, Error>;
}
