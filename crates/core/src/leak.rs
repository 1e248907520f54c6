//! Leaks: what stands outside and should not, or does not and should. A look at
//! everything outside gives [`Found`] objects; held against the rows they give
//! [`Finding`]s; a finding that lasts becomes a [`Leak`], which stays open until
//! its object is gone.
//!
//! The resource loop records leaks too, of attempts that it knows: what it sees
//! at Deleted. Those name no place of their own, their attempt has it.

use serde_json::Value;
use uuid::Uuid;

use crate::closed_set::closed_set;
use crate::ids::{ClaimToken, ClusterId, LeakRecordId, ProvisionedResourceId};
use crate::phase::Phase;
use crate::time::Timestamp;

closed_set!(
    /// What a look at everything outside can find.
    FindingKind {
        /// Carries our installation id, and no row knows it.
        UnclaimedObject => "unclaimed_object",
        /// Its row is Deleted.
        ObjectOfDeleted => "object_of_deleted",
        /// Its row says that it is there, and it is not.
        MissingObject => "missing_object",
        /// Carries the id of an attempt whose object belongs elsewhere.
        DuplicateObject => "duplicate_object",
    }
);

impl FindingKind {
    /// Whether it becomes a leak record of its own. The object of a Deleted
    /// attempt is removed and recorded by the resource loop, in one place with
    /// the second proof of absence.
    pub const fn is_recorded(self) -> bool {
        !matches!(self, Self::ObjectOfDeleted)
    }

    /// Whether its attempt is looked at by the resource loop because of it.
    pub const fn wakes(self) -> bool {
        matches!(self, Self::ObjectOfDeleted | Self::MissingObject)
    }

    /// Whether the object may be removed on a person's word. No loop would: for
    /// all it knows, the database is the one that is wrong.
    pub const fn is_removable(self) -> bool {
        matches!(self, Self::UnclaimedObject | Self::DuplicateObject)
    }
}

/// Where an object stands on its cluster or root.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    pub namespace: String,
    pub name: String,
}

/// An object of this installation, as a look at everything outside found it.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub object_ref: ObjectRef,
    pub uid: String,
    /// `None` if it names no attempt that could exist.
    pub provisioned_resource_id: Option<ProvisionedResourceId>,
    /// Of whoever wrote it last.
    pub claim_token: Option<ClaimToken>,
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
    /// `None` while its project is placed nowhere.
    pub home: Option<(ClusterId, ObjectRef)>,
}

/// Something that does not agree with the rows, seen once.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The same for the same thing seen again.
    pub key: Uuid,
    pub kind: FindingKind,
    /// The attempt that it is about; the key where it names none.
    pub subject_id: Uuid,
    pub object_ref: ObjectRef,
    pub uid: Option<String>,
    pub evidence: Value,
}

/// A recorded leak.
#[derive(Debug, Clone, PartialEq)]
pub struct Leak {
    pub id: LeakRecordId,
    /// A [`FindingKind`], or the resource loop's word for what it saw.
    pub kind: String,
    /// The key of the finding; the resource loop's leaks have none.
    pub finding: Option<Uuid>,
    pub subject_id: Uuid,
    pub found_at: Timestamp,
    pub last_seen_at: Option<Timestamp>,
    pub cluster_id: Option<ClusterId>,
    /// Its name when it was found.
    pub cluster: Option<String>,
    pub object_ref: Option<ObjectRef>,
    pub uid: Option<String>,
    pub evidence: Value,
    pub removal: Option<Removal>,
    pub resolved: Option<Resolved>,
}

/// Somebody asked to have the object removed.
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
    /// Unknown where the resource loop resolved it.
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

    /// The attempt that it is about, where it names one.
    pub fn provisioned_resource_id(&self) -> Option<ProvisionedResourceId> {
        (self.finding != Some(self.subject_id)).then(|| ProvisionedResourceId::new(self.subject_id))
    }

    /// What a person does about it.
    pub fn remedy(&self) -> &'static str {
        match (self.finding_kind(), &self.removal) {
            _ if !self.is_open() => "nothing; it is over",
            (_, Some(_)) => "nothing; it is being removed",
            (Some(FindingKind::UnclaimedObject | FindingKind::DuplicateObject), None) => {
                "check whether anybody needs it; then `slipway leaks remove`"
            }
            (Some(FindingKind::MissingObject), None) => {
                "`slipway resource explain` says what keeps it from being made anew"
            }
            (Some(FindingKind::ObjectOfDeleted) | None, None) => {
                "wait: the resource loop removes it; if it stays, remove it by hand and `slipway leaks resolve`"
            }
        }
    }
}

/// All that a decision about a leak may know, its row locked.
#[derive(Debug, Clone)]
pub struct LeakSnapshot {
    pub now: Timestamp,
    pub leak: Leak,
    /// The row of the attempt that it is about, if there is one.
    pub claimant: Option<Claimant>,
}
