//! The substrate port: what an engine can do. Engines know no phase and decide
//! nothing; they report what is there and do what they are told.

use std::fmt;

use async_trait::async_trait;
use slipway_core::blueprint::{CompositeType, Engine};
use slipway_core::ids::{ClaimToken, ProvisionedResourceId};
use slipway_core::leak::{Found, ObjectRef};
use slipway_core::observation::CompositeReport;
use slipway_render::RenderedComposite;

/// Where a composite lives and what must be true there for an answer to count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub provisioned_resource_id: ProvisionedResourceId,
    pub namespace: String,
    pub name: String,
    /// What kind of object it is, where an engine has several.
    pub composite_type: Option<CompositeType>,
    /// The identity that the cluster or root had when it was registered.
    /// Another one there makes every observation Unknown.
    pub substrate_uid: Option<String>,
}

/// Why an engine could not do what it was told. Never carries a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The object there is another installation's, or not the one that was read.
    #[error("{0}")]
    Conflict(String),
    /// A worker with a newer claim wrote the object; this one must let go.
    #[error("the object was written under claim {found:?}, which is newer than {ours:?}")]
    Superseded { ours: ClaimToken, found: ClaimToken },
    /// The substrate could not be reached or refused.
    #[error("{0}")]
    Failed(String),
}

/// Asks for a page of everything that stands on a cluster or root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InventoryRequest {
    /// As in [`Address`]: another identity there makes the answer an error.
    pub substrate_uid: Option<String>,
    /// The cursor of the page before.
    pub after: Option<String>,
    /// Objects in a page, at most.
    pub limit: usize,
}

/// A page of everything that stands on a cluster or root.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InventoryPage {
    /// Objects of this installation.
    pub found: Vec<Found>,
    /// How many belong to others. They are counted and never touched.
    pub foreign: u64,
    /// Objects that could not be read, and why. Whose they are is not known.
    pub unreadable: Vec<(ObjectRef, String)>,
    /// Where the next page begins; none after the last.
    pub next: Option<String>,
}

/// An engine. Every action is idempotent, and returns when the outside has
/// been told, not when it has finished: the next observation shows the rest.
#[async_trait]
pub trait Substrate: fmt::Debug + Send + Sync {
    fn engine(&self) -> Engine;

    /// The identity of the cluster or root behind this engine, by which a
    /// later absence is proven.
    async fn identity(&self) -> Result<String, Error>;

    /// One report per address, in their order, gathered in one pass. Cannot
    /// fail as a whole: what could not be read is Unknown.
    async fn observe(&self, addresses: &[Address]) -> Vec<CompositeReport>;

    /// Creates the composite or brings it to what is rendered, and answers what
    /// is there then: what is up at once need not be looked at again to be
    /// known up. Looks up first; refuses an object of another installation.
    async fn apply(&self, composite: &RenderedComposite) -> Result<CompositeReport, Error>;

    /// The high-water mark: the highest heartbeat that was written beside what this
    /// installation manages here, and that survives its database; none if there
    /// is none yet, or if this engine keeps none. Without a mark a restored
    /// database is not recognised, see `slipway_core::rules::control::heartbeat`.
    async fn high_water_mark_read(&self) -> Result<Option<i64>, Error> {
        Ok(None)
    }

    /// Raises the mark to a heartbeat that is committed in the database. Called with
    /// every heartbeat, after the mark was compared, so a mark that is known to
    /// be high enough costs no request. It only grows: a lower heartbeat than is
    /// there changes nothing.
    async fn high_water_mark_write(&self, _beat: i64) -> Result<(), Error> {
        Ok(())
    }

    /// Begins or continues the deletion of the object with this uid. An absent
    /// object is success, an object with another uid a conflict.
    async fn delete(&self, address: &Address, uid: &str) -> Result<(), Error>;

    /// Waits until composites changed in a way that may change a decision, and
    /// names their attempts. Lost ones cost a sweep, never more; an engine that
    /// cannot watch never answers.
    async fn changed(&self) -> Vec<ProvisionedResourceId> {
        std::future::pending().await
    }

    /// A page of everything that stands there, in the order of its cursor. What
    /// cannot be listed is an error and never an empty page: a look that missed
    /// something proves nothing gone.
    ///
    /// An engine that cannot list says so by this default; nothing is found
    /// there, and nothing is held to be missing.
    async fn inventory(&self, request: &InventoryRequest) -> Result<InventoryPage, Error> {
        let _ = request;
        Err(Error::Failed(format!("the engine {} cannot list its objects", self.engine())))
    }
}
