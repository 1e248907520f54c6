//! The substrate port: what an engine can do. Engines know no phase and decide
//! nothing; they report what exists and carry out actions.

use std::fmt;

use async_trait::async_trait;
use slipway_core::broker::holding::Holder;
use slipway_core::broker::observation::CompositeReport;
use slipway_core::broker::orphan::KeepOrder;
use slipway_core::catalog::blueprint_version::{CompositeType, Engine};
use slipway_core::deletion::leak::{Found, ObjectRef};
use slipway_core::ids::{ClaimToken, GroupId, ProvisionedResourceId};
use slipway_render::RenderedComposite;

/// Where a composite lives, and the identity that the cluster must have there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub provisioned_resource_id: ProvisionedResourceId,
    pub namespace: String,
    pub name: String,
    /// The kind of the object, for an engine that has several.
    pub composite_type: Option<CompositeType>,
    /// The identity of the cluster or root when it was registered. If it
    /// differs now, every observation is Unknown.
    pub substrate_uid: Option<String>,
}

/// Why an action failed. Never carries a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The object belongs to another installation, or is not the one that was read.
    #[error("{0}")]
    Conflict(String),
    /// A worker with a newer claim wrote the object; this one must stop.
    #[error("the object was written under claim {found:?}, which is newer than {ours:?}")]
    Superseded { ours: ClaimToken, found: ClaimToken },
    /// The provider has no capacity for it now; it may have some later.
    #[error("{0}")]
    NoCapacity(String),
    /// The substrate refused, or was not asked.
    #[error("{0}")]
    Failed(String),
    /// The substrate was asked and did not answer: the action may still take
    /// effect.
    #[error("{0}")]
    Unanswered(String),
    /// The mode of the installation changed before the request was sent; nothing
    /// was changed by it.
    #[error("the mode of the installation does not permit it")]
    Withheld,
}

/// The high-water mark of a cluster or root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HighWaterMark {
    /// `None` if there is none yet.
    pub value: Option<i64>,
    /// It was read for this call, and not earlier.
    pub fresh: bool,
}

/// Requests a page of the inventory of a cluster or root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InventoryRequest {
    /// As in [`Address`]: a different identity makes the answer an error.
    pub substrate_uid: Option<String>,
    /// The cursor of the previous page.
    pub after: Option<String>,
    /// Maximum number of objects in a page.
    pub limit: usize,
}

/// A page of the inventory of a cluster or root.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InventoryPage {
    /// Objects of this installation.
    pub found: Vec<Found>,
    /// How many objects belong to others. They are counted and never touched.
    pub foreign: u64,
    /// Objects that could not be read, and why. Their owner is unknown.
    pub unreadable: Vec<(ObjectRef, String)>,
    /// The cursor of the next page; `None` after the last.
    pub next: Option<String>,
}

/// Which part of a node's output is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputPart {
    /// So many lines at its end.
    Last(usize),
    /// From this byte on.
    From(u64),
}

/// The most of an output that one answer has, in bytes.
pub const OUTPUT_MAX: u64 = 256 << 10;

/// Whole lines of a node's output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeOutput {
    pub text: String,
    /// Where what comes later begins.
    pub next: u64,
    /// More was wanted than one answer has.
    pub is_cut: bool,
}

/// An engine. Every action is idempotent, and returns when the outside has
/// accepted it, not when it has finished: the next observation shows the rest.
#[async_trait]
pub trait Substrate: fmt::Debug + Send + Sync {
    fn engine(&self) -> Engine;

    /// The identity of the cluster or root behind this engine. Absence can only
    /// be proven on the same identity.
    async fn identity(&self) -> Result<String, Error>;

    /// One report per address, in their order, gathered in one pass. Cannot
    /// fail as a whole: what could not be read is Unknown.
    async fn observe(&self, addresses: &[Address]) -> Vec<CompositeReport>;

    /// Creates the composite or updates it to what is rendered, and reports the
    /// state afterwards, so that a composite that is ready at once needs no
    /// second observation. Reads first; refuses an object of another
    /// installation.
    async fn apply(&self, composite: &RenderedComposite) -> Result<CompositeReport, Error>;

    /// The high-water mark: the highest heartbeat counter written beside what
    /// this installation manages here. It outlives the database. Content that is
    /// no number is an error. Unless `fresh` is asked for, an engine may repeat an
    /// earlier answer.
    /// An engine that keeps no mark answers that there is none. Without a mark a
    /// restored database is not recognised, see
    /// `slipway_core::operations::control::heartbeat`.
    async fn high_water_mark_read(&self, _fresh: bool) -> Result<HighWaterMark, Error> {
        Ok(HighWaterMark { value: None, fresh: true })
    }

    /// A heartbeat has compared the mark that was read last with the database and
    /// committed the result. An engine whose cluster may be away acts only after
    /// this, and on no other cluster.
    async fn high_water_mark_compared(&self) {}

    /// Raises the mark to a counter that is committed in the database, or that
    /// is higher than a mark which proved a restore. Called only after a fresh
    /// read. The mark only grows: a lower counter changes nothing.
    async fn high_water_mark_write(&self, _heartbeat: i64) -> Result<(), Error> {
        Ok(())
    }

    /// Starts or continues the deletion of the object with this uid. An absent
    /// object is success, an object with another uid a conflict.
    async fn delete(&self, address: &Address, uid: &str) -> Result<(), Error>;

    /// The objects of this composite that are there, which hold its deletion, itself first,
    /// [`HOLDERS_MAX`](slipway_core::broker::holding::HOLDERS_MAX) at most. Empty if it is
    /// gone, and for an engine whose composites hold nothing else.
    async fn holders(&self, address: &Address) -> Result<Vec<Holder>, Error> {
        let _ = address;
        Ok(Vec::new())
    }

    /// What the node of this composite wrote; `None` for an engine that does not keep it.
    async fn output(
        &self,
        address: &Address,
        part: OutputPart,
    ) -> Result<Option<NodeOutput>, Error> {
        let _ = (address, part);
        Ok(None)
    }

    /// Tells managed resources to keep their external objects when they go. One that is
    /// gone, or is another object by now, needs no telling. Never taken back.
    async fn keep(&self, address: &Address, kept: &[KeepOrder]) -> Result<(), Error> {
        let _ = (address, kept);
        Err(Error::Failed(format!("the engine {} has no managed resources", self.engine())))
    }

    /// Waits until composites changed in a way that may change a decision, and
    /// returns their attempts. A lost change only waits for the next sweep. An
    /// engine that cannot watch never returns.
    async fn changed(&self) -> Vec<ProvisionedResourceId> {
        std::future::pending().await
    }

    /// A page of everything that exists there, in the order of its cursor. What
    /// cannot be listed is an error and never an empty page: an incomplete scan
    /// proves no absence.
    ///
    /// This default is for an engine that cannot list; a scan then finds
    /// nothing there and treats nothing as missing.
    async fn inventory(&self, request: &InventoryRequest) -> Result<InventoryPage, Error> {
        let _ = request;
        Err(Error::Failed(format!("the engine {} cannot list its objects", self.engine())))
    }

    /// The same with only what carries the label of this group of servers. This default goes
    /// through the whole inventory; an engine that selects by labels does better.
    async fn group_inventory(
        &self,
        group: GroupId,
        request: &InventoryRequest,
    ) -> Result<InventoryPage, Error> {
        let page = self.inventory(request).await?;
        let found = page.found.into_iter().filter(|found| found.group == Some(group)).collect();
        Ok(InventoryPage { found, ..page })
    }
}
