//! What decisions write to the broker's tables.

use serde_json::Value;

use crate::broker::attempt::{Failure, ProvisionedResource};
use crate::broker::orphan::KeepOrder;
use crate::broker::resource::Resource;
use crate::catalog::label::LabelKey;
use crate::ids::{ProjectId, ProvisionedResourceId};

/// One row, or a wake of many. An update names the revision in the aggregate.
#[derive(Debug, Clone, PartialEq)]
pub enum BrokerWrite {
    ResourceInsert(Resource),
    ResourceUpdate(Resource),
    AttemptInsert(ProvisionedResource),
    AttemptUpdate(ProvisionedResource),
    /// The last observation, for people; does not count as a write of the row.
    ObservedReplace(ProvisionedResourceId, Value),
    /// How the attempt failed; written once and kept.
    FailureRecord(ProvisionedResourceId, Failure),
    /// The managed resources that are told to keep their external objects; does not count
    /// as a write of the row.
    KeptReplace(ProvisionedResourceId, Vec<KeepOrder>),
    /// Ends the claim that a worker may have, and leaves nothing due until something
    /// wakes the row.
    ClaimEnd(ProvisionedResourceId),
    /// Wakes every attempt whose composite these labels are rendered into.
    LabelledWake(Labelled),
}

/// Whose labels changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Labelled {
    /// The resources of this project.
    Project(ProjectId),
    /// The resources with this label in effect.
    Label(LabelKey),
}
