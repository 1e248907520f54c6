//! What must hold after convergence, besides the desired state: events once and
//! in order, nodes only for live resources, every blocker with a reason, every
//! end complete.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::converge::within;
use super::events::expected;
use super::model::{Desired, Filling};
use super::run::Soak;

/// The relay assigns positions at most a quarter of a second after the commit.
const RELAY_LIMIT: Duration = Duration::from_secs(10);

impl Soak {
    /// Checks everything, and drops resources that are Deleted and correct.
    pub(super) fn verify(&mut self) -> anyhow::Result<()> {
        self.tally.count("checks");
        for slot in 0..self.slots.len() {
            let mut slot_fillings: Vec<Filling> = self.slots[slot].before.clone();
            slot_fillings.extend(self.slots[slot].current.clone());
            for (index, filling) in slot_fillings.iter().enumerate() {
                let is_current = index + 1 == slot_fillings.len();
                let wrong = if filling.wanted == Desired::Ready && is_current {
                    self.verify_live(filling)?
                } else {
                    self.verify_gone(filling)?
                };
                for text in wrong {
                    self.violation(Some(slot), &text);
                }
            }
        }
        self.verify_retired();
        self.verify_no_other_events();
        self.verify_nodes()?;
        if self.violations.is_empty() {
            for slot in &mut self.slots {
                let leaving = |filling: &Filling| filling.wanted == Desired::Deleted;
                let gone = slot.current.take_if(|filling| leaving(filling));
                for filling in slot.before.drain(..).chain(gone) {
                    self.events.close(&filling.attempt);
                }
                for attempt in slot.retired.drain(..) {
                    self.events.close(&attempt);
                }
            }
        }
        Ok(())
    }

    fn verify_live(&mut self, filling: &Filling) -> anyhow::Result<Vec<String>> {
        let explained = self.explain(filling)?;
        let mut wrong = blockers_without_reason(&explained["blockers"]);
        wrong.extend(self.verify_events(filling, &explained["history"])?);
        Ok(wrong)
    }

    fn verify_gone(&mut self, filling: &Filling) -> anyhow::Result<Vec<String>> {
        let resource = self.world.get(&format!("/api/v1/resources/{}", filling.resource))?;
        let explained = self.explain(filling)?;
        let mut wrong = self.verify_events(filling, &explained["history"])?;
        let is_over = resource["phase"] == "Deleted"
            && resource["deleted_at"].is_string()
            && resource["node"]["registered"] != true
            && resource["blockers"].as_array().is_some_and(Vec::is_empty);
        if !is_over {
            wrong.push(format!("it should be over: {resource}"));
        }
        if let Some(deletion) = resource["deletion_id"].as_str() {
            let deletion = self.world.get(&format!("/api/v1/deletions/{deletion}"))?;
            if deletion["state"] != "done" || !deletion["done_at"].is_string() {
                wrong.push(format!("its deletion should be done: {deletion}"));
            }
        } else {
            wrong.push("it is Deleted without a deletion".to_owned());
        }
        Ok(wrong)
    }

    fn explain(&mut self, filling: &Filling) -> anyhow::Result<Value> {
        self.world.get(&format!("/api/v1/resources/{}/explain", filling.resource))
    }

    /// The events of an attempt must be exactly those of its history.
    fn verify_events(&mut self, filling: &Filling, history: &Value) -> anyhow::Result<Vec<String>> {
        let wanted = expected(history);
        let arrived = within(RELAY_LIMIT, || {
            self.read_events()?;
            let seen = self.events.of(&filling.attempt).len();
            Ok(if seen >= wanted.len() { Ok(()) } else { Err(()) })
        })?;
        let seen = self.events.of(&filling.attempt);
        if arrived.is_ok() && seen == wanted {
            return Ok(Vec::new());
        }
        let attempt = &filling.attempt;
        Ok(vec![format!("attempt {attempt} has the events {seen:?}, and its history {wanted:?}")])
    }

    fn read_events(&mut self) -> anyhow::Result<()> {
        let position = self.events.position();
        let cursor = (position > 0).then(|| position.to_string());
        let listed = self.world.list("/api/v1/events", cursor, "position")?;
        self.tally.events += listed.len();
        for text in self.events.take(&listed) {
            self.violation(None, &text);
        }
        Ok(())
    }

    /// A retried attempt must have failed, been taken down once, and ended.
    fn verify_retired(&mut self) {
        let mut wrong = Vec::new();
        for (number, slot) in self.slots.iter().enumerate() {
            for attempt in &slot.retired {
                let seen = self.events.of(attempt);
                let once = |kind: &str| seen.iter().filter(|seen| *seen == kind).count() == 1;
                let in_order = ["Requested", "Failed", "Deleting", "Deleted"].into_iter().all(once)
                    && seen.first().is_some_and(|first| first == "Requested")
                    && seen.ends_with(&["Failed", "Deleting", "Deleted"].map(str::to_owned));
                if !in_order {
                    wrong.push((number, format!("the retried attempt {attempt} has {seen:?}")));
                }
            }
        }
        for (slot, text) in wrong {
            self.violation(Some(slot), &text);
        }
    }

    /// Every event must belong to something that the model knows.
    fn verify_no_other_events(&mut self) {
        let known: Vec<&str> = self.slots.iter().flat_map(|slot| slot.names()).collect();
        let strangers: Vec<String> = self
            .events
            .open()
            .filter(|attempt| !known.contains(&attempt.as_str()))
            .map(|attempt| {
                format!(
                    "attempt {attempt} is announced ({:?}) and known to nobody",
                    self.events.of(attempt)
                )
            })
            .collect();
        for text in strangers {
            self.violation(None, &text);
        }
    }

    /// Expects one registered node for each live resource, and no others.
    fn verify_nodes(&mut self) -> anyhow::Result<()> {
        let nodes = self.world.list("/api/v1/nodes", None, "id")?;
        let mut registered: BTreeMap<&str, usize> = BTreeMap::new();
        for node in nodes.iter().filter(|node| node["registered"] == true) {
            *registered.entry(node["resource_id"].as_str().unwrap_or_default()).or_default() += 1;
        }
        let mut wrong = Vec::new();
        for (number, slot) in self.slots.iter().enumerate() {
            let Some(filling) = slot.current.as_ref().filter(|_| slot.is_wanted()) else {
                continue;
            };
            match registered.remove(filling.resource.as_str()) {
                Some(1) => {}
                other => {
                    let count = other.unwrap_or(0);
                    wrong.push((Some(number), format!("it has {count} registered nodes")));
                }
            }
        }
        for (resource, count) in registered {
            let text = format!("{count} nodes are registered for {resource}, which does not live");
            wrong.push((None, text));
        }
        for (slot, text) in wrong {
            self.violation(slot, &text);
        }
        Ok(())
    }
}

fn blockers_without_reason(blockers: &Value) -> Vec<String> {
    let said = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    let blockers = blockers.as_array().map(Vec::as_slice).unwrap_or_default();
    blockers
        .iter()
        .filter(|blocker| {
            !(said(&blocker["code"])
                && said(&blocker["message"])
                && said(&blocker["since"])
                && said(&blocker["owner"])
                && blocker["remedies"].as_array().is_some_and(|remedies| !remedies.is_empty()))
        })
        .map(|blocker| format!("a blocker does not say why or what to do: {blocker}"))
        .collect()
}
