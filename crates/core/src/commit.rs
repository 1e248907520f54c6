//! What a decision writes: rows, events, audit entries and wakes, as data. The
//! store writes all of it in the transaction that loaded the snapshot, or none
//! of it.

use std::time::Duration;

use serde_json::Value;

use crate::audit::AuditEntry;
use crate::blocker::Blocker;
use crate::catalog::CatalogWrite;
use crate::deletion::Deletion;
use crate::event::Event;
use crate::ids::{ClaimToken, LeakRecordId, ProvisionedResourceId};
use crate::node::Node;
use crate::phase::Phase;
use crate::provisioned_resource::ProvisionedResource;
use crate::resource::Resource;
use crate::time::Timestamp;
use crate::token::BootstrapToken;

/// One row to be written. Updates name the revision that was read (the one in
/// the aggregate) and give the row the next one; a row that moved meanwhile
/// fails the whole commit.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    ResourceInsert(Resource),
    ResourceUpdate(Resource),
    AttemptInsert(ProvisionedResource),
    AttemptUpdate(ProvisionedResource),
    TokenInsert(BootstrapToken),
    TokenUpdate(BootstrapToken),
    NodeInsert(Node),
    NodeUpdate(Node),
    DeletionInsert(Deletion),
    DeletionUpdate(Deletion),
    /// The whole set of blockers of an attempt, replacing what was there.
    BlockersReplace(ProvisionedResourceId, Vec<Blocker>),
    /// One more line of the attempt's history; the store numbers it.
    HistoryAppend {
        attempt: ProvisionedResourceId,
        at: Timestamp,
        from: Option<Phase>,
        to: Phase,
        why: String,
    },
    /// The last observation, for people; does not count as a write of the row.
    ObservedReplace(ProvisionedResourceId, Value),
    /// Once per id; one that was resolved and is seen again is open again.
    LeakInsert(LeakRecord),
    /// What the loop found of this attempt is proven gone: its open leak records
    /// are resolved, now.
    LeaksResolve(ProvisionedResourceId),
    /// A row of the catalog.
    Catalog(Box<CatalogWrite>),
    /// Gives the claim back. Fails the commit if the claim is no longer held.
    Release(Release),
}

/// How a claim ends. If `wake` moved since the claim the row is due at once,
/// whatever `recheck` says: a release cannot lose a wake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Release {
    pub attempt: ProvisionedResourceId,
    pub claim_token: ClaimToken,
    pub recheck: Recheck,
    /// The new count of failed ticks in a row.
    pub failures: i32,
}

/// When the loop looks again if nothing wakes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recheck {
    Now,
    After(Duration),
    /// Only if woken.
    Never,
}

/// Something outside that we could not prove gone.
#[derive(Debug, Clone, PartialEq)]
pub struct LeakRecord {
    pub id: LeakRecordId,
    pub kind: &'static str,
    pub subject_id: ProvisionedResourceId,
    pub found_at: Timestamp,
    pub evidence: Value,
}

/// Everything that one decision writes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Commit {
    pub writes: Vec<Write>,
    pub events: Vec<Event>,
    pub audit: Vec<AuditEntry>,
    /// Attempts whose next decision may now be another one.
    pub wakes: Vec<ProvisionedResourceId>,
}

impl Commit {
    /// Nothing but giving the claim back; can be done for many rows at once.
    pub fn only_release(&self) -> Option<Release> {
        match self.writes[..] {
            [Write::Release(release)]
                if self.events.is_empty() && self.audit.is_empty() && self.wakes.is_empty() =>
            {
                Some(release)
            }
            _ => None,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
            && self.events.is_empty()
            && self.audit.is_empty()
            && self.wakes.is_empty()
    }
}
