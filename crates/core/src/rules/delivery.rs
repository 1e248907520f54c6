//! What is done about one blueprint on one cluster, from what the rows say and
//! what was seen. Pure: the fleet looks, asks here, acts, and asks again.
//!
//! The XRD goes first, with the role that lets our account handle its
//! composites; the Composition once Crossplane says that the kind is
//! Established, since it is checked against it. Nothing is ever taken away, and
//! what is not ours is left alone.

use std::collections::BTreeSet;

use serde_json::json;

use crate::audit::{Actor, AuditEntry};
use crate::catalog::CatalogWrite;
use crate::commit::{Commit, Write};
use crate::delivery::{
    Delivered, DeliveredKey, DeliveredSeen, Delivery, DeliveryPhase, DeliverySight, Demand, Look,
    Owner,
};
use crate::event::derive_id;
use crate::ids::{AuditEntryId, BlueprintId, Revision};

/// Something to do outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Put(DeliveredKey),
    /// Ask what our account may do with the composites.
    AskRights,
}

/// What is to be done, and what is known now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub steps: Vec<Step>,
    pub phase: DeliveryPhase,
    pub found: Option<String>,
    pub problem: Option<String>,
}

impl Plan {
    /// The same before it is acted on. What was refused is not better for being
    /// tried again: it stays as it was shown until that succeeded, so that a
    /// refusal that lasts is neither audited with every try nor gone for moments.
    pub fn trying(self, demand: &Demand) -> Self {
        let shown = demand.delivery.as_ref().filter(|before| {
            let lasts = before.phase == DeliveryPhase::Degraded || before.phase == self.phase;
            before.wanted == demand.version && lasts
        });
        match shown {
            Some(before) if !self.steps.is_empty() => {
                Self { phase: before.phase, problem: before.problem.clone(), ..self }
            }
            _ => self,
        }
    }

    /// The same with what an action came to.
    pub fn failed(self, problem: &str) -> Self {
        Self { phase: DeliveryPhase::Degraded, problem: Some(problem.to_owned()), ..self }
    }

    /// The same while nothing may be done: what holds it is nobody's error.
    pub fn withheld(self, demand: &Demand, why: &str) -> Self {
        let before = demand.delivery.as_ref();
        let phase = before.map_or(DeliveryPhase::Pending, |before| before.phase);
        Self { phase, problem: Some(why.to_owned()), ..self }
    }
}

pub fn plan(demand: &Demand, delivered: &Delivered, sight: &DeliverySight) -> Plan {
    let view = View { demand, delivered, sight };
    let mut plan = view.plan();
    plan.found = view.found();
    plan
}

/// Writes down what is known now; nothing if it is known already.
pub fn record(demand: &Demand, plan: &Plan, actor: &Actor) -> Commit {
    let before = demand.delivery.as_ref();
    let from = before.map(|before| before.phase);
    let after = Delivery {
        cluster_id: demand.cluster_id,
        blueprint_id: demand.blueprint_id,
        wanted: demand.version.clone(),
        found: plan.found.clone(),
        phase: plan.phase,
        problem: plan.problem.clone(),
        since: before.filter(|_| from == Some(plan.phase)).map_or(demand.now, |old| old.since),
        revision: before.map_or(Revision::FIRST, |before| before.revision),
        updated_at: before.map_or(demand.now, |before| before.updated_at),
    };
    if before == Some(&after) {
        return Commit::default();
    }
    let revision = match before {
        Some(before) => before.revision.next(),
        None => Revision::FIRST,
    };
    let write = match before {
        Some(_) => CatalogWrite::DeliveryUpdate(after),
        None => CatalogWrite::DeliveryInsert(after),
    };
    let mut commit = Commit { writes: vec![Write::Catalog(Box::new(write))], ..Commit::default() };
    if from != Some(plan.phase) {
        let verb = "blueprint.delivery_phase";
        let (blueprint, cluster) = (demand.blueprint_id.as_uuid(), demand.cluster_id.as_uuid());
        let mut entry =
            AuditEntry::of_installation(verb, actor, BlueprintId::KIND, blueprint, demand.now);
        // A blueprint comes to several clusters at one moment.
        let parts: [&[u8]; 5] = [
            b"audit",
            verb.as_bytes(),
            blueprint.as_bytes(),
            cluster.as_bytes(),
            &revision.0.to_be_bytes(),
        ];
        entry.id = AuditEntryId::new(derive_id(demand.now, &parts));
        commit.audit.push(entry.with(json!({
            "slug": demand.slug,
            "cluster": demand.cluster_id,
            "version": demand.version,
            "from": from,
            "to": plan.phase,
        })));
    }
    commit
}

/// The demand as it is once the commit of [`record`] is written.
pub fn recorded(demand: &Demand, commit: &Commit) -> Demand {
    let mut after = demand.clone();
    for write in &commit.writes {
        let Write::Catalog(write) = write else { continue };
        match &**write {
            CatalogWrite::DeliveryInsert(row) => after.delivery = Some(row.clone()),
            CatalogWrite::DeliveryUpdate(row) => {
                after.delivery = Some(Delivery { revision: row.revision.next(), ..row.clone() });
            }
            _ => {}
        }
    }
    after
}

enum Wish {
    Fulfilled,
    Put,
    Held(String),
}

struct View<'a> {
    demand: &'a Demand,
    delivered: &'a Delivered,
    sight: &'a DeliverySight,
}

impl View<'_> {
    fn plan(&self) -> Plan {
        let mut steps = Vec::new();
        match self.definition() {
            Wish::Fulfilled => {}
            Wish::Put => steps.push(Step::Put(self.delivered.definition.clone())),
            Wish::Held(problem) => return held(problem),
        }
        let unready = self.unready();
        let mut phase = DeliveryPhase::Applying;
        if steps.is_empty() && unready.is_none() {
            match self.wish(&self.delivered.composition) {
                Wish::Fulfilled => phase = DeliveryPhase::Established,
                Wish::Put => steps.push(Step::Put(self.delivered.composition.clone())),
                Wish::Held(problem) => return held(problem),
            }
        }
        let lacking = self.role(&mut steps);
        Plan { steps, phase, found: None, problem: lacking.or(unready) }
    }

    fn seen(&self, key: &DeliveredKey) -> Option<&DeliveredSeen> {
        match self.sight.objects.get(key) {
            Some(Look::Seen(seen)) => Some(seen),
            _ => None,
        }
    }

    fn is_ours(&self, seen: &DeliveredSeen) -> bool {
        match &seen.owner {
            Owner::Ours(slug) => slug.as_ref().is_none_or(|slug| *slug == self.demand.slug),
            Owner::Foreign(_) => false,
        }
    }

    fn wish(&self, key: &DeliveredKey) -> Wish {
        let shown = format!("{} {}", key.kind, key.name);
        match self.sight.objects.get(key) {
            None => Wish::Held(format!("{shown} was not looked at")),
            Some(Look::Refused(problem) | Look::Unreadable(problem)) => Wish::Held(problem.clone()),
            Some(Look::Absent) => Wish::Put,
            Some(Look::Seen(seen)) => match &seen.owner {
                _ if self.is_ours(seen) && seen.terminating => Wish::Held(format!(
                    "{shown} is being deleted by somebody else; it is made anew once it is gone"
                )),
                _ if self.is_ours(seen) && seen.fits => Wish::Fulfilled,
                _ if self.is_ours(seen) => Wish::Put,
                Owner::Ours(slug) => Wish::Held(format!(
                    "{shown} is that of blueprint `{}` and is left alone; give this one another name, or publish it without delivery",
                    slug.as_deref().unwrap_or_default()
                )),
                Owner::Foreign(whose) => Wish::Held(format!(
                    "{shown} is there and belongs to {whose}; it is left alone: hand it over with `kubectl label {} {} slipway.dev/installation={}`, or publish without delivery",
                    key.kind.as_str().to_lowercase(),
                    key.name,
                    self.delivered.installation
                )),
            },
        }
    }

    /// An XRD that serves less takes the ground from under what was made in it.
    fn definition(&self) -> Wish {
        let key = &self.delivered.definition;
        let wish = self.wish(key);
        let Some(seen) = self.seen(key).filter(|_| matches!(wish, Wish::Put)) else {
            return wish;
        };
        let lost: BTreeSet<_> = seen.serves.difference(&self.delivered.serves).collect();
        let lost: Vec<_> =
            lost.into_iter().filter(|version| self.demand.kept.contains(*version)).collect();
        match &lost[..] {
            [] => wish,
            lost => {
                let lost: Vec<_> = lost.iter().map(|version| version.as_str()).collect();
                Wish::Held(format!(
                    "the XRD of version `{}` no longer serves {}, which is still published or in use; publish one that serves it too, or retire it and delete what was made from it",
                    self.demand.version,
                    lost.join(", ")
                ))
            }
        }
    }

    /// Why the kind cannot be used yet.
    fn unready(&self) -> Option<String> {
        let key = &self.delivered.definition;
        let said = match self.seen(key) {
            None => Err("it is being put in place".to_owned()),
            Some(seen) => seen.established.clone(),
        };
        said.err().map(|why| format!("the XRD {} is not Established: {why}", key.name))
    }

    /// A role that we may not write stops nothing: our account may have the
    /// rights by another one, or be given them by a person. What it still lacks
    /// is answered.
    fn role(&self, steps: &mut Vec<Step>) -> Option<String> {
        let key = &self.delivered.role;
        let put = match self.sight.objects.get(key) {
            Some(Look::Absent) => true,
            Some(Look::Seen(seen)) if seen.fits => return None,
            Some(Look::Seen(seen)) => self.is_ours(seen) && !seen.terminating,
            None | Some(Look::Refused(_) | Look::Unreadable(_)) => false,
        };
        if put {
            steps.push(Step::Put(key.clone()));
            return None;
        }
        match self.sight.lacking.as_deref() {
            None => {
                if !self.is_settled() {
                    steps.push(Step::AskRights);
                }
                None
            }
            Some([]) => None,
            Some(verbs) => {
                let kind = &self.demand.composite_type;
                Some(format!(
                    "our account may not {} {}.{} there; whoever may grant it runs: slipway blueprint rbac {} | kubectl apply -f -",
                    verbs.join(", "),
                    kind.plural,
                    kind.group,
                    self.demand.slug
                ))
            }
        }
    }

    /// It was whole in this version when it was last looked at, rights and all.
    fn is_settled(&self) -> bool {
        self.demand.delivery.as_ref().is_some_and(|before| {
            before.phase == DeliveryPhase::Established
                && before.problem.is_none()
                && before.wanted == self.demand.version
        })
    }

    /// The Composition comes last: its version is there whole.
    fn found(&self) -> Option<String> {
        let ours = |key| self.seen(key).filter(|seen| self.is_ours(seen));
        ours(&self.delivered.definition)?;
        ours(&self.delivered.composition)?.version.clone()
    }
}

fn held(problem: String) -> Plan {
    Plan { steps: Vec::new(), phase: DeliveryPhase::Degraded, found: None, problem: Some(problem) }
}

#[cfg(test)]
mod tests;
