//! Convergence: undoes all faults and waits until the world reaches the state
//! that the accepted requests asked for, in the API, in the process table and
//! below the substrate root.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::agents;
use super::cluster::Cluster;
use super::model::{Desired, Filling};
use super::run::Soak;
use super::world::nap;

/// An agent that waited for its control plane reconnects within 15 s (ten for
/// an unanswered call and five of backoff), a silent claim is taken over after
/// three, and a busy node drains for two; all in sequence, twice.
const REST_LIMIT: Duration = Duration::from_secs(60);
/// Two busy cores take about this long to bring one node from declared to Ready.
const REST_PER_SLOT: Duration = Duration::from_millis(300);
const POLL: Duration = Duration::from_millis(150);

/// One deviation from the expected state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Deviation {
    pub(super) slot: Option<usize>,
    pub(super) text: String,
}

impl Soak {
    /// Undoes every fault, waits for convergence, then checks everything.
    pub(super) fn converge(&mut self) -> anyhow::Result<()> {
        self.unfreeze()?;
        self.world.undo_all()?;
        for slot in 0..self.slots.len() {
            self.resolve(slot)?;
        }
        let begun = Instant::now();
        let slots = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        let limit = REST_LIMIT + REST_PER_SLOT * slots;
        loop {
            let deviations = self.deviations()?;
            self.check_changes();
            if deviations.is_empty() {
                break;
            }
            if begun.elapsed() > limit {
                for deviation in deviations {
                    let text = format!("not at rest after {limit:?}: {}", deviation.text);
                    self.violation(deviation.slot, &text);
                }
                return Ok(());
            }
            self.world.pass(POLL)?;
        }
        self.tally.longest_converging = self.tally.longest_converging.max(begun.elapsed());
        self.check_at_rest()?;
        self.verify()?;
        self.world.cluster.iter_mut().for_each(Cluster::begin_faults);
        Ok(())
    }

    /// The remaining deviations from the desired state. Forces the drain, as an
    /// operator would, if a node cannot drain any more because the soak killed
    /// its agent.
    fn deviations(&mut self) -> anyhow::Result<Vec<Deviation>> {
        let listed = self.world.list("/api/v1/resources", None, "id")?;
        let mut listed: BTreeMap<String, Value> = listed
            .into_iter()
            .map(|resource| (resource["id"].as_str().unwrap_or_default().to_owned(), resource))
            .collect();
        let processes = agents::living(&self.world.root())?;
        let mut deviations = Vec::new();
        let mut ready = BTreeSet::new();
        for slot in 0..self.slots.len() {
            let Some(filling) = self.slots[slot].current.clone() else { continue };
            let resource = listed.remove(&filling.resource);
            let filling = match &resource {
                Some(resource) if filling.failed => self.follow(slot, resource).unwrap_or(filling),
                _ => filling,
            };
            if filling.wanted == Desired::Ready {
                ready.insert(filling.xr_name.clone());
            }
            let Some(text) = difference(&filling, resource.as_ref()) else { continue };
            if let Some(resource) = &resource
                && is_stuck_draining(resource)
                && filling.agent_hurt
                && !processes.contains_key(&filling.xr_name)
            {
                self.force_drain(slot)?;
                self.tally.count("forced_at_rest");
            }
            if filling.failed
                && filling.wanted == Desired::Ready
                && resource.as_ref().is_some_and(|resource| resource["phase"] == "Failed")
            {
                self.retry(slot)?;
            }
            deviations.push(Deviation { slot: Some(slot), text });
        }
        for (id, resource) in listed {
            let text = format!("resource {id} is known to nobody: {resource}");
            deviations.push(Deviation { slot: None, text });
        }
        match &self.world.cluster {
            Some(cluster) => self.compare_composites(cluster, &ready, &mut deviations)?,
            None => self.compare_processes(&ready, &mut deviations)?,
        }
        let waiting = self.place_all()?;
        if waiting > 0 {
            let text = format!("{waiting} projects are not placed on the cluster again");
            deviations.push(Deviation { slot: None, text });
        }
        Ok(deviations)
    }

    /// Expects one process and one directory for each Ready resource, and no others.
    fn compare_processes(
        &self,
        ready: &BTreeSet<String>,
        deviations: &mut Vec<Deviation>,
    ) -> anyhow::Result<()> {
        let root = self.world.root();
        let processes = agents::living(&root)?;
        let directories = agents::directories(&root)?;
        let slot_of =
            |xr_name: &str| self.slots.iter().position(|slot| slot.names().contains(&xr_name));
        let names: BTreeSet<&String> =
            ready.iter().chain(processes.keys()).chain(directories.keys()).collect();
        for name in names {
            let expected = usize::from(ready.contains(name));
            let found = processes.get(name).map_or(0, Vec::len);
            if found != expected {
                let text = format!("{name} has {found} processes and not {expected}");
                deviations.push(Deviation { slot: slot_of(name), text });
            }
            if usize::from(directories.contains_key(name)) != expected {
                let text = format!("there should be {expected} directories of the name {name}");
                deviations.push(Deviation { slot: slot_of(name), text });
            }
        }
        Ok(())
    }
}

/// How a resource differs from its desired state.
fn difference(filling: &Filling, resource: Option<&Value>) -> Option<String> {
    match (filling.wanted, resource) {
        (Desired::Deleted, None) => None,
        (Desired::Ready, None) => Some(format!("resource {} is not listed", filling.resource)),
        (Desired::Deleted, Some(resource)) => Some(format!("it is still there: {resource}")),
        (Desired::Ready, Some(resource)) => {
            let at_rest = resource["phase"] == "Ready"
                && resource["node"]["registered"] == true
                && resource["blockers"].as_array().is_some_and(Vec::is_empty);
            (!at_rest).then(|| format!("it is not Ready: {resource}"))
        }
    }
}

/// Whether a blocker reports that the drain is stuck and names the remedy.
fn is_stuck_draining(resource: &Value) -> bool {
    let blockers = resource["blockers"].as_array().map(Vec::as_slice).unwrap_or_default();
    resource["phase"] == "Deregistering"
        && blockers.iter().any(|blocker| {
            blocker["code"] == "node_not_draining"
                && blocker["remedies"].to_string().contains("force-drain")
        })
}

/// Repeats a check for a short time, until it finds nothing wrong.
pub(super) fn within<T>(
    limit: Duration,
    mut observe: impl FnMut() -> anyhow::Result<Result<(), T>>,
) -> anyhow::Result<Result<(), T>> {
    let end = Instant::now() + limit;
    loop {
        let found = observe()?;
        if found.is_ok() || Instant::now() > end {
            return Ok(found);
        }
        nap(POLL);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Desired, Filling, difference, is_stuck_draining};

    fn mk_filling(wanted: Desired) -> Filling {
        Filling {
            resource: "r".to_owned(),
            attempt: "a".to_owned(),
            xr_name: "x".to_owned(),
            wanted,
            agent_hurt: false,
            failed: false,
        }
    }

    #[test]
    fn rest_is_what_was_asked_for_and_nothing_less() {
        let ready = json!({ "phase": "Ready", "node": { "registered": true }, "blockers": [] });
        assert_eq!(difference(&mk_filling(Desired::Ready), Some(&ready)), None);
        assert_eq!(difference(&mk_filling(Desired::Deleted), None), None);
        let mut blocked = ready.clone();
        blocked["blockers"] = json!([{ "code": "apply_failed" }]);
        let mut gone = ready.clone();
        gone["node"]["registered"] = json!(false);
        for other in [&blocked, &gone] {
            assert!(difference(&mk_filling(Desired::Ready), Some(other)).is_some());
        }
        assert!(difference(&mk_filling(Desired::Ready), None).is_some());
        assert!(difference(&mk_filling(Desired::Deleted), Some(&ready)).is_some());
    }

    #[test]
    fn force_is_used_only_where_the_product_names_it() {
        let stuck = json!({
            "phase": "Deregistering",
            "blockers": [{
                "code": "node_not_draining",
                "remedies": [{ "command": "slipway resource force-drain r" }],
            }],
        });
        assert!(is_stuck_draining(&stuck));
        assert!(!is_stuck_draining(&json!({ "phase": "Deregistering", "blockers": [] })));
    }
}
