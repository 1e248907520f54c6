//! The management fleet: brings what a project's resources share to where they
//! live, and takes it away after them. One turn looks at a whole cluster by a
//! few lists and acts only where something is not as it should be.
//!
//! For each project: plan (pure) → record what is to happen → act → plan again
//! on what the actions answered. What goes is recorded before it goes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use slipway_core::audit::Actor;
use slipway_core::catalog::cluster::Cluster;
use slipway_core::fleet::{SharedKey, Sight, Tenancy, Wanted};
use slipway_core::ids::{ClusterId, ProjectId};
use slipway_core::placement::{NamespacePhase, ProviderPhase};
use slipway_core::rules::fleet::{self, Plan, Step};
use slipway_render::shared::{self, FleetSettings, SharedObject};

use crate::Context;
use crate::gate::Gate;
use crate::ports::management::Management;
use crate::ports::placement::Found;
use crate::ports::store;

mod delivery;

/// Rounds of planning and acting for one project in one turn: base, secret,
/// ProviderConfig, and one to see that all is well.
const ROUNDS: usize = 4;

/// The clusters that this process can reach. Clones share it, and see what is
/// added later.
#[derive(Debug, Clone, Default)]
pub struct Reached(Arc<RwLock<BTreeMap<ClusterId, Arc<dyn Management>>>>);

impl Reached {
    pub fn add(&self, cluster: ClusterId, management: Arc<dyn Management>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(cluster, management);
    }

    pub fn list(&self) -> Vec<(ClusterId, Arc<dyn Management>)> {
        let reached = self.0.read().unwrap_or_else(PoisonError::into_inner);
        reached.iter().map(|(id, management)| (*id, Arc::clone(management))).collect()
    }
}

/// The fleet on one cluster.
#[derive(Debug, Clone)]
pub struct Fleet {
    context: Context,
    settings: Arc<FleetSettings>,
    actor: Actor,
    /// Asked right before each action outside whether the mode lets it through.
    gate: Arc<Gate>,
}

/// What came of a turn.
#[derive(Debug, Default)]
pub struct Turned {
    pub projects: usize,
    pub steps: usize,
    /// Something waits for the cluster and is looked at again soon.
    pub waiting: bool,
    pub errors: Vec<String>,
}

impl Turned {
    fn add(&mut self, other: Self) {
        self.steps += other.steps;
        self.waiting |= other.waiting;
        self.errors.extend(other.errors);
    }
}

impl Fleet {
    pub fn new(context: Context, settings: FleetSettings, gate: Arc<Gate>, worker: &str) -> Self {
        let actor = Actor::new(format!("fleet:{worker}"));
        Self { context, settings: Arc::new(settings), actor, gate }
    }

    pub const fn context(&self) -> &Context {
        &self.context
    }

    /// Looks at the whole cluster and brings every project there forward.
    /// Nothing is touched on a cluster that is not the one it was registered as.
    pub async fn turn(
        &self,
        cluster: &Cluster,
        management: &dyn Management,
    ) -> Result<Turned, store::Error> {
        let mut turned = Turned::default();
        let identity = match self.verify(cluster, management).await? {
            Ok(identity) => identity,
            Err(problem) => {
                turned.errors.push(problem);
                return Ok(turned);
            }
        };
        management.expect(&self.context.stores.placement.cluster_kinds(cluster.id).await?);
        let tenancies = self.context.stores.placement.tenancy_list(cluster.id).await?;
        if tenancies.iter().all(is_done) {
            return Ok(turned);
        }
        let providers = providers(&tenancies);
        let mut sight = match management.survey(Some(&identity), &providers).await {
            Ok(sight) => sight,
            Err(error) => {
                turned.errors.push(error.to_string());
                return Ok(turned);
            }
        };
        match self.deliver(cluster.id, management, &tenancies).await {
            Ok(delivered) => turned.add(delivered),
            // Projects go on without it.
            Err(error) => turned.errors.push(format!("delivery: {error}")),
        }
        for tenancy in tenancies.iter().filter(|tenancy| !is_done(tenancy)) {
            turned.projects += 1;
            match self.settle(tenancy, management, &mut sight).await {
                Ok(settled) => turned.add(settled),
                // One project's row stops no other's.
                Err(error) => {
                    turned.errors.push(format!("{}: {error}", tenancy.assignment.namespace));
                }
            }
        }
        Ok(turned)
    }

    /// Asks the cluster what it is and writes that down. Its identity, or why
    /// nothing may be done there.
    async fn verify(
        &self,
        cluster: &Cluster,
        management: &dyn Management,
    ) -> Result<Result<String, String>, store::Error> {
        let known = cluster.substrate_uid.as_deref();
        let found = match management.verify().await {
            Ok(facts) => {
                let changed = known.filter(|known| *known != facts.identity).map(|known| {
                    format!(
                        "this is another cluster: it has the identity {}, and {known} was registered",
                        facts.identity
                    )
                });
                Found {
                    identity: Some(facts.identity),
                    problem: changed.or(facts.problem),
                    facts: facts.facts,
                }
            }
            Err(error) => Found {
                identity: None,
                problem: Some(error.to_string()),
                facts: cluster
                    .verification
                    .as_ref()
                    .map(|before| before.facts.clone())
                    .unwrap_or_default(),
            },
        };
        self.context.stores.placement.cluster_verified(cluster.id, &found).await?;
        Ok(match (found.identity, found.problem) {
            (Some(identity), None) => Ok(identity),
            (_, problem) => Err(problem.unwrap_or_else(|| "its identity is not known".to_owned())),
        })
    }

    async fn settle(
        &self,
        tenancy: &Tenancy,
        management: &dyn Management,
        sight: &mut Sight,
    ) -> Result<Turned, store::Error> {
        let mut turned = Turned::default();
        let project = tenancy.assignment.project_id;
        let mut tenancy = tenancy.clone();
        let mut problems = Vec::new();
        // What was in the way stays said until it was tried again: else every
        // turn would take it back and say it anew.
        let mut said = tenancy.assignment.standing.problems.clone();
        for _ in 0..ROUNDS {
            let objects = self.objects(&tenancy);
            let mut plan = self.plan(&tenancy, &objects, sight);
            if plan.steps.is_empty() {
                said.clear();
            }
            plan = with(plan, &said);
            if plan.steps.is_empty() && fleet::record(&tenancy, &plan, &self.actor).is_empty() {
                break;
            }
            // Under lock, on what is true now: somebody may have declared.
            let Some((locked, plan)) = self.record(project, sight, &said).await? else {
                break;
            };
            tenancy = locked;
            if plan.steps.is_empty() {
                break;
            }
            let objects = self.objects(&tenancy);
            let mut withheld = false;
            for step in &plan.steps {
                let entered = self.gate.enter(&self.context.stores).await?;
                let _pass = match entered {
                    Ok(pass) => pass,
                    Err(mode) => {
                        problems.push(format!(
                            "nothing is done there while the installation is {}",
                            mode.name()
                        ));
                        withheld = true;
                        break;
                    }
                };
                turned.steps += 1;
                if let Err(problem) = act(management, &objects, step, sight).await {
                    problems.push(problem);
                    // What comes after it needs it.
                    break;
                }
            }
            said.clear();
            if !problems.is_empty() {
                // Tried again by the next turn. What is withheld is shown, and
                // nobody's error.
                if !withheld {
                    turned.errors.extend(problems.iter().cloned());
                }
                break;
            }
        }
        if !problems.is_empty() {
            self.record(project, sight, &problems).await?;
        }
        let phase = tenancy.assignment.namespace_phase;
        let standing = &tenancy.assignment.standing;
        turned.waiting = !matches!(phase, NamespacePhase::Ready | NamespacePhase::Deleted)
            || standing.providers.iter().any(|provider| provider.phase != ProviderPhase::Ready);
        Ok(turned)
    }

    fn objects(&self, tenancy: &Tenancy) -> BTreeMap<SharedKey, SharedObject> {
        let objects = shared::objects(tenancy, &self.settings);
        objects.into_iter().map(|object| (object.wanted.key.clone(), object)).collect()
    }

    fn plan(
        &self,
        tenancy: &Tenancy,
        objects: &BTreeMap<SharedKey, SharedObject>,
        sight: &Sight,
    ) -> Plan {
        let mut wanted: Vec<Wanted> =
            objects.values().map(|object| object.wanted.clone()).collect();
        wanted.sort_by_key(|want| want.key.kind);
        fleet::plan(tenancy, &wanted, sight)
    }

    /// Plans and records in one transaction. The project as it is after that;
    /// none if its place is gone.
    async fn record(
        &self,
        project: ProjectId,
        sight: &Sight,
        problems: &[String],
    ) -> Result<Option<(Tenancy, Plan)>, store::Error> {
        let mut decided = None;
        let mut rule = |tenancy: &Tenancy| {
            let plan = with(self.plan(tenancy, &self.objects(tenancy), sight), problems);
            let commit = fleet::record(tenancy, &plan, &self.actor);
            decided = Some((tenancy.clone(), plan, !commit.is_empty()));
            Ok(commit)
        };
        match self.context.stores.placement.decide_tenancy(project, &mut rule).await {
            Ok(()) => {}
            Err(store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        }
        let Some((mut tenancy, plan, written)) = decided else {
            return Ok(None);
        };
        if written {
            if opens(&tenancy, &plan) {
                self.context.stores.placement.tenancy_wake(project).await?;
                self.context.wakes.wake();
            }
            let place = &mut tenancy.assignment;
            place.revision = place.revision.next();
            place.namespace_phase = plan.phase;
            place.standing = plan.standing.clone();
        }
        Ok(Some((tenancy, plan)))
    }
}

/// Whether resources waited for what is there now.
fn opens(before: &Tenancy, plan: &Plan) -> bool {
    let was = &before.assignment;
    let opened = plan.phase == NamespacePhase::Ready && was.namespace_phase != plan.phase;
    let ready = |standing: &slipway_core::placement::Standing| -> BTreeSet<String> {
        let ready = standing.providers.iter().filter(|one| one.phase == ProviderPhase::Ready);
        ready.map(|one| one.provider.clone()).collect()
    };
    opened || !ready(&plan.standing).is_subset(&ready(&was.standing))
}

/// The place is cleared, and nothing is asked of it.
fn is_done(tenancy: &Tenancy) -> bool {
    tenancy.is_leaving() && tenancy.assignment.namespace_phase == NamespacePhase::Deleted
}

fn providers(tenancies: &[Tenancy]) -> BTreeSet<String> {
    let used = tenancies.iter().flat_map(|tenancy| &tenancy.uses).map(|used| &used.provider);
    let standing = tenancies.iter().flat_map(|tenancy| &tenancy.assignment.standing.providers);
    used.chain(standing.map(|standing| &standing.provider)).cloned().collect()
}

fn with(mut plan: Plan, problems: &[String]) -> Plan {
    for problem in problems {
        if !plan.standing.problems.contains(problem) {
            plan.standing.problems.push(problem.clone());
        }
    }
    plan
}

/// Does one thing outside, and notes in the sight what came of it.
async fn act(
    management: &dyn Management,
    objects: &BTreeMap<SharedKey, SharedObject>,
    step: &Step,
    sight: &mut Sight,
) -> Result<(), String> {
    match step {
        Step::Put(key) => {
            // It was wanted when the plan was made from the same objects.
            let Some(object) = objects.get(key) else {
                return Ok(());
            };
            let seen = management.put(object).await.map_err(|error| error.to_string())?;
            sight.objects.insert(key.clone(), seen);
        }
        Step::Prove(key) => match management.find(key).await.map_err(|error| error.to_string())? {
            Some(seen) => {
                sight.objects.insert(key.clone(), seen);
            }
            None => {
                sight.absent.insert(key.clone());
            }
        },
        Step::Remove { key, uid } => remove(management, key, uid, sight).await?,
        Step::RemoveIfEmpty { key, uid } => {
            let residents = management.residents(&key.namespace).await;
            let residents = residents.map_err(|error| error.to_string())?;
            if !residents.is_empty() {
                return Err(format!(
                    "namespace {} is not empty and stays: {}",
                    key.name,
                    residents.join(", ")
                ));
            }
            remove(management, key, uid, sight).await?;
        }
    }
    Ok(())
}

/// It is told to go; that it is gone is for the next look to see.
async fn remove(
    management: &dyn Management,
    key: &SharedKey,
    uid: &str,
    sight: &mut Sight,
) -> Result<(), String> {
    management.remove(key, uid).await.map_err(|error| error.to_string())?;
    if let Some(seen) = sight.objects.get_mut(key) {
        seen.terminating = true;
    }
    Ok(())
}
