//! Definitions: the XRD and the Compositions of a blueprint, which make the kind
//! of its composites known to a cluster, and a role that lets our account handle
//! them. They are cluster-scoped. A cluster has one XRD of a blueprint, that of
//! the newest version, and a Composition for each version that is needed there.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::blueprint_version::CompositeType;
use crate::closed_set::closed_set;
use crate::ids::{BlueprintId, ClusterId, InstallationId, Revision};
use crate::time::Timestamp;

closed_set!(
    /// The progress of a blueprint's definitions on a cluster.
    DefinitionPhase {
        /// Nothing was tried yet.
        Pending => "Pending",
        /// They are being applied, or Crossplane has not established them yet.
        Applying => "Applying",
        /// All objects are there as published, and the kind can be used.
        Established => "Established",
        /// Something blocks them that does not go away by itself.
        Degraded => "Degraded",
    }
);

closed_set!(
    /// The kinds of objects that are installed. None of them is ever deleted:
    /// deleting an XRD would delete all composites of its kind.
    DefinitionKind {
        Xrd => "CompositeResourceDefinition",
        Role => "ClusterRole",
        Composition => "Composition",
    }
);

/// Identifies an object on a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DefinitionKey {
    pub kind: DefinitionKind,
    pub name: String,
}

/// The objects that a version is installed as, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionSet {
    /// The installation whose label they carry.
    pub installation: InstallationId,
    pub definition: DefinitionKey,
    pub role: DefinitionKey,
    pub composition: DefinitionKey,
    /// The Compositions of other versions that are needed beside it.
    pub others: Vec<DefinitionKey>,
    /// The API versions that its XRD serves.
    pub serves: BTreeSet<String>,
}

/// Who owns an object, by its labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// This installation, for the blueprint with this slug. An object without a
    /// slug was handed over to us by label, and we adopt it.
    Ours(Option<String>),
    /// Somebody else, as far as the object says who.
    Foreign(String),
}

/// An object that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedDefinition {
    pub owner: Owner,
    /// The version of the blueprint, from its label.
    pub version: Option<String>,
    /// It matches what was rendered, apart from what the server added.
    pub fits: bool,
    pub terminating: bool,
    /// Whether the kind of an XRD can be used, or why not.
    pub established: Result<(), String>,
    /// The API versions that an XRD serves.
    pub serves: BTreeSet<String>,
}

/// The result of reading one object by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DefinitionState {
    Absent,
    Seen(ObservedDefinition),
    /// Our account lacks the permission.
    Refused(String),
    /// The read failed; nothing is concluded from it.
    Unreadable(String),
}

/// What was observed of the objects of one blueprint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObservedDefinitions {
    pub objects: BTreeMap<DefinitionKey, DefinitionState>,
    /// The verbs that our account lacks on the composites, once checked.
    pub lacking: Option<Vec<String>>,
}

/// The definitions of a blueprint on a cluster, as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledDefinitions {
    pub cluster_id: ClusterId,
    pub blueprint_id: BlueprintId,
    /// The version that the last pass wanted there.
    pub wanted: String,
    /// The version whose XRD was found there; if it is the wanted one, with every Composition
    /// that is needed.
    pub found: Option<String>,
    pub phase: DefinitionPhase,
    pub problem: Option<String>,
    /// Since when it is in this phase.
    pub since: Timestamp,
    pub revision: Revision,
    pub updated_at: Timestamp,
}

/// A blueprint whose definitions a cluster needs: its newest version that
/// installs definitions and is not retired.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    pub now: Timestamp,
    pub cluster_id: ClusterId,
    pub blueprint_id: BlueprintId,
    pub slug: String,
    pub version: String,
    pub xrd: String,
    pub composition: String,
    /// What the Composition is installed as; the author's name for a version that an earlier
    /// Slipway published.
    pub composition_name: Option<String>,
    pub composite_type: CompositeType,
    /// Other versions of the kind whose Compositions must be there: those that can still be
    /// declared, and those that something on the cluster was made from.
    pub others: Vec<OtherVersion>,
    /// API versions of the kind that belong to a version not yet retired, or
    /// that something on the cluster was made in. The cluster must keep serving
    /// them.
    pub kept: BTreeSet<String>,
    pub definitions: Option<InstalledDefinitions>,
}

/// A version whose Composition is needed beside that of the newest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherVersion {
    pub version: String,
    pub composition: String,
    pub composition_name: String,
}

/// The definitions of a blueprint on a cluster, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionsView {
    pub cluster_id: ClusterId,
    pub cluster: String,
    /// The version that should be there now; `None` if none should any more.
    pub wanted: Option<String>,
    pub definitions: Option<InstalledDefinitions>,
}
