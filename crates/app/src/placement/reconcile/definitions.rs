//! The other half of the placement loop: installs the definitions of blueprints
//! on a cluster as soon as a project is placed there. Sends no request while
//! nothing has to be installed.
//!
//! For each blueprint: observe its three objects → plan (pure) → record → act →
//! plan again on the results of the actions.

use slipway_core::ids::ClusterId;
use slipway_core::placement::definitions::{
    DefinitionPhase, DefinitionState, Demand, ObservedDefinitions,
};
use slipway_core::placement::rules::definitions::{
    self as rules, DefinitionsAction, DefinitionsDecision,
};
use slipway_core::placement::shared_objects::ProjectNamespace;
use slipway_render::definitions::{self, Bundle};

use super::{Acted, Pass, PassSummary, PlacementReconciler, within};
use crate::ports::store;
use crate::ports::substrate::Error;

/// Rounds of planning and acting for one blueprint in one pass: XRD and role,
/// Composition, rights, and one to check the result.
const ROUNDS: usize = 4;

/// The result for one blueprint.
#[derive(Default)]
struct Brought {
    actions: usize,
    /// The next pass should come soon.
    waits: bool,
    /// Its kind became usable.
    opens: bool,
}

impl PlacementReconciler {
    /// An error with one blueprint stops no other blueprint and no project.
    pub(super) async fn install_definitions(
        &self,
        cluster: ClusterId,
        pass: Pass<'_>,
        project_namespaces: &[ProjectNamespace],
    ) -> Result<PassSummary, store::Error> {
        let mut summary = PassSummary::default();
        if project_namespaces.iter().all(ProjectNamespace::is_leaving) {
            return Ok(summary);
        }
        let mut opened = false;
        for demand in self.context.stores.placement.demand_list(cluster).await? {
            let slug = demand.slug.clone();
            match self.bring(demand, pass).await {
                Ok(brought) => {
                    summary.actions += brought.actions;
                    summary.waiting |= brought.waits;
                    opened |= brought.opens;
                }
                Err(error) => summary.errors.push(format!("blueprint {slug}: {error}")),
            }
        }
        if opened {
            // Resources declared before their kind was installed wait for it.
            for project_namespace in project_namespaces
                .iter()
                .filter(|project_namespace| !project_namespace.is_leaving())
            {
                self.context
                    .stores
                    .placement
                    .project_namespace_wake(project_namespace.assignment.project_id)
                    .await?;
            }
            self.context.wakes.wake();
        }
        Ok(summary)
    }

    async fn bring(&self, mut demand: Demand, pass: Pass<'_>) -> Result<Brought, store::Error> {
        let mut brought = Brought::default();
        let bundle = match definitions::render(&demand, self.settings.installation) {
            Ok(bundle) => bundle,
            Err(fault) => {
                self.stuck(&demand, &fault.to_string()).await?;
                return Ok(brought);
            }
        };
        let mut observed = ObservedDefinitions::default();
        for object in &bundle.objects {
            observed.objects.insert(object.key.clone(), pass.management.observe(object).await);
        }
        let before = status(&demand);
        for _ in 0..ROUNDS {
            let noted = self
                .note(&demand, &bundle, &observed, |decision, demand| decision.trying(demand))
                .await?;
            let Some((locked, decision)) = noted else {
                brought.waits = true;
                break;
            };
            demand = locked;
            brought.waits = decision.phase == DefinitionPhase::Applying;
            brought.opens =
                decision.phase == DefinitionPhase::Established && status(&demand) != before;
            if decision.actions.is_empty() {
                break;
            }
            match self.carry_out(&demand, &decision, &bundle, pass, &mut observed).await? {
                Acted::Done => brought.actions += decision.actions.len(),
                Acted::Postponed => {
                    brought.waits = true;
                    break;
                }
                Acted::Failed(problem) => {
                    // Recorded, and tried again at the next interval.
                    let end = |decision: DefinitionsDecision, _: &Demand| decision.failed(&problem);
                    self.note(&demand, &bundle, &observed, end).await?;
                    brought.waits = false;
                    break;
                }
                Acted::Withheld(why) => {
                    let end = |decision: DefinitionsDecision, demand: &Demand| {
                        decision.withheld(demand, &why)
                    };
                    self.note(&demand, &bundle, &observed, end).await?;
                    // The end of the mode wakes the loop.
                    brought.waits = false;
                    break;
                }
            }
        }
        Ok(brought)
    }

    /// Records that the published version cannot be rendered.
    async fn stuck(&self, demand: &Demand, problem: &str) -> Result<(), store::Error> {
        let decision = DefinitionsDecision {
            actions: Vec::new(),
            phase: DefinitionPhase::Degraded,
            found: demand.definitions.as_ref().and_then(|before| before.found.clone()),
            problem: Some(problem.to_owned()),
        };
        let mut rule = |demand: &Demand| Ok(rules::record(demand, &decision, &self.actor));
        let (cluster, blueprint) = (demand.cluster_id, demand.blueprint_id);
        self.context.stores.placement.decide_definitions(cluster, blueprint, &mut rule).await
    }

    async fn carry_out(
        &self,
        demand: &Demand,
        decision: &DefinitionsDecision,
        bundle: &Bundle,
        Pass { management, lease }: Pass<'_>,
        observed: &mut ObservedDefinitions,
    ) -> Result<Acted, store::Error> {
        for action in &decision.actions {
            let _permit = match self.permit(lease).await? {
                Ok(permit) => permit,
                Err(refused) => return Ok(refused),
            };
            match action {
                DefinitionsAction::AskRights => {
                    match within(lease, management.lacking(&demand.composite_type)).await {
                        Ok(lacking) => observed.lacking = Some(lacking),
                        Err(error) => return Ok(Acted::Failed(error.to_string())),
                    }
                }
                DefinitionsAction::Put(key) => {
                    // Always present: the plan was made from the same objects.
                    let Some(object) = bundle.objects.iter().find(|object| object.key == *key)
                    else {
                        continue;
                    };
                    match within(lease, management.define(object)).await {
                        // A role that we may not write is not an error.
                        Ok(DefinitionState::Refused(problem))
                            if *key != bundle.definitions.role =>
                        {
                            return Ok(Acted::Failed(problem));
                        }
                        Ok(observe) => {
                            observed.objects.insert(key.clone(), observe);
                        }
                        Err(Error::Withheld) => {
                            return Ok(Acted::Withheld(self.withheld().await?));
                        }
                        Err(error) => return Ok(Acted::Failed(error.to_string())),
                    }
                }
            }
        }
        Ok(Acted::Done)
    }

    /// Plans and records in one transaction, on the locked rows. `None` if
    /// another version is demanded by now, or none: then what was rendered and
    /// observed is stale.
    async fn note(
        &self,
        demand: &Demand,
        bundle: &Bundle,
        observed: &ObservedDefinitions,
        end: impl Fn(DefinitionsDecision, &Demand) -> DefinitionsDecision + Send + Sync,
    ) -> Result<Option<(Demand, DefinitionsDecision)>, store::Error> {
        let planned =
            |demand: &Demand| end(rules::decision(demand, &bundle.definitions, observed), demand);
        let decision = planned(demand);
        if decision.actions.is_empty() && rules::record(demand, &decision, &self.actor).is_empty() {
            return Ok(Some((demand.clone(), decision)));
        }
        let mut decided = None;
        let mut rule = |locked: &Demand| {
            if locked.version != demand.version {
                decided = None;
                return Ok(slipway_core::commit::Commit::default());
            }
            let decision = planned(locked);
            let commit = rules::record(locked, &decision, &self.actor);
            decided = Some((rules::recorded(locked, &commit), decision));
            Ok(commit)
        };
        let (cluster, blueprint) = (demand.cluster_id, demand.blueprint_id);
        match self.context.stores.placement.decide_definitions(cluster, blueprint, &mut rule).await
        {
            Ok(()) => Ok(decided),
            Err(store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The part of the state that matters to resources waiting for the kind.
fn status(demand: &Demand) -> Option<(DefinitionPhase, Option<String>, bool)> {
    let row = demand.definitions.as_ref()?;
    Some((row.phase, row.found.clone(), row.problem.is_none()))
}
