//! Checks the mode before every outside action. Knows the last mode that this
//! process read, and which actions run under which mode.
//!
//! *Guarantees:* an action starts only under a mode that was read from the
//! database no longer than [`Permits::FRESH`] ago, by a clock that keeps
//! running while the process is stopped. So once a freeze was answered, no
//! action starts later than that, and an action that started before it ends
//! within its own deadline. [`Permits::acknowledged`] tells when this process
//! has no such action left.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use slipway_core::catalog::blueprint_version::Engine;
use slipway_core::ids::{Partition, Revision};
use slipway_core::operations::control::{Control, Mode};

use crate::ports::Stores;
use crate::ports::store::Error;

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
}

#[derive(Debug, Default)]
struct Inner {
    /// When the read began, and its result.
    known: Option<(Instant, KnownMode)>,
    under_way: BTreeMap<Revision, usize>,
    /// Counts the starts and the ends of actions.
    activity: u64,
    /// The counter that the high-water marks must reach, and the activity that
    /// it covers.
    target: Option<(u64, i64)>,
    /// Whose high-water mark was read since this process started.
    marks_read: BTreeSet<(Partition, Engine)>,
}

impl Permits {
    /// Short enough that a freeze applies before a person has read the answer,
    /// long enough that a busy loop reads only one small row a second.
    pub const FRESH: Duration = Duration::from_secs(1);

    /// Reads the mode now.
    pub async fn read(&self, store: &Stores) -> Result<KnownMode, Error> {
        let asked_at = Instant::now();
        let known_mode = KnownMode::from(&store.operations.control_fetch().await?);
        self.learn(asked_at, known_mode.clone());
        Ok(known_mode)
    }

    /// The mode, read no longer than [`Self::FRESH`] ago.
    async fn fresh(&self, store: &Stores) -> Result<KnownMode, Error> {
        if let Some(known_mode) = self.remembered() {
            return Ok(known_mode);
        }
        let _reading = self.reading.lock().await;
        match self.remembered() {
            Some(known_mode) => Ok(known_mode),
            None => self.read(store).await,
        }
    }

    fn remembered(&self) -> Option<KnownMode> {
        let inner = self.lock();
        let (at, known_mode) = inner.known.as_ref()?;
        (at.elapsed() < Self::FRESH).then(|| known_mode.clone())
    }

    /// Ignores a read that began before the last known one.
    fn learn(&self, asked_at: Instant, known_mode: KnownMode) {
        let mut inner = self.lock();
        if inner.known.as_ref().is_none_or(|(at, _)| *at <= asked_at) {
            inner.known = Some((asked_at, known_mode));
        }
    }

    /// Returns a permit for an action, or the mode that forbids it. The action
    /// counts as running for as long as the permit lives.
    pub async fn enter(&self, store: &Stores) -> Result<Result<Permit<'_>, Mode>, Error> {
        let known_mode = self.fresh(store).await?;
        if known_mode.mode != Mode::Acting {
            return Ok(Err(known_mode.mode));
        }
        let mut inner = self.lock();
        // Another task may have read a newer mode since.
        if let Some((_, known)) = inner.known.as_ref()
            && known.mode != Mode::Acting
        {
            return Ok(Err(known.mode.clone()));
        }
        *inner.under_way.entry(known_mode.revision).or_default() += 1;
        inner.activity += 1;
        Ok(Ok(Permit { permits: self, revision: known_mode.revision }))
    }

    /// The newest mode that all actions of this process obey: no action that
    /// began under an older one is running, and none will begin.
    pub fn acknowledged(&self) -> Option<Revision> {
        let inner = self.lock();
        let known = inner.known.as_ref().map(|(_, known_mode)| known_mode.revision)?;
        Some(inner.under_way.keys().next().map_or(known, |oldest| known.min(*oldest)))
    }

    /// Changes with every action that begins or ends, see [`Self::mark_target`].
    pub fn activity(&self) -> u64 {
        self.lock().activity
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

    pub fn mark_read(&self, partition: Partition, engine: Engine) {
        self.lock().marks_read.insert((partition, engine));
    }

    pub fn was_mark_read(&self, partition: Partition, engine: Engine) -> bool {
        self.lock().marks_read.contains(&(partition, engine))
    }

    /// Ignores poisoning: no update can be interrupted halfway by a panic.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to one outside action; the action ends when it is dropped.
#[derive(Debug)]
pub struct Permit<'a> {
    permits: &'a Permits,
    revision: Revision,
}

impl Drop for Permit<'_> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marks_are_raised_after_an_action_and_not_without_one() {
        let permits = Permits::default();
        assert_eq!(permits.mark_target(permits.activity(), 7), 7, "an earlier life may have acted");
        assert_eq!(permits.mark_target(permits.activity(), 9), 7, "idle");
        let before = permits.activity();
        permits.lock().activity += 1;
        assert_eq!(permits.mark_target(before, 10), 7, "it began after the commit");
        assert_eq!(permits.mark_target(permits.activity(), 11), 11, "an action began");
        drop(Permit { permits: &permits, revision: Revision(1) });
        assert_eq!(
            permits.mark_target(permits.activity(), 13),
            13,
            "it may have ended after the last"
        );
        assert_eq!(permits.mark_target(permits.activity(), 14), 13, "idle again");
    }
}
