//! InstalledDefinitions: what has a cluster know the kind of a blueprint's composites. Its
//! XRD and Composition, and a role that lets our account handle them. They are
//! of the whole cluster and named by themselves, so a blueprint has one version
//! there at a time.

use std::collections::{BTreeMap, BTreeSet};

use crate::blueprint::CompositeType;
use crate::closed_set::closed_set;
use crate::ids::{BlueprintId, ClusterId, InstallationId, Revision};
use crate::time::Timestamp;

closed_set!(
    /// How far a blueprint has come on a cluster.
    DefinitionPhase {
        /// Nothing was tried yet.
        Pending => "Pending",
        /// It is being put in place, or Crossplane has not taken it on yet.
        Applying => "Applying",
        /// All of it is there as published, and its kind can be used.
        Established => "Established",
        /// Something that does not go away by itself is in the way.
        Degraded => "Degraded",
    }
);

closed_set!(
    /// The kinds of objects that are delivered. None of them is ever deleted:
    /// with an XRD all composites of its kind would go.
    DefinitionKind {
        Xrd => "CompositeResourceDefinition",
        Role => "ClusterRole",
        Composition => "Composition",
    }
);

/// Which object. Unique on a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DefinitionKey {
    pub kind: DefinitionKind,
    pub name: String,
}

/// What a version is delivered as, by the names of its objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionSet {
    /// Whose label is put on them.
    pub installation: InstallationId,
    pub definition: DefinitionKey,
    pub role: DefinitionKey,
    pub composition: DefinitionKey,
    /// The API versions that its XRD serves.
    pub serves: BTreeSet<String>,
}

/// Whose an object is, by its labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// This installation's, for the blueprint with this slug. One without a
    /// slug was handed to us, and we take it.
    Ours(Option<String>),
    /// Somebody else's, as far as it says whose.
    Foreign(String),
}

/// An object that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedDefinition {
    pub owner: Owner,
    /// The version of the blueprint that it says it is of.
    pub version: Option<String>,
    /// It is what was rendered, whatever a server added to it.
    pub fits: bool,
    pub terminating: bool,
    /// What an XRD says of itself: that its kind can be used, or why not.
    pub established: Result<(), String>,
    /// The API versions that an XRD serves.
    pub serves: BTreeSet<String>,
}

/// What looking at one name came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DefinitionState {
    Absent,
    Seen(ObservedDefinition),
    /// Our account may not do that.
    Refused(String),
    /// Nothing is concluded from it.
    Unreadable(String),
}

/// What was seen of the objects of one blueprint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObservedDefinitions {
    pub objects: BTreeMap<DefinitionKey, DefinitionState>,
    /// What our account may not do with the composites, once it was asked.
    pub lacking: Option<Vec<String>>,
}

/// A blueprint on a cluster, as the row has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledDefinitions {
    pub cluster_id: ClusterId,
    pub blueprint_id: BlueprintId,
    /// The version that was to be there when it was last looked at.
    pub wanted: String,
    /// The version that was found there whole.
    pub found: Option<String>,
    pub phase: DefinitionPhase,
    pub problem: Option<String>,
    /// Since when it is in this phase.
    pub since: Timestamp,
    pub revision: Revision,
    pub updated_at: Timestamp,
}

/// A blueprint that a cluster is to know: its newest version that is to be
/// delivered and is not retired.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    pub now: Timestamp,
    pub cluster_id: ClusterId,
    pub blueprint_id: BlueprintId,
    pub slug: String,
    pub version: String,
    pub xrd: String,
    pub composition: String,
    pub composite_type: CompositeType,
    /// API versions of the kind that somebody could declare from, or that
    /// something there was made in. The cluster must go on serving them.
    pub kept: BTreeSet<String>,
    pub definitions: Option<InstalledDefinitions>,
}

/// A blueprint on a cluster, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionsView {
    pub cluster_id: ClusterId,
    pub cluster: String,
    /// The version that is to be there now; none if nothing is any more.
    pub wanted: Option<String>,
    pub definitions: Option<InstalledDefinitions>,
}
