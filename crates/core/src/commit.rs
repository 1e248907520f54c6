//! What a decision writes: rows, events, audit entries and wakes, as data. The
//! store writes all of it in the transaction that loaded the snapshot, or none
//! of it.

use std::time::Duration;

use crate::access::AccessWrite;
use crate::access::audit::AuditEntry;
use crate::blocker::Blocker;
use crate::broker::BrokerWrite;
use crate::catalog::CatalogWrite;
use crate::deletion::DeletionWrite;
use crate::error::{ErrorKind, Refusal};
use crate::event::Event;
use crate::files::FilesWrite;
use crate::fleet::FleetWrite;
use crate::ids::{ClaimToken, ProvisionedResourceId, Revision};
use crate::nodes::NodesWrite;
use crate::placement::PlacementWrite;
use crate::rollouts::RolloutsWrite;
use crate::subject::{Claimable, Subject};
use crate::tenants::TenantsWrite;
use crate::time::Timestamp;
use crate::topology::TopologyWrite;

/// What is written, by the room whose table it is; only that room's writer
/// knows the table. The rest is of all rooms. An update names the revision that
/// was read (the one in the aggregate) and gives the row the next one; if the
/// row was written meanwhile, the whole commit fails.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    Broker(BrokerWrite),
    Nodes(NodesWrite),
    Catalog(Box<CatalogWrite>),
    Placement(PlacementWrite),
    Deletion(DeletionWrite),
    Access(AccessWrite),
    Rollouts(RolloutsWrite),
    Files(FilesWrite),
    Fleet(Box<FleetWrite>),
    Tenants(Box<TenantsWrite>),
    Topology(Box<TopologyWrite>),
    /// All blockers of a subject; replaces the earlier set.
    BlockersReplace(Subject, Vec<Blocker>),
    /// A quiet state change: one more line of the subject's history. One that is
    /// announced is part of its audit entry instead, see [`AuditEntry::change`].
    HistoryAppend(StateChange),
    /// Releases the claim. Fails the commit if the claim was lost.
    Release(Release),
}

impl From<CatalogWrite> for Write {
    fn from(write: CatalogWrite) -> Self {
        Self::Catalog(Box::new(write))
    }
}

impl From<FleetWrite> for Write {
    fn from(write: FleetWrite) -> Self {
        Self::Fleet(Box::new(write))
    }
}

impl From<PlacementWrite> for Write {
    fn from(write: PlacementWrite) -> Self {
        Self::Placement(write)
    }
}

/// A subject enters a state. A commit has each state change once: in the audit entry
/// that announces it, or in a write of the history. The history of a subject is the
/// list of both, see [`Commit::state_changes`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateChange {
    pub subject: Subject,
    /// The revision that the write gives the subject. It numbers the lines of a
    /// history: with gaps, since not every write changes the state.
    pub revision: Revision,
    pub at: Timestamp,
    /// `None` for a new subject.
    pub from: Option<&'static str>,
    pub to: &'static str,
    pub why: String,
}

/// How a claim ends. If the row was woken since the claim, it is due at once,
/// whatever `recheck` says: a release cannot lose a wake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Release {
    pub subject: Claimable,
    pub claim_token: ClaimToken,
    pub recheck: Recheck,
    /// The new count of failed ticks in a row.
    pub failures: i32,
}

/// When the loop claims the row again if nothing wakes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recheck {
    Now,
    After(Duration),
    /// Only if woken.
    Never,
}

/// The record of a tick that the store can write without a lock, provided that
/// nothing the decision was based on has changed since it was read:
///
/// - the row of the attempt has the revision that was read,
/// - the claim it was read under is still held,
/// - nobody woke the row since that claim. Enrolment, leaving, the end of a
///   drain and force change the input of a decision without writing the row of
///   the attempt; each of them wakes the row in its own transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    attempt: ProvisionedResourceId,
    revision: Revision,
    commit: Commit,
}

impl Recorded {
    /// `None` for a commit that writes more than the tick's own row: that
    /// decision needs a lock.
    pub fn new(attempt: ProvisionedResourceId, revision: Revision, commit: Commit) -> Option<Self> {
        commit.is_plain_record_of(attempt).then_some(Self { attempt, revision, commit })
    }

    pub const fn attempt(&self) -> ProvisionedResourceId {
        self.attempt
    }

    /// The revision that was read.
    pub const fn revision(&self) -> Revision {
        self.revision
    }

    pub const fn commit(&self) -> &Commit {
        &self.commit
    }
}

/// Everything that one decision writes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Commit {
    pub writes: Vec<Write>,
    pub events: Vec<Event>,
    pub audit: Vec<AuditEntry>,
    /// Subjects whose next decision may have changed.
    pub wakes: Vec<Claimable>,
    /// The mode that the permit for this commit was given under. The store
    /// refuses the commit if the mode has changed since. `None` if it needs no
    /// permit.
    pub mode: Option<Revision>,
}

impl Commit {
    /// Adds the rows, events and entries of another one.
    pub fn join(&mut self, other: Self) {
        self.writes.extend(other.writes);
        self.events.extend(other.events);
        self.audit.extend(other.audit);
    }

    /// The commit of a loop, under the mode that its permit was given under.
    /// Refuses a registry write and the beginning of a teardown without a permit. What a
    /// loop only observed needs none.
    pub fn permitted(mut self, permit: Option<Revision>) -> Result<Self, Refusal> {
        let begins = |write: &Write| {
            // A teardown that begins revokes a token, if there is one to revoke.
            matches!(write, Write::Nodes(_) | Write::Deletion(DeletionWrite::DeletionInsert(_)))
        };
        if self.writes.iter().any(begins) {
            self.mode = Some(permit.ok_or_else(|| {
                let message = "a loop writes to the registry only with a permit; it decides again";
                Refusal::new(ErrorKind::RevisionStale, message)
            })?);
        }
        Ok(self)
    }

    /// The release, if there is nothing else; many can be written at once.
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

    /// The state changes of this commit, quiet and announced.
    pub fn state_changes(&self) -> impl Iterator<Item = &StateChange> {
        let quiet = self.writes.iter().filter_map(|write| match write {
            Write::HistoryAppend(change) => Some(change),
            _ => None,
        });
        quiet.chain(self.audit.iter().filter_map(|entry| entry.change.as_ref()))
    }

    /// Whether this is the record of a tick that writes only the row of its
    /// attempt and what reports on it: at most one state change of this attempt,
    /// quiet or announced by one event and one audit entry, and the release of the
    /// claim.
    fn is_plain_record_of(&self, attempt: ProvisionedResourceId) -> bool {
        let (mut updates, mut lines, mut seen, mut releases) = (0, 0, 0, 0);
        for write in &self.writes {
            match write {
                Write::Broker(BrokerWrite::AttemptUpdate(update)) if update.id() == attempt => {
                    updates += 1;
                }
                Write::HistoryAppend(line) if line.subject == attempt.into() => lines += 1,
                Write::Broker(BrokerWrite::ObservedReplace(of, _)) if *of == attempt => seen += 1,
                Write::Release(release) if release.subject == attempt.into() => releases += 1,
                _ => return false,
            }
        }
        let announced = match (&self.events[..], &self.audit[..]) {
            ([], []) => 0,
            ([event], [entry]) if is_plain_announcement_of(attempt, event, entry) => 1,
            _ => return false,
        };
        // Without a new revision, a state change could be written twice.
        releases == 1
            && updates <= 1
            && seen <= 1
            && lines + announced <= updates
            && self.wakes.is_empty()
            && self.mode.is_none()
    }

    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
            && self.events.is_empty()
            && self.audit.is_empty()
            && self.wakes.is_empty()
    }
}

/// Whether the entry announces a change of this attempt and has nothing else that the
/// event and the row of the attempt do not have.
fn is_plain_announcement_of(
    attempt: ProvisionedResourceId,
    event: &Event,
    entry: &AuditEntry,
) -> bool {
    let of_entry = |change: &StateChange| {
        change.subject == attempt.into() && change.at == entry.at && event.occurred_at == entry.at
    };
    entry.subject == attempt.into()
        && entry.change.as_ref().is_some_and(of_entry)
        && entry.project_id.is_some()
        && entry.reason.is_none()
        && entry.correlation_id.is_none()
        && event.subject == attempt.into()
        && event.project_id == entry.project_id
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::access::audit::{About, Actor};
    use crate::broker::event::{READY, announce};
    use crate::broker::phase::Phase;
    use crate::fixtures::{at, mk_attempt, mk_node, mk_snapshot};

    /// Only writes that the row of the attempt guards go without a lock.
    #[test]
    fn a_record_writes_its_own_row_and_nothing_else() {
        let attempt = mk_attempt(Phase::Enrolling);
        let (id, revision) = (attempt.id(), attempt.revision());
        let release = Write::Release(Release {
            subject: id.into(),
            claim_token: ClaimToken(1),
            recheck: Recheck::Now,
            failures: 0,
        });
        let of = |writes: Vec<Write>| {
            Recorded::new(id, revision, Commit { writes, ..Commit::default() }).is_some()
        };
        let seen = Write::Broker(BrokerWrite::ObservedReplace(id, Value::Null));
        assert!(of(vec![release.clone()]));
        assert!(of(vec![seen.clone(), release.clone()]));
        assert!(of(vec![Write::Broker(BrokerWrite::AttemptUpdate(attempt)), release.clone()]));
        assert!(!of(vec![seen]), "the claim is given back with it");
        assert!(!of(vec![release.clone(), release.clone()]));
        let resource = mk_snapshot(Phase::Ready).resource;
        for other in [
            Write::Nodes(NodesWrite::NodeUpdate(mk_node())),
            Write::Broker(BrokerWrite::ResourceUpdate(resource)),
            Write::BlockersReplace(id.into(), Vec::new()),
        ] {
            assert!(!of(vec![other.clone(), release.clone()]), "{other:?}");
        }
        let woken = Commit { writes: vec![release], wakes: vec![id.into()], ..Commit::default() };
        assert!(Recorded::new(id, revision, woken).is_none());
    }

    #[test]
    fn a_loop_writes_to_the_registry_under_the_mode_of_its_permit() {
        let registry = || Commit {
            writes: vec![Write::Nodes(NodesWrite::NodeUpdate(mk_node()))],
            ..Commit::default()
        };
        let refused = registry().permitted(None).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::RevisionStale);
        let permitted = registry().permitted(Some(Revision(4))).unwrap();
        assert_eq!(permitted.mode, Some(Revision(4)));
        let (id, revision) = (mk_attempt(Phase::Ready).id(), Revision::FIRST);
        assert!(Recorded::new(id, revision, permitted).is_none(), "it needs a transaction");
        let observed = Commit {
            writes: vec![Write::BlockersReplace(id.into(), Vec::new())],
            ..Commit::default()
        };
        assert_eq!(observed.clone().permitted(None), Ok(observed), "a phase needs no permit");
    }

    /// A state change is quiet or announced as a whole, and comes with the new row.
    #[test]
    fn a_record_has_its_state_change_once() {
        let attempt = mk_attempt(Phase::Enrolling);
        let (id, revision, now) = (attempt.id(), attempt.revision(), at(5));
        let release = Write::Release(Release {
            subject: id.into(),
            claim_token: ClaimToken(1),
            recheck: Recheck::Now,
            failures: 0,
        });
        let change = StateChange {
            subject: id.into(),
            revision: revision.next(),
            at: now,
            from: Some("Enrolling"),
            to: "Ready",
            why: String::new(),
        };
        let about = About::new(id).of(attempt.project_id()).at(revision.next());
        let entry = AuditEntry::new("resource.update", &Actor::new("loop:test"), about, now);
        let announced = Commit {
            writes: vec![Write::Broker(BrokerWrite::AttemptUpdate(attempt.clone())), release],
            events: vec![announce(READY, &attempt, revision.next(), now)],
            audit: vec![entry.clone().changing(change.clone())],
            ..Commit::default()
        };
        let line = Write::HistoryAppend(change.clone());
        let unannounced = Commit { events: vec![], audit: vec![], ..announced.clone() };
        let mut quiet = unannounced.clone();
        quiet.writes.push(line.clone());
        for commit in [&announced, &quiet] {
            assert_eq!(commit.state_changes().collect::<Vec<_>>(), [&change]);
            assert!(Recorded::new(id, revision, commit.clone()).is_some(), "{commit:?}");
        }
        let mut twice = announced.clone();
        twice.writes.push(line.clone());
        let mut both = quiet.clone();
        both.writes.push(line);
        let mut without_the_row = announced.clone();
        without_the_row.writes.remove(0);
        let half = Commit { audit: vec![], ..announced.clone() };
        let unsaid = Commit { events: vec![], ..announced.clone() };
        let bare = Commit { audit: vec![entry], ..announced.clone() };
        let late = StateChange { at: at(6), ..change };
        let mut later = announced.clone();
        later.audit[0].change = Some(late);
        let mut elsewhere = announced;
        elsewhere.events[0].project_id = None;
        for commit in [twice, both, without_the_row, half, unsaid, bare, later, elsewhere] {
            assert!(Recorded::new(id, revision, commit.clone()).is_none(), "{commit:?}");
        }
    }
}
