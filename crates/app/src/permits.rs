//! Checks the mode before every outside action and every write of a loop to the
//! registry. Knows the last mode that this process read, and what runs under which
//! mode.
//!
//! *Guarantees:* a permit is given only on a mode that was read from the database
//! no longer than [`Permits::FRESH`] ago, by a clock that keeps running while the
//! process is stopped. [`Permits::acknowledged`] tells when this process has no
//! permit left from before a mode.
//! *Caveat:* the use of a permit is a second step. A registry write names the mode
//! of its permit and the store refuses it under another
//! ([`slipway_core::commit::Commit::mode`]); an engine asks immediately before each
//! request ([`ActionPermits`]).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use slipway_core::ids::Revision;
use slipway_core::operations::control::{Control, Mode};

use crate::ports::Stores;
use crate::ports::store::Error;
use crate::ports::substrate::Error as SubstrateError;

/// A mode and the revision that it has in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownMode {
    pub revision: Revision,
    pub mode: Mode,
}

impl From<&Control> for KnownMode {
    fn from(control: &Control) -> Self {
        Self { revision: control.revision, mode: control.mode() }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct Permits {
    inner: Mutex<Inner>,
    /// Locked while the mode is read: of many actions that need it at once, one
    /// queries the database.
    reading: tokio::sync::Mutex<()>,
    /// Locked during a heartbeat: each compares the marks that it read itself.
    pub(crate) heartbeat: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Inner {
    /// When the read began, and its result.
    known: Option<(Instant, KnownMode)>,
    under_way: BTreeMap<Revision, usize>,
    /// Requests without an answer, and until when each may land.
    unanswered: Vec<(Revision, Instant)>,
    /// Counts the starts and the ends of actions and registry writes.
    activity: u64,
    /// The counter that the high-water marks must reach, and the activity that
    /// it covers.
    target: Option<(u64, i64)>,
}

impl Permits {
    /// Short enough that a freeze applies before a person has read the answer,
    /// long enough that a busy loop reads only a few small rows a second.
    pub const FRESH: Duration = Duration::from_secs(1);

    /// A mode younger than this gives a permit, so that its use has the rest of
    /// [`Self::FRESH`].
    const REUSED: Duration = Duration::from_millis(500);

    /// For how long a cluster may still carry out a request that it did not
    /// answer: by default an API server gives each one up after a minute.
    pub const LANDS_WITHIN: Duration = Duration::from_secs(60);

    /// Reads of the mode for one permit. A read that took too long gives none.
    const READS: usize = 3;

    /// Reads the mode now.
    pub async fn read(&self, store: &Stores) -> Result<KnownMode, Error> {
        let asked_at = Instant::now();
        let known_mode = KnownMode::from(&store.operations.control_fetch().await?);
        self.learn(asked_at, known_mode.clone());
        Ok(known_mode)
    }

    /// Reads the mode unless a recent one is known.
    async fn refresh(&self, store: &Stores) -> Result<(), Error> {
        if self.is_recent() {
            return Ok(());
        }
        let _reading = self.reading.lock().await;
        if !self.is_recent() {
            self.read(store).await?;
        }
        Ok(())
    }

    fn is_recent(&self) -> bool {
        self.lock().known.as_ref().is_some_and(|(at, _)| at.elapsed() < Self::REUSED)
    }

    /// Ignores a read that began before the last known one.
    fn learn(&self, asked_at: Instant, known_mode: KnownMode) {
        let mut inner = self.lock();
        if inner.known.as_ref().is_none_or(|(at, _)| *at <= asked_at) {
            inner.known = Some((asked_at, known_mode));
        }
    }

    /// Returns a permit for one action or registry write, or the mode that forbids
    /// it. It counts as running for as long as the permit lives.
    pub async fn enter(self: &Arc<Self>, store: &Stores) -> Result<Result<Permit, Mode>, Error> {
        for _ in 0..Self::READS {
            self.refresh(store).await?;
            let mut inner = self.lock();
            // Another task may have read a newer mode since, or this one was stopped.
            let Some((asked_at, known)) = inner.known.clone() else { continue };
            if known.mode != Mode::Acting {
                return Ok(Err(known.mode));
            }
            if asked_at.elapsed() >= Self::FRESH {
                continue;
            }
            let revision = known.revision;
            *inner.under_way.entry(revision).or_default() += 1;
            inner.activity += 1;
            let ends_at = asked_at + Self::FRESH;
            return Ok(Ok(Permit { permits: Arc::clone(self), revision, ends_at }));
        }
        let limit = Self::FRESH;
        Err(Error::Unavailable(format!("the mode could not be read within {limit:?}")))
    }

    /// The newest mode that this process obeys: nothing that began under an older
    /// one is running, and nothing will begin.
    pub fn acknowledged(&self) -> Option<Revision> {
        let mut inner = self.lock();
        let now = Instant::now();
        inner.unanswered.retain(|(_, until)| *until > now);
        let known = inner.known.as_ref().map(|(_, known_mode)| known_mode.revision)?;
        let unanswered = inner.unanswered.iter().map(|(revision, _)| revision);
        let oldest = inner.under_way.keys().chain(unanswered).min();
        Some(oldest.map_or(known, |oldest| known.min(*oldest)))
    }

    /// For how long something of this process may follow if it ends now; `None` if
    /// something is running.
    pub fn outlives(&self) -> Option<Duration> {
        let inner = self.lock();
        let last = inner.unanswered.iter().map(|(_, until)| *until).max();
        let left =
            last.map_or(Duration::ZERO, |last| last.saturating_duration_since(Instant::now()));
        inner.under_way.is_empty().then_some(left)
    }

    /// An earlier process under this name ended without saying so: something of it
    /// may follow for this long.
    pub fn outlived(&self, by: Duration) {
        self.lock().unanswered.push((Revision(0), Instant::now() + by));
    }

    /// Changes with every permit that is given or ends, see [`Self::mark_target`].
    pub fn activity(&self) -> u64 {
        self.lock().activity
    }

    /// Whether the marks have to be raised for what happened up to `activity`.
    pub fn is_raise_due(&self, activity: u64) -> bool {
        self.lock().target.is_none_or(|(covered, _)| covered != activity)
    }

    /// The counter that the high-water marks outside must reach. It is
    /// `counter` if there was activity since the last target or if this is the
    /// first target since the process started, and the last target otherwise.
    /// The caller reads `activity` before it commits `counter`, so a later
    /// start or end moves the next target.
    pub fn mark_target(&self, activity: u64, counter: i64) -> i64 {
        let mut inner = self.lock();
        match inner.target {
            Some((covered, target)) if covered == activity => target,
            _ => {
                inner.target = Some((activity, counter));
                counter
            }
        }
    }

    /// Ignores poisoning: no update can be interrupted halfway by a panic.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to one outside action or registry write, which ends when this is dropped.
#[derive(Debug)]
pub struct Permit {
    permits: Arc<Permits>,
    revision: Revision,
    ends_at: Instant,
}

impl Permit {
    /// The revision of the mode that it was given under.
    pub const fn revision(&self) -> Revision {
        self.revision
    }

    /// From then on nothing may begin under it.
    pub const fn ends_at(&self) -> Instant {
        self.ends_at
    }
}

impl Permit {
    /// Nobody answered the request: it counts until it can no longer land.
    pub fn unanswered(self) {
        let until = Instant::now() + Permits::LANDS_WITHIN;
        self.permits.lock().unanswered.push((self.revision, until));
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut inner = self.permits.lock();
        inner.activity += 1;
        if let Some(count) = inner.under_way.get_mut(&self.revision) {
            *count -= 1;
            if *count == 0 {
                inner.under_way.remove(&self.revision);
            }
        }
    }
}

/// Gives an engine a permit for each single request that changes something,
/// immediately before it. The caller of the engine has a permit for the whole
/// action, which may take several requests and seconds.
#[derive(Debug, Clone)]
pub struct ActionPermits {
    pub permits: Arc<Permits>,
    pub stores: Stores,
}

impl ActionPermits {
    pub async fn enter(&self) -> Result<Permit, SubstrateError> {
        match self.permits.enter(&self.stores).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) => Err(SubstrateError::Withheld),
            Err(error) => {
                Err(SubstrateError::Failed(format!("the mode could not be read: {error}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marks_are_raised_after_an_action_and_not_without_one() {
        let permits = Arc::new(Permits::default());
        assert_eq!(permits.mark_target(permits.activity(), 7), 7, "an earlier life may have acted");
        assert_eq!(permits.mark_target(permits.activity(), 9), 7, "idle");
        let before = permits.activity();
        permits.lock().activity += 1;
        assert_eq!(permits.mark_target(before, 10), 7, "it began after the commit");
        assert_eq!(permits.mark_target(permits.activity(), 11), 11, "an action began");
        let ends_at = Instant::now();
        drop(Permit { permits: Arc::clone(&permits), revision: Revision(1), ends_at });
        assert_eq!(
            permits.mark_target(permits.activity(), 13),
            13,
            "it may have ended after the last"
        );
        assert_eq!(permits.mark_target(permits.activity(), 14), 13, "idle again");
    }
    #[test]
    fn a_request_without_an_answer_counts_until_it_can_no_longer_land() {
        let permits = Arc::new(Permits::default());
        let know = |revision| {
            let mode = KnownMode { revision: Revision(revision), mode: Mode::Acting };
            permits.learn(Instant::now(), mode);
        };
        let permit = |revision| {
            *permits.lock().under_way.entry(Revision(revision)).or_default() += 1;
            let ends_at = Instant::now();
            Permit { permits: Arc::clone(&permits), revision: Revision(revision), ends_at }
        };
        know(4);
        let answered = permit(4);
        let given_up = permit(4);
        know(5);
        assert_eq!((permits.acknowledged(), permits.outlives()), (Some(Revision(4)), None));
        drop(answered);
        given_up.unanswered();
        assert_eq!(permits.acknowledged(), Some(Revision(4)));
        let left = permits.outlives().unwrap();
        assert!(left > Duration::ZERO && left <= Permits::LANDS_WITHIN, "{left:?}");
        // A minute later.
        permits.lock().unanswered[0].1 = Instant::now();
        assert_eq!(permits.acknowledged(), Some(Revision(5)));
        assert_eq!(permits.outlives(), Some(Duration::ZERO));
        permits.outlived(Permits::LANDS_WITHIN);
        assert_eq!(permits.acknowledged(), Some(Revision(0)), "the process before this one");
    }
}
