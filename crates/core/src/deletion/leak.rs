//! Leaks: outside objects that should not exist, or missing ones that should. A
//! scan lists everything outside as [`Found`] objects; comparing them with the
//! rows gives [`Finding`]s; a finding that persists becomes a [`Leak`], which
//! stays open until a scan no longer finds it or a person resolves it.
//!
//! The resource loop also records leaks, of attempts it knows: objects that it
//! observes at Deleted. Those have no object reference; their attempt has it.

use serde_json::Value;
use uuid::Uuid;

use crate::broker::deletion_verification;
use crate::broker::phase::Phase;
use crate::closed_set::closed_set;
use crate::events::unreadable;
use crate::fleet::agent;
use crate::ids::{ClaimToken, ClusterId, GroupId, LeakRecordId, ProvisionedResourceId};
use crate::subject::{Subject, SubjectKind};
use crate::tenants::job;
use crate::time::Timestamp;
use crate::topology::owner::Owner;

closed_set!(
    /// What a scan can find.
    FindingKind {
        /// The object carries our installation id, and no row knows it.
        UnclaimedObject => "unclaimed_object",
        /// The row of the object is Deleted.
        ObjectOfDeleted => "object_of_deleted",
        /// The row expects an object, and there is none.
        MissingObject => "missing_object",
        /// The object names an attempt whose object belongs elsewhere.
        DuplicateObject => "duplicate_object",
    }
);

impl FindingKind {
    /// Whether the finding becomes a leak record of its own. The resource loop
    /// removes and records the object of a Deleted attempt, together with the
    /// deletion verification.
    pub const fn is_recorded(self) -> bool {
        !matches!(self, Self::ObjectOfDeleted)
    }

    /// Whether the finding wakes its attempt in the resource loop.
    pub const fn wakes(self) -> bool {
        matches!(self, Self::ObjectOfDeleted | Self::MissingObject)
    }

    /// Whether a person may have the object removed. No loop removes it by
    /// itself, because the database may be the one that is wrong.
    pub const fn is_removable(self) -> bool {
        matches!(self, Self::UnclaimedObject | Self::DuplicateObject)
    }
}

/// Where an object is on its cluster or root.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    pub namespace: String,
    pub name: String,
}

/// An object of this installation, as a scan found it.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub object_ref: ObjectRef,
    pub uid: String,
    /// `None` if the object names no attempt that could exist.
    pub provisioned_resource_id: Option<ProvisionedResourceId>,
    /// The claim token of its last writer.
    pub claim_token: Option<ClaimToken>,
    /// The group of servers whose label it carries.
    pub group: Option<GroupId>,
    /// For people: pid, folder and the like. No secret.
    pub evidence: Value,
}

/// What a row says about the object of its attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimant {
    pub id: ProvisionedResourceId,
    /// `None` for a phase that this version does not know; such a row claims
    /// its object like any other.
    pub phase: Option<Phase>,
    /// `None` while its project has no placement.
    pub home: Option<(ClusterId, ObjectRef)>,
}

/// A mismatch with the rows, seen once.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Equal if the same mismatch is found again.
    pub key: Uuid,
    pub kind: FindingKind,
    /// The attempt it is about; the finding itself, by its key, if it names none.
    pub subject: Subject,
    pub object_ref: ObjectRef,
    pub uid: Option<String>,
    pub evidence: Value,
}

/// A leak that a decision records: something outside that it could not prove gone.
#[derive(Debug, Clone, PartialEq)]
pub struct LeakRecord {
    pub id: LeakRecordId,
    pub kind: &'static str,
    pub subject: Subject,
    pub found_at: Timestamp,
    /// Where it was last; `None` where the attempt says so.
    pub last_known: Option<LastKnown>,
    pub evidence: Value,
}

/// The place of an object that may still exist, and its uid if one was ever observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastKnown {
    pub cluster_id: ClusterId,
    pub cluster: Option<String>,
    pub object_ref: Option<ObjectRef>,
    pub uid: Option<String>,
}

closed_set!(
    /// What a person gave up proving gone, see [`crate::broker::abandon`], or left outside
    /// on purpose, see [`crate::broker::orphan`].
    AbandonedKind {
        Composite => "abandoned_composite",
        /// A node that was registered then; its key is revoked, its machine may run.
        Node => "abandoned_node",
        /// A project namespace with everything that the project shared in it.
        Namespace => "abandoned_namespace",
        /// What a managed resource stood for in the cloud, kept on purpose.
        External => "orphaned_external",
    }
);

/// Every kind that a leak can have.
pub fn kinds() -> Vec<&'static str> {
    let found = FindingKind::ALL.iter().filter(|kind| kind.is_recorded());
    let found = found.map(|kind| kind.as_str());
    let abandoned = AbandonedKind::ALL.iter().map(|kind| kind.as_str());
    let observed = deletion_verification::KINDS.into_iter();
    let of_rooms = [unreadable::LEAK_KIND, agent::LEAK_KIND, job::LEAK_KIND];
    let observed = observed.chain(of_rooms);
    found.chain(abandoned).chain(observed).collect()
}

/// A recorded leak.
#[derive(Debug, Clone, PartialEq)]
pub struct Leak {
    pub id: LeakRecordId,
    /// A [`FindingKind`], or the resource loop's own word for what it observed.
    pub kind: String,
    /// The key of the finding; the resource loop's leaks have none.
    pub finding: Option<Uuid>,
    pub subject: Subject,
    pub found_at: Timestamp,
    pub last_seen_at: Option<Timestamp>,
    pub cluster_id: Option<ClusterId>,
    /// The name of the cluster when the leak was found.
    pub cluster: Option<String>,
    pub object_ref: Option<ObjectRef>,
    pub uid: Option<String>,
    pub evidence: Value,
    pub removal: Option<Removal>,
    pub resolved: Option<Resolved>,
}

/// A person's request to remove the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    pub at: Timestamp,
    pub by: String,
    pub reason: String,
}

/// How a leak ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    pub at: Timestamp,
    /// `None` if the resource loop resolved it.
    pub by: Option<String>,
    pub resolution: Option<String>,
}

impl Leak {
    pub const fn is_open(&self) -> bool {
        self.resolved.is_none()
    }

    pub fn finding_kind(&self) -> Option<FindingKind> {
        FindingKind::parse(&self.kind)
    }

    /// Whether a person recorded it by abandoning its subject.
    pub fn is_abandoned(&self) -> bool {
        AbandonedKind::parse(&self.kind).is_some()
    }

    /// Whether a job of a tenant left it behind.
    pub fn is_of_tenant(&self) -> bool {
        self.kind == job::LEAK_KIND
    }

    /// Whether what it is about was kept in the cloud on purpose.
    pub fn is_kept_on_purpose(&self) -> bool {
        AbandonedKind::parse(&self.kind) == Some(AbandonedKind::External)
    }

    /// The attempt it is about, if it names one.
    pub fn provisioned_resource_id(&self) -> Option<ProvisionedResourceId> {
        let Subject { kind, id } = self.subject;
        (kind == SubjectKind::ProvisionedResource).then(|| ProvisionedResourceId::new(id))
    }

    /// What a person can do about it.
    pub fn remedy(&self) -> &'static str {
        match (self.finding_kind(), &self.removal) {
            _ if !self.is_open() => "nothing; it is over",
            (_, Some(_)) => "nothing; it is being removed",
            (Some(FindingKind::UnclaimedObject | FindingKind::DuplicateObject), None) => {
                "check whether anybody needs it; then `slipway leaks remove`"
            }
            (Some(FindingKind::MissingObject), None) => {
                "`slipway resource explain` says what keeps it from being created again"
            }
            (None, None) if self.is_kept_on_purpose() => {
                "it is kept on purpose; adopt it or delete it by hand in the cloud (the evidence has its external name and a command to find it), then `slipway leaks resolve`"
            }
            (None, None) if self.is_abandoned() => {
                "check by hand whether it still exists and costs (a machine may outlive its cluster); then `slipway leaks resolve`"
            }
            (None, None) if self.kind == unreadable::LEAK_KIND => {
                "tell its readers what they missed (the evidence has the position); then `slipway leaks resolve`"
            }
            (None, None) if self.is_of_tenant() => {
                "`slipway tenant retry` takes it over, or decommission and purge the tenant, which removes it and proves it gone"
            }
            (Some(FindingKind::ObjectOfDeleted) | None, None) => {
                "wait: the resource loop removes it; if it stays, remove it by hand and `slipway leaks resolve`"
            }
        }
    }
}

/// Everything that a decision about a leak may know; the leak's row is locked.
#[derive(Debug, Clone)]
pub struct LeakSnapshot {
    pub now: Timestamp,
    pub leak: Leak,
    /// The row of the attempt it is about, if there is one.
    pub claimant: Option<Claimant>,
    /// The live group of servers that the object says it belongs to.
    pub owner: Option<Owner>,
}
