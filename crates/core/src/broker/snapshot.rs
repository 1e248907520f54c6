//! Snapshots: everything that a decision may know, loaded under lock in the
//! transaction that will write it. `now` is the database's clock, read after
//! the lock was acquired.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::blocker::Blocker;
use crate::broker::BrokerWrite;
use crate::broker::attempt::ProvisionedResource;
use crate::broker::orphan::KeepOrder;
use crate::broker::phase::{NodeFact, Phase};
use crate::broker::resource::Resource;
use crate::catalog::blueprint_version::{BlueprintVersion, MeshRole};
use crate::commit::{Commit, Write};
use crate::deletion::record::Deletion;
use crate::ids::{ClaimToken, CloudCredentialId, CloudId, ProjectId, ResourceId};
use crate::nodes::NodesWrite;
use crate::nodes::node::Node;
use crate::nodes::token::BootstrapToken;
use crate::placement::namespace::Placement;
use crate::time::Timestamp;
use crate::topology::next::Waiting;

/// The field of an observation that says since when an update waits. It is kept there
/// because only the record of a tick that read the updated row may take it away.
pub(crate) const UPDATE_PENDING: &str = "update_pending_since";

/// A resource with its current attempt and everything related to it.
#[derive(Debug, Clone)]
pub struct ResourceSnapshot {
    pub now: Timestamp,
    pub resource: Resource,
    pub attempt: ProvisionedResource,
    /// The highest number that an attempt of the resource has.
    pub latest: i32,
    /// The second attempt, if there are two: the one in use, or the one beside it. Its own
    /// `other` is `None`.
    pub other: Option<Box<ResourceSnapshot>>,
    pub blueprint: Arc<BlueprintVersion>,
    /// `None` if the project is not (or no longer) assigned to a cluster.
    pub placement: Option<Placement>,
    /// The cloud it is made in. Loaded for engine crossplane only: the others
    /// do not need it.
    pub provider: Option<Arc<ProviderFacts>>,
    /// The API version in which Crossplane reads the composites of its kind on its cluster, if
    /// Slipway installed the kind there. Loaded with `provider`.
    pub read_as: Option<String>,
    /// The token recorded on the attempt.
    pub token: Option<BootstrapToken>,
    /// The token whose hash this was found by, if it is another one.
    pub presented: Option<BootstrapToken>,
    /// The node that enrolled last for this attempt.
    pub node: Option<Node>,
    pub deletion: Option<Deletion>,
    pub blockers: Vec<Blocker>,
    pub claim_token: ClaimToken,
    /// Ticks in a row whose action failed.
    pub failures: i32,
    /// The last recorded observation, for people.
    pub observed: Option<Value>,
    /// When the loop claims the row at the latest.
    pub due_at: Option<Timestamp>,
    /// The managed resources that are told to keep their external objects before the
    /// composite goes, see [`crate::broker::orphan`].
    pub kept: Vec<KeepOrder>,
    /// Of a server that nothing was made for yet: what its group depends on and is not there.
    pub waits_for: Vec<Waiting>,
}

impl ResourceSnapshot {
    /// The blockers as people see them. A blocker that lasts is not rewritten
    /// with every tick, so its next retry is the `due_at` of the row.
    pub fn blockers_shown(&self) -> Vec<Blocker> {
        let shown = |blocker: &Blocker| Blocker { next_retry_at: self.due_at, ..blocker.clone() };
        self.blockers.iter().map(shown).collect()
    }

    /// Since when the last recorded observation has been the same.
    pub fn observed_since(&self) -> Option<Timestamp> {
        self.observed.as_ref()?.get("since")?.as_str()?.parse().ok()
    }

    /// Since when an update waits to reach the substrate. The observation of a tick after
    /// it ends that, see [`crate::broker::record`].
    pub fn update_pending_since(&self) -> Option<Timestamp> {
        self.observed.as_ref()?.get(UPDATE_PENDING)?.as_str()?.parse().ok()
    }

    /// The observation without that, which is shown beside it.
    pub fn observed_shown(&self) -> Option<Value> {
        let mut observed = self.observed.clone()?;
        let fields = observed.as_object_mut()?;
        fields.remove(UPDATE_PENDING);
        (!fields.is_empty()).then_some(observed)
    }

    /// The observation from now on: an update changed what the substrate should be.
    pub(crate) fn with_update_pending(&self) -> Value {
        let mut observed = self.observed.clone().unwrap_or_default();
        if observed.get(UPDATE_PENDING).is_none() {
            observed[UPDATE_PENDING] = json!(self.now);
        }
        observed
    }

    /// Whether nobody checks the observation any more: the loop has given the row up, or did
    /// not claim it `within` this time.
    pub fn observed_stale(&self, within: Duration) -> bool {
        let checked = match self.due_at {
            Some(due) => self.now.since(due) <= within,
            None => self.attempt.phase() == Phase::Deleted,
        };
        self.observed.is_some() && !checked
    }

    /// What the registry says about the node that this attempt expects.
    pub fn node_fact(&self) -> NodeFact {
        match (self.blueprint.mesh_role, &self.node) {
            (MeshRole::Standalone, _) => NodeFact::NotExpected,
            (MeshRole::Node, Some(node)) if node.is_registered() => NodeFact::Registered,
            (MeshRole::Node, _) => NodeFact::Absent,
        }
    }

    /// The snapshot that would be read after this commit, limited to what the
    /// loop itself commits: the attempt, its token and its node.
    #[must_use]
    pub fn after(&self, commit: &Commit) -> Self {
        let mut after = self.clone();
        for write in &commit.writes {
            match write {
                Write::Broker(BrokerWrite::AttemptUpdate(attempt))
                    if attempt.id() == self.attempt.id() =>
                {
                    after.attempt = attempt.written();
                }
                Write::Nodes(NodesWrite::NodeUpdate(node)) => {
                    after.node = Some(Node { revision: node.revision.next(), ..node.clone() });
                }
                _ => {}
            }
        }
        let current = after.attempt.bootstrap_token_id();
        for write in &commit.writes {
            if let Write::Nodes(NodesWrite::TokenInsert(token) | NodesWrite::TokenUpdate(token)) =
                write
                && Some(token.id) == current
            {
                after.token = Some(token.clone());
            }
        }
        after
    }
}

/// A cloud and its credential, as far as rendering needs them: coordinates,
/// never a value.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderFacts {
    pub cloud_id: CloudId,
    /// What blueprints name as their provider kind.
    pub provider: String,
    pub endpoint: Map<String, Value>,
    pub credential_id: CloudCredentialId,
    pub kv_mount: String,
    pub kv_path: String,
    /// The labels in effect, by their keys.
    pub labels: BTreeMap<String, LabelFact>,
}

/// A label in effect, and whether it becomes a cloud tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelFact {
    pub value: String,
    pub propagate: bool,
}

/// What a declaration is checked against, with the project row locked. Each
/// part is `None` where the store has no such row.
#[derive(Debug, Clone)]
pub struct DeclareSnapshot {
    pub now: Timestamp,
    pub project: Option<ProjectId>,
    /// The project is being deleted, or will be: nothing new may be put into it.
    pub project_leaving: bool,
    pub blueprint: Option<BlueprintVersion>,
    /// The version is retired: nothing new may be made from it.
    pub blueprint_retired: bool,
    pub credential: Option<CredentialView>,
    /// The credentials that the project may use; tells "none named and none
    /// available" from "name one of these".
    pub assigned_credentials: Vec<String>,
    pub placement: Option<Placement>,
    /// The resource, not deleted, that has the handle.
    pub holder: Option<Uuid>,
    /// A resource of the project, not deleted, that uses the shared ProviderConfig of the
    /// same provider, or is about to, with another credential.
    pub conflict: Option<CredentialConflict>,
}

impl DeclareSnapshot {
    /// What a key sees that reaches `own` and no other project. Credentials
    /// belong to the installation: the key sees those assigned to its project.
    #[must_use]
    pub fn within(&self, own: ProjectId) -> Self {
        let mut seen = self.clone();
        seen.project = self.project.filter(|project| *project == own);
        seen.credential = seen.credential.filter(|credential| credential.assigned);
        seen
    }
}

/// A resource that uses another credential of the same provider, through the shared
/// ProviderConfig.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialConflict {
    pub resource_id: ResourceId,
    pub credential: String,
}

/// A credential as the broker sees it: coordinates, never a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialView {
    pub id: CloudCredentialId,
    pub name: String,
    pub cloud_id: CloudId,
    /// `None` if the credential's cloud is gone.
    pub provider: Option<String>,
    pub assigned: bool,
    pub kv_mount: String,
    pub kv_path: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocker::BlockerCode;
    use crate::broker::phase::Phase;
    use crate::fixtures::{at, mk_snapshot};

    #[test]
    fn a_lasting_blocker_shows_the_next_look_and_not_the_first() {
        let mut snapshot = mk_snapshot(Phase::Provisioning);
        snapshot.blockers.push(Blocker {
            code: BlockerCode::ApplyFailed,
            message: String::new(),
            since: at(900),
            evidence: Value::Null,
            next_retry_at: Some(at(901)),
        });
        snapshot.due_at = Some(at(1_030));
        assert_eq!(snapshot.blockers_shown()[0].next_retry_at, Some(at(1_030)));
        assert_eq!(snapshot.blockers_shown()[0].since, at(900));
        snapshot.due_at = None;
        assert_eq!(snapshot.blockers_shown()[0].next_retry_at, None, "nothing is tried again");
    }
}
