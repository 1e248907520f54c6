//! The management port: what a cluster that projects live on can be asked and
//! told about what their resources share there.

use std::collections::BTreeSet;
use std::fmt;

use async_trait::async_trait;
use serde_json::Value;
use slipway_core::blueprint::CompositeType;
use slipway_core::shared_objects::{Seen, SharedKey, SharedObjects};
use slipway_render::shared::SharedObject;

use super::definitions::Definitions;
use super::substrate::Error;

/// What a cluster is and has.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterFacts {
    pub identity: String,
    /// Why projects cannot live there, if they cannot.
    pub problem: Option<String>,
    /// Versions and which kinds it knows, for people.
    pub facts: Value,
}

/// A management cluster. Actions are idempotent.
#[async_trait]
pub trait Management: Definitions + fmt::Debug + Send + Sync {
    /// Asks the cluster what it is, and whether it has what is needed.
    async fn verify(&self) -> Result<ClusterFacts, Error>;

    /// Tells which kinds of composites may stand there, so that a look at
    /// everything misses none.
    fn expect(&self, kinds: &[CompositeType]);

    /// Everything shared of this installation, with the ProviderConfigs of these
    /// providers, by a few lists. A kind that cannot be listed is noted; only a
    /// cluster that cannot be reached, or is another one, is an error.
    async fn survey(
        &self,
        identity: Option<&str>,
        providers: &BTreeSet<String>,
    ) -> Result<SharedObjects, Error>;

    /// What is under this name, whosoever it is, by the server's own word.
    async fn find(&self, key: &SharedKey) -> Result<Option<Seen>, Error>;

    /// Creates the object or brings it to what is rendered. Looks up first;
    /// refuses one that is not ours.
    async fn put(&self, object: &SharedObject) -> Result<Seen, Error>;

    /// Begins the deletion of the object with this uid. An absent object is
    /// success, one with another uid a conflict.
    async fn remove(&self, key: &SharedKey, uid: &str) -> Result<(), Error>;

    /// What lives in a namespace besides what is shared there. An error if it
    /// cannot be said: a namespace is not empty because nobody may look.
    async fn residents(&self, namespace: &str) -> Result<Vec<String>, Error>;
}
