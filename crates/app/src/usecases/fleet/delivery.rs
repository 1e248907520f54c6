//! Delivery, the fleet's other half: has a cluster know the kinds of the
//! blueprints that are to be delivered, once a project lives on it. Nothing is
//! asked of a cluster while nothing is.
//!
//! For each blueprint: look at its three objects → plan (pure) → record → act →
//! plan again on what the actions answered.

use slipway_core::delivery::{DeliveryPhase, DeliverySight, Demand, Look};
use slipway_core::fleet::Tenancy;
use slipway_core::ids::ClusterId;
use slipway_core::rules::delivery::{self as rules, Plan, Step};
use slipway_render::delivery::{self, Bundle};

use super::{Fleet, Turned};
use crate::ports::management::Management;
use crate::ports::store;

/// Rounds of planning and acting for one blueprint in one turn: XRD and role,
/// Composition, rights, and one to see that all is well.
const ROUNDS: usize = 4;

/// What came of one blueprint.
#[derive(Default)]
struct Brought {
    steps: usize,
    /// It is looked at again soon.
    waits: bool,
    /// Its kind can be used and could not before.
    opens: bool,
}

/// What the actions of one round came to.
enum Acted {
    Done,
    Failed(String),
    Withheld(String),
}

impl Fleet {
    /// A blueprint that stands in nobody's way stops no other, and no project.
    pub(super) async fn deliver(
        &self,
        cluster: ClusterId,
        management: &dyn Management,
        tenancies: &[Tenancy],
    ) -> Result<Turned, store::Error> {
        let mut turned = Turned::default();
        if tenancies.iter().all(Tenancy::is_leaving) {
            return Ok(turned);
        }
        let mut opened = false;
        for demand in self.context.stores.placement.demand_list(cluster).await? {
            let slug = demand.slug.clone();
            match self.bring(demand, management).await {
                Ok(brought) => {
                    turned.steps += brought.steps;
                    turned.waiting |= brought.waits;
                    opened |= brought.opens;
                }
                Err(error) => turned.errors.push(format!("blueprint {slug}: {error}")),
            }
        }
        if opened {
            // Whoever was declared before its kind was there waits for it.
            for tenancy in tenancies.iter().filter(|tenancy| !tenancy.is_leaving()) {
                self.context.stores.placement.tenancy_wake(tenancy.assignment.project_id).await?;
            }
            self.context.wakes.wake();
        }
        Ok(turned)
    }

    async fn bring(
        &self,
        mut demand: Demand,
        management: &dyn Management,
    ) -> Result<Brought, store::Error> {
        let mut brought = Brought::default();
        let bundle = match delivery::render(&demand, self.settings.installation) {
            Ok(bundle) => bundle,
            Err(fault) => {
                self.stuck(&demand, &fault.to_string()).await?;
                return Ok(brought);
            }
        };
        let mut sight = DeliverySight::default();
        for object in &bundle.objects {
            sight.objects.insert(object.key.clone(), management.look(object).await);
        }
        let before = standing(&demand);
        for _ in 0..ROUNDS {
            let noted =
                self.note(&demand, &bundle, &sight, |plan, demand| plan.trying(demand)).await?;
            let Some((locked, plan)) = noted else {
                brought.waits = true;
                break;
            };
            demand = locked;
            brought.waits = plan.phase == DeliveryPhase::Applying;
            brought.opens = plan.phase == DeliveryPhase::Established && standing(&demand) != before;
            if plan.steps.is_empty() {
                break;
            }
            match self.carry_out(&demand, &plan, &bundle, management, &mut sight).await? {
                Acted::Done => brought.steps += plan.steps.len(),
                Acted::Failed(problem) => {
                    // Shown, and tried again at the next interval.
                    let end = |plan: Plan, _: &Demand| plan.failed(&problem);
                    self.note(&demand, &bundle, &sight, end).await?;
                    brought.waits = false;
                    break;
                }
                Acted::Withheld(why) => {
                    let end = |plan: Plan, demand: &Demand| plan.withheld(demand, &why);
                    self.note(&demand, &bundle, &sight, end).await?;
                    brought.waits = true;
                    break;
                }
            }
        }
        Ok(brought)
    }

    /// What is published cannot be rendered.
    async fn stuck(&self, demand: &Demand, problem: &str) -> Result<(), store::Error> {
        let plan = Plan {
            steps: Vec::new(),
            phase: DeliveryPhase::Degraded,
            found: None,
            problem: Some(problem.to_owned()),
        };
        let mut rule = |demand: &Demand| Ok(rules::record(demand, &plan, &self.actor));
        let (cluster, blueprint) = (demand.cluster_id, demand.blueprint_id);
        self.context.stores.placement.decide_delivery(cluster, blueprint, &mut rule).await
    }

    async fn carry_out(
        &self,
        demand: &Demand,
        plan: &Plan,
        bundle: &Bundle,
        management: &dyn Management,
        sight: &mut DeliverySight,
    ) -> Result<Acted, store::Error> {
        for step in &plan.steps {
            let _pass = match self.gate.enter(&self.context.stores).await? {
                Ok(pass) => pass,
                Err(mode) => {
                    let why =
                        format!("nothing is done there while the installation is {}", mode.name());
                    return Ok(Acted::Withheld(why));
                }
            };
            match step {
                Step::AskRights => match management.lacking(&demand.composite_type).await {
                    Ok(lacking) => sight.lacking = Some(lacking),
                    Err(error) => return Ok(Acted::Failed(error.to_string())),
                },
                Step::Put(key) => {
                    // The plan was made from the same objects.
                    let Some(object) = bundle.objects.iter().find(|object| object.key == *key)
                    else {
                        continue;
                    };
                    match management.define(object).await {
                        // A role that we may not write stops nothing.
                        Ok(Look::Refused(problem)) if *key != bundle.delivered.role => {
                            return Ok(Acted::Failed(problem));
                        }
                        Ok(look) => {
                            sight.objects.insert(key.clone(), look);
                        }
                        Err(error) => return Ok(Acted::Failed(error.to_string())),
                    }
                }
            }
        }
        Ok(Acted::Done)
    }

    /// Plans and records in one transaction, on what is true under lock. `None`
    /// if another version is to be there by now, or none: what was rendered and
    /// looked at is not that.
    async fn note(
        &self,
        demand: &Demand,
        bundle: &Bundle,
        sight: &DeliverySight,
        end: impl Fn(Plan, &Demand) -> Plan + Send + Sync,
    ) -> Result<Option<(Demand, Plan)>, store::Error> {
        let planned = |demand: &Demand| end(rules::plan(demand, &bundle.delivered, sight), demand);
        let plan = planned(demand);
        if plan.steps.is_empty() && rules::record(demand, &plan, &self.actor).is_empty() {
            return Ok(Some((demand.clone(), plan)));
        }
        let mut decided = None;
        let mut rule = |locked: &Demand| {
            if locked.version != demand.version {
                decided = None;
                return Ok(slipway_core::commit::Commit::default());
            }
            let plan = planned(locked);
            let commit = rules::record(locked, &plan, &self.actor);
            decided = Some((rules::recorded(locked, &commit), plan));
            Ok(commit)
        };
        let (cluster, blueprint) = (demand.cluster_id, demand.blueprint_id);
        match self.context.stores.placement.decide_delivery(cluster, blueprint, &mut rule).await {
            Ok(()) => Ok(decided),
            Err(store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// What whoever waits for the kind would notice.
fn standing(demand: &Demand) -> Option<(DeliveryPhase, Option<String>, bool)> {
    let row = demand.delivery.as_ref()?;
    Some((row.phase, row.found.clone(), row.problem.is_none()))
}
