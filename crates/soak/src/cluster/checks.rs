//! What is compared with the cluster: all the time its changes, at rest its
//! composites and the leaks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::Context as _;

use super::setup::{ARRIVAL, Cluster};
use crate::converge::{Deviation, within};
use crate::run::Soak;

/// A create that landed late is found by the deletion verification, one lease
/// after the end, and removed.
const LEAK_LIMIT: Duration = Duration::from_secs(20);

impl Soak {
    /// The cluster of a scenario that has one.
    pub(crate) fn cluster_mut(&mut self) -> anyhow::Result<&mut Cluster> {
        self.world.cluster.as_mut().context("this scenario has no cluster")
    }

    /// Reports what is wrong with the changes since the last call.
    pub(crate) fn check_changes(&mut self) {
        let wrong = self.world.cluster.as_mut().map(Cluster::take_in).unwrap_or_default();
        for text in wrong {
            let is_about = |names: Vec<&str>| names.iter().any(|name| text.contains(name));
            let slot = self.slots.iter().position(|slot| is_about(slot.names()));
            self.violation(slot, &text);
        }
    }

    /// At rest: waits until the changes up to now have arrived, checks them, and
    /// expects no leak that stays open.
    pub(crate) fn check_at_rest(&mut self) -> anyhow::Result<()> {
        if self.world.cluster.is_none() {
            return Ok(());
        }
        self.world.pass(ARRIVAL)?;
        self.check_changes();
        let open = within(LEAK_LIMIT, || {
            let leaks = self.world.list("/api/v1/leaks", None, "id")?;
            Ok(if leaks.is_empty() { Ok(()) } else { Err(leaks) })
        })?;
        for leak in open.err().into_iter().flatten() {
            self.violation(None, &format!("a leak is open {LEAK_LIMIT:?} after rest: {leak}"));
        }
        Ok(())
    }

    /// Expects one composite for each Ready resource, and no others.
    pub(crate) fn compare_composites(
        &self,
        cluster: &Cluster,
        ready: &BTreeSet<String>,
        deviations: &mut Vec<Deviation>,
    ) -> anyhow::Result<()> {
        let found: BTreeMap<String, usize> = cluster.composites()?;
        let slot_of =
            |xr_name: &str| self.slots.iter().position(|slot| slot.names().contains(&xr_name));
        for name in ready.iter().chain(found.keys()).collect::<BTreeSet<_>>() {
            let expected = usize::from(ready.contains(name));
            let there = found.get(name).copied().unwrap_or(0);
            if there != expected {
                let text = format!("there are {there} composites {name} and not {expected}");
                deviations.push(Deviation { slot: slot_of(name), text });
            }
        }
        Ok(())
    }
}
