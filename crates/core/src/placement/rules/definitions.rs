//! Decides about the definitions of one blueprint on one cluster, from the rows
//! and the observation. Pure: the placement loop observes, asks here, acts, and
//! asks again.
//!
//! The XRD goes first, with the role that lets our account handle its
//! composites. The Compositions follow once Crossplane reports the kind as
//! Established, since Crossplane checks them against the kind. Nothing is ever
//! removed, and objects that are not ours are left alone.

use std::collections::BTreeSet;

use serde_json::json;

use crate::access::audit::{About, Actor, AuditEntry};
use crate::commit::{Commit, Write};
use crate::event::derive_id;
use crate::ids::{AuditEntryId, Revision};
use crate::placement::PlacementWrite;
use crate::placement::definitions::{
    DefinitionKey, DefinitionPhase, DefinitionSet, DefinitionState, Demand, InstalledDefinitions,
    ObservedDefinition, ObservedDefinitions, Owner,
};

/// An action outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DefinitionsAction {
    Put(DefinitionKey),
    /// Ask which rights our account has on the composites.
    AskRights,
}

/// The actions, and the state to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionsDecision {
    pub actions: Vec<DefinitionsAction>,
    pub phase: DefinitionPhase,
    pub found: Option<String>,
    pub problem: Option<String>,
}

impl DefinitionsDecision {
    /// The decision before its actions are tried. A refusal that was recorded
    /// stays as it is until a try succeeds, so that a lasting refusal is
    /// neither audited with every try nor hidden for moments.
    pub fn trying(self, demand: &Demand) -> Self {
        let shown = demand.definitions.as_ref().filter(|before| {
            let lasts = before.phase == DefinitionPhase::Degraded || before.phase == self.phase;
            before.wanted == demand.version && lasts
        });
        match shown {
            Some(before) if !self.actions.is_empty() => {
                Self { phase: before.phase, problem: before.problem.clone(), ..self }
            }
            _ => self,
        }
    }

    /// The decision after an action failed.
    pub fn failed(self, problem: &str) -> Self {
        Self { phase: DefinitionPhase::Degraded, problem: Some(problem.to_owned()), ..self }
    }

    /// The decision while the mode withholds its actions, which is not an error.
    pub fn withheld(self, demand: &Demand, why: &str) -> Self {
        let before = demand.definitions.as_ref();
        let phase = before.map_or(DefinitionPhase::Pending, |before| before.phase);
        Self { phase, problem: Some(why.to_owned()), ..self }
    }
}

pub fn decision(
    demand: &Demand,
    definitions: &DefinitionSet,
    observed: &ObservedDefinitions,
) -> DefinitionsDecision {
    let view = View { demand, definitions, observed };
    let mut decision = view.decision();
    decision.found = view.found();
    decision
}

/// Records the decision; writes nothing if nothing changed.
pub fn record(demand: &Demand, decision: &DefinitionsDecision, actor: &Actor) -> Commit {
    let before = demand.definitions.as_ref();
    let from = before.map(|before| before.phase);
    let after = InstalledDefinitions {
        cluster_id: demand.cluster_id,
        blueprint_id: demand.blueprint_id,
        wanted: demand.version.clone(),
        found: decision.found.clone(),
        phase: decision.phase,
        problem: decision.problem.clone(),
        since: before.filter(|_| from == Some(decision.phase)).map_or(demand.now, |old| old.since),
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
        Some(_) => PlacementWrite::DefinitionsUpdate(after),
        None => PlacementWrite::DefinitionsInsert(after),
    };
    let mut commit = Commit { writes: vec![Write::Placement(write)], ..Commit::default() };
    if from != Some(decision.phase) {
        let verb = "blueprint.definitions_phase";
        let (blueprint, cluster) = (demand.blueprint_id.as_uuid(), demand.cluster_id.as_uuid());
        let about = About::new(demand.blueprint_id);
        let mut entry = AuditEntry::new(verb, actor, about, demand.now);
        // The id includes the cluster: several may get the blueprint at one moment.
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
            "to": decision.phase,
        })));
    }
    commit
}

/// The demand after the commit of [`record`].
pub fn recorded(demand: &Demand, commit: &Commit) -> Demand {
    let mut after = demand.clone();
    for write in &commit.writes {
        let Write::Placement(write) = write else { continue };
        match write {
            PlacementWrite::DefinitionsInsert(row) => after.definitions = Some(row.clone()),
            PlacementWrite::DefinitionsUpdate(row) => {
                after.definitions =
                    Some(InstalledDefinitions { revision: row.revision.next(), ..row.clone() });
            }
            _ => {}
        }
    }
    after
}

enum Need {
    Fulfilled,
    Put,
    Blocked(String),
}

struct View<'a> {
    demand: &'a Demand,
    definitions: &'a DefinitionSet,
    observed: &'a ObservedDefinitions,
}

impl View<'_> {
    fn decision(&self) -> DefinitionsDecision {
        let mut actions = Vec::new();
        match self.definition() {
            Need::Fulfilled => {}
            Need::Put => actions.push(DefinitionsAction::Put(self.definitions.definition.clone())),
            Need::Blocked(problem) => return blocked(problem),
        }
        let unready = self.unready();
        let mut phase = DefinitionPhase::Applying;
        if actions.is_empty() && unready.is_none() {
            let mut problem = None;
            for key in self.compositions() {
                match self.need(key) {
                    Need::Fulfilled => {}
                    Need::Put => actions.push(DefinitionsAction::Put(key.clone())),
                    Need::Blocked(found) => problem = problem.or(Some(found)),
                }
            }
            // One that is in the way keeps no other from being put.
            match problem {
                Some(problem) if actions.is_empty() => return blocked(problem),
                None if actions.is_empty() => phase = DefinitionPhase::Established,
                _ => {}
            }
        }
        let lacking = self.role(&mut actions);
        DefinitionsDecision { actions, phase, found: None, problem: lacking.or(unready) }
    }

    fn compositions(&self) -> impl Iterator<Item = &DefinitionKey> {
        std::iter::once(&self.definitions.composition).chain(&self.definitions.others)
    }

    fn seen(&self, key: &DefinitionKey) -> Option<&ObservedDefinition> {
        match self.observed.objects.get(key) {
            Some(DefinitionState::Seen(seen)) => Some(seen),
            _ => None,
        }
    }

    fn is_ours(&self, seen: &ObservedDefinition) -> bool {
        match &seen.owner {
            Owner::Ours(slug) => slug.as_ref().is_none_or(|slug| *slug == self.demand.slug),
            Owner::Foreign(_) => false,
        }
    }

    fn need(&self, key: &DefinitionKey) -> Need {
        let shown = format!("{} {}", key.kind, key.name);
        match self.observed.objects.get(key) {
            None => Need::Blocked(format!("{shown} was not observed")),
            Some(DefinitionState::Refused(problem) | DefinitionState::Unreadable(problem)) => {
                Need::Blocked(problem.clone())
            }
            Some(DefinitionState::Absent) => Need::Put,
            Some(DefinitionState::Seen(seen)) => match &seen.owner {
                _ if self.is_ours(seen) && seen.terminating => Need::Blocked(format!(
                    "{shown} is being deleted by somebody else; Slipway creates it again once it is gone"
                )),
                _ if self.is_ours(seen) && seen.fits => Need::Fulfilled,
                _ if self.is_ours(seen) => Need::Put,
                Owner::Ours(slug) => Need::Blocked(format!(
                    "{shown} belongs to blueprint `{}` and is left alone; give this one another name, or publish it without `install_definitions`",
                    slug.as_deref().unwrap_or_default()
                )),
                Owner::Foreign(whose) => Need::Blocked(format!(
                    "{shown} is there and belongs to {whose}; it is left alone: hand it over with `kubectl label {} {} slipway.dev/installation={}`, or publish without `install_definitions`",
                    key.kind.as_str().to_lowercase(),
                    key.name,
                    self.definitions.installation
                )),
            },
        }
    }

    /// Blocks an XRD that would stop serving a version still published or in use.
    fn definition(&self) -> Need {
        let key = &self.definitions.definition;
        let need = self.need(key);
        let Some(seen) = self.seen(key).filter(|_| matches!(need, Need::Put)) else {
            return need;
        };
        let lost: BTreeSet<_> = seen.serves.difference(&self.definitions.serves).collect();
        let lost: Vec<_> =
            lost.into_iter().filter(|version| self.demand.kept.contains(*version)).collect();
        match &lost[..] {
            [] => need,
            lost => {
                let lost: Vec<_> = lost.iter().map(|version| version.as_str()).collect();
                Need::Blocked(format!(
                    "the XRD of version `{}` no longer serves {}, which is still published or in use; publish one that serves it too, or retire it and delete what was made from it",
                    self.demand.version,
                    lost.join(", ")
                ))
            }
        }
    }

    /// Why the composite kind cannot be used yet.
    fn unready(&self) -> Option<String> {
        let key = &self.definitions.definition;
        let said = match self.seen(key) {
            None => Err("it is being installed".to_owned()),
            Some(seen) => seen.established.clone(),
        };
        said.err().map(|why| format!("the XRD {} is not Established: {why}", key.name))
    }

    /// A role that we may not write blocks nothing: our account may have the
    /// rights by another role, or get them from a person. Returns the problem
    /// that names the rights it still lacks.
    fn role(&self, actions: &mut Vec<DefinitionsAction>) -> Option<String> {
        let key = &self.definitions.role;
        let put = match self.observed.objects.get(key) {
            Some(DefinitionState::Absent) => true,
            Some(DefinitionState::Seen(seen)) if seen.fits => return None,
            Some(DefinitionState::Seen(seen)) => self.is_ours(seen) && !seen.terminating,
            None | Some(DefinitionState::Refused(_) | DefinitionState::Unreadable(_)) => false,
        };
        if put {
            actions.push(DefinitionsAction::Put(key.clone()));
            return None;
        }
        match self.observed.lacking.as_deref() {
            None => {
                if !self.is_settled() {
                    actions.push(DefinitionsAction::AskRights);
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

    /// Whether this version was complete, rights included, at the last observation.
    fn is_settled(&self) -> bool {
        self.demand.definitions.as_ref().is_some_and(|before| {
            before.phase == DefinitionPhase::Established
                && before.problem.is_none()
                && before.wanted == self.demand.version
        })
    }

    /// The installed version: that of the XRD, and if it is the wanted one, only once all
    /// Compositions are there. Composites name theirs by it, so a read that failed changes
    /// nothing.
    fn found(&self) -> Option<String> {
        let ours = |key| self.seen(key).filter(|seen| self.is_ours(seen));
        let key = &self.definitions.definition;
        if let Some(DefinitionState::Refused(_) | DefinitionState::Unreadable(_)) =
            self.observed.objects.get(key)
        {
            return self.demand.definitions.as_ref()?.found.clone();
        }
        let installed = ours(key)?.version.clone()?;
        if installed != self.demand.version {
            return Some(installed);
        }
        let own = ours(&self.definitions.composition)?.version.as_ref() == Some(&installed);
        let complete = own && self.definitions.others.iter().all(|key| ours(key).is_some());
        complete.then_some(installed)
    }
}

fn blocked(problem: String) -> DefinitionsDecision {
    DefinitionsDecision {
        actions: Vec::new(),
        phase: DefinitionPhase::Degraded,
        found: None,
        problem: Some(problem),
    }
}

#[cfg(test)]
mod tests;
