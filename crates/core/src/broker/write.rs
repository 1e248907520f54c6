//! What decisions write to the broker's tables.

use serde_json::Value;

use crate::broker::attempt::{Failure, ProvisionedResource};
use crate::broker::resource::Resource;
use crate::ids::ProvisionedResourceId;

/// One row. An update names the revision in the aggregate.
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
    /// Ends the claim that a worker may have, and leaves nothing due until something
    /// wakes the row.
    ClaimEnd(ProvisionedResourceId),
}
