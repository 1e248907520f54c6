//! The placement loop's work on management clusters: creates what the resources
//! of a project share on its cluster, and removes it after them. A pass reads a
//! whole cluster with a few lists and acts only where something differs.
//!
//! For each project: plan (pure) → record the plan → act → plan again on the
//! results of the actions. A removal is recorded before it starts.
//!
//! A pass runs under a lease, so that one replica at a time works on a cluster. An
//! action that outlives its lease is harmless: each write names what was read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use slipway_core::access::audit::Actor;
use slipway_core::ids::{ClusterId, ProjectId};
use slipway_core::placement::cluster::{Cluster, ClusterAssignment};
use slipway_core::placement::namespace::{NamespacePhase, NamespaceStatus, ProviderPhase};
use slipway_core::placement::rules::namespace::{self, PlacementAction, PlacementDecision};
use slipway_core::placement::rules::residents;
use slipway_core::placement::shared_objects::{
    Desired, ProjectNamespace, SharedKey, SharedKind, SharedObjects,
};
use slipway_core::time::Timestamp;
use slipway_render::shared::{self, PlacementSettings, SharedObject};

use crate::Context;
use crate::permits::{Permit, Permits};
use crate::placement::management::Management;
use crate::placement::port::Found;
use crate::ports::{store, substrate};

mod definitions;

/// Rounds of planning and acting for one project in one pass: base, secret,
/// ProviderConfig, and one to check the result.
const ROUNDS: usize = 4;

/// The clusters that this process can reach. Clones share the registry and see
/// later additions.
#[derive(Debug, Clone, Default)]
pub struct ManagementRegistry(Arc<RwLock<BTreeMap<ClusterId, Arc<dyn Management>>>>);

impl ManagementRegistry {
    pub fn add(&self, cluster: ClusterId, management: Arc<dyn Management>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(cluster, management);
    }

    pub fn remove(&self, cluster: ClusterId) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&cluster);
    }

    pub fn list(&self) -> Vec<(ClusterId, Arc<dyn Management>)> {
        let registry = self.0.read().unwrap_or_else(PoisonError::into_inner);
        registry.iter().map(|(id, management)| (*id, Arc::clone(management))).collect()
    }
}

/// Reconciles the placements on one cluster.
#[derive(Debug, Clone)]
pub struct PlacementReconciler {
    context: Context,
    settings: Arc<PlacementSettings>,
    actor: Actor,
    /// Grants or refuses each outside action, right before it starts.
    permits: Arc<Permits>,
    create_lands_within: Duration,
}

/// The lease of a pass, as its renewer knows it.
pub trait PassLease: fmt::Debug + Send + Sync {
    /// How long one action may take.
    fn deadline(&self) -> Duration;

    /// Whether there is more lease left than an action may take.
    fn allows_action(&self) -> bool;
}

/// What the work on one cluster has in common.
#[derive(Debug, Clone, Copy)]
struct Pass<'a> {
    management: &'a dyn Management,
    lease: &'a dyn PassLease,
}

/// A decision, and the project as it was recorded with it.
struct Recorded {
    project_namespace: ProjectNamespace,
    decision: PlacementDecision,
    /// Until when the create of the namespace in this decision may land, if no other
    /// one is on its way.
    only_create: Option<Timestamp>,
}

/// How an action ended.
enum Acted {
    Done,
    /// Nothing was done: the lease is about to end, or the object was written
    /// since it was observed. The next pass observes again.
    Postponed,
    /// The mode does not permit it.
    Withheld(String),
    Failed(String),
}

/// The result of a pass.
#[derive(Debug, Default)]
pub struct PassSummary {
    pub projects: usize,
    pub actions: usize,
    /// Something waits for the cluster; the next pass comes soon.
    pub waiting: bool,
    pub errors: Vec<String>,
}

impl PassSummary {
    fn add(&mut self, other: Self) {
        self.actions += other.actions;
        self.waiting |= other.waiting;
        self.errors.extend(other.errors);
    }
}

impl PlacementReconciler {
    pub fn new(
        context: Context,
        settings: PlacementSettings,
        permits: Arc<Permits>,
        worker: &str,
    ) -> Self {
        let actor = Actor::new(format!("placement:{worker}"));
        let create_lands_within = namespace::CREATE_LANDS_WITHIN;
        Self { context, settings: Arc::new(settings), actor, permits, create_lands_within }
    }

    /// For how long a create of a namespace that nobody answered may land.
    #[must_use]
    pub const fn with_create_lands_within(mut self, within: Duration) -> Self {
        self.create_lands_within = within;
        self
    }

    pub const fn context(&self) -> &Context {
        &self.context
    }

    /// One pass: reads the whole cluster and advances every project there.
    /// Touches nothing on a cluster whose identity is not the registered one.
    pub async fn pass(
        &self,
        cluster: &Cluster,
        management: &dyn Management,
        lease: &dyn PassLease,
    ) -> Result<PassSummary, store::Error> {
        let pass = Pass { management, lease };
        let mut summary = PassSummary::default();
        let identity = match self.verify(cluster, management).await? {
            Ok(identity) => identity,
            Err(problem) => {
                summary.errors.push(problem);
                return Ok(summary);
            }
        };
        management.expect(&self.context.stores.placement.cluster_kinds(cluster.id).await?);
        let project_namespaces =
            self.context.stores.placement.project_namespace_list(cluster.id).await?;
        if project_namespaces.iter().all(is_done) {
            return Ok(summary);
        }
        let providers = providers(&project_namespaces);
        let mut observed = match management.survey(Some(&identity), &providers).await {
            Ok(observed) => observed,
            Err(error) => {
                summary.errors.push(error.to_string());
                return Ok(summary);
            }
        };
        match self.install_definitions(cluster.id, pass, &project_namespaces).await {
            Ok(definitions) => summary.add(definitions),
            // Projects continue without them.
            Err(error) => summary.errors.push(format!("definitions: {error}")),
        }
        for project_namespace in
            project_namespaces.iter().filter(|project_namespace| !is_done(project_namespace))
        {
            summary.projects += 1;
            match self.converge(project_namespace, pass, &mut observed).await {
                Ok(settled) => summary.add(settled),
                // An error with one project's row stops no other project.
                Err(error) => {
                    summary
                        .errors
                        .push(format!("{}: {error}", project_namespace.assignment.namespace));
                }
            }
        }
        Ok(summary)
    }

    /// Verifies the cluster and records the result. Returns its identity, or
    /// why nothing may be done there.
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

    async fn converge(
        &self,
        project_namespace: &ProjectNamespace,
        pass: Pass<'_>,
        observed: &mut SharedObjects,
    ) -> Result<PassSummary, store::Error> {
        let mut summary = PassSummary::default();
        let project = project_namespace.assignment.project_id;
        let mut project_namespace = project_namespace.clone();
        let mut problems = Vec::new();
        let mut is_withheld = false;
        // A problem stays recorded until the action was tried again; otherwise
        // every pass would clear it and record it anew.
        let mut said = project_namespace.assignment.status.problems.clone();
        for _ in 0..ROUNDS {
            let objects = self.objects(&project_namespace);
            let mut decision = self.decision(&project_namespace, &objects, observed);
            if decision.actions.is_empty() {
                said.clear();
            }
            decision = with(decision, &said);
            if decision.actions.is_empty()
                && namespace::record(&project_namespace, &decision, &self.actor).is_empty()
            {
                break;
            }
            // Decide again under lock, on current rows: somebody may have declared.
            let Some(recorded) = self.record(project, observed, &said, true).await? else {
                break;
            };
            let Recorded { decision, only_create, .. } = recorded;
            project_namespace = recorded.project_namespace;
            if decision.actions.is_empty() {
                break;
            }
            let objects = self.objects(&project_namespace);
            let assignment = project_namespace.assignment.clone();
            let mut acted = Acted::Done;
            for action in &decision.actions {
                summary.actions += 1;
                acted = self.act(pass, &assignment, &objects, action, observed).await?;
                // The following actions depend on this one.
                if !matches!(acted, Acted::Done) {
                    break;
                }
                if let (PlacementAction::Put(key), Some(until)) = (action, only_create)
                    && key.kind == SharedKind::Namespace
                {
                    observed.answered.insert(key.clone(), until);
                }
            }
            match acted {
                Acted::Done => said.clear(),
                Acted::Postponed => {
                    summary.waiting = true;
                    break;
                }
                // Shown, and not an error. The next pass tries again.
                Acted::Withheld(problem) => {
                    problems.push(problem);
                    is_withheld = true;
                    break;
                }
                Acted::Failed(problem) => {
                    summary.errors.push(problem.clone());
                    problems.push(problem);
                    break;
                }
            }
        }
        if !problems.is_empty() {
            self.record(project, observed, &problems, false).await?;
        }
        if is_withheld {
            // The end of the mode wakes the loop.
            return Ok(summary);
        }
        let phase = project_namespace.assignment.namespace_phase;
        let status = &project_namespace.assignment.status;
        summary.waiting |= !matches!(phase, NamespacePhase::Ready | NamespacePhase::Deleted)
            || status.providers.iter().any(|provider| provider.phase != ProviderPhase::Ready);
        Ok(summary)
    }

    /// Carries out one action, and adds its result to the observation. Asks for
    /// the permit and checks the lease right before it.
    async fn act(
        &self,
        Pass { management, lease }: Pass<'_>,
        assignment: &ClusterAssignment,
        objects: &BTreeMap<SharedKey, SharedObject>,
        action: &PlacementAction,
        observed: &mut SharedObjects,
    ) -> Result<Acted, store::Error> {
        if let PlacementAction::RemoveIfEmpty(removal) = action {
            // Listing every kind may take longer than an action.
            match management.residents(assignment).await {
                Ok(found) if found.is_empty() => {}
                Ok(found) => {
                    let shown: Vec<_> = found.iter().map(residents::shown).collect();
                    return Ok(Acted::Failed(format!(
                        "namespace {} is not empty and stays: {}",
                        removal.key.name,
                        shown.join(", ")
                    )));
                }
                Err(error) => return Ok(Acted::Failed(error.to_string())),
            }
        }
        let _permit = match self.permit(lease).await? {
            Ok(permit) => permit,
            Err(refused) => return Ok(refused),
        };
        Ok(match within(lease, request(management, objects, action, observed)).await {
            Ok(()) => Acted::Done,
            Err(substrate::Error::Conflict(_)) if is_removal(action) => Acted::Postponed,
            Err(substrate::Error::Withheld) => Acted::Withheld(self.withheld().await?),
            Err(error) => Acted::Failed(error.to_string()),
        })
    }

    /// The permit for one action, which lasts as long as the action; or why the
    /// action does not start.
    async fn permit(&self, lease: &dyn PassLease) -> Result<Result<Permit, Acted>, store::Error> {
        let permit = match self.permits.enter(&self.context.stores).await? {
            Ok(permit) => permit,
            Err(_) => return Ok(Err(Acted::Withheld(self.withheld().await?))),
        };
        // After the permit, which may query the database.
        Ok(if lease.allows_action() { Ok(permit) } else { Err(Acted::Postponed) })
    }

    /// What people read about an action that the mode does not permit.
    async fn withheld(&self) -> Result<String, store::Error> {
        let mode = self.permits.read(&self.context.stores).await?.mode;
        Ok(format!("nothing is done there while the installation is {}", mode.name()))
    }

    fn objects(&self, project_namespace: &ProjectNamespace) -> BTreeMap<SharedKey, SharedObject> {
        let objects = shared::objects(project_namespace, &self.settings);
        objects.into_iter().map(|object| (object.wanted.key.clone(), object)).collect()
    }

    fn decision(
        &self,
        project_namespace: &ProjectNamespace,
        objects: &BTreeMap<SharedKey, SharedObject>,
        observed: &SharedObjects,
    ) -> PlacementDecision {
        let mut wanted: Vec<Desired> =
            objects.values().map(|object| object.wanted.clone()).collect();
        wanted.sort_by_key(|want| want.key.kind);
        namespace::decision(project_namespace, &wanted, observed)
    }

    /// Plans and records in one transaction, before the actions or without acting.
    /// Returns the project as it is then; `None` if its placement is gone.
    async fn record(
        &self,
        project: ProjectId,
        observed: &SharedObjects,
        problems: &[String],
        acts: bool,
    ) -> Result<Option<Recorded>, store::Error> {
        let mut decided = None;
        let mut rule = |project_namespace: &ProjectNamespace| {
            let mut decision = with(
                self.decision(project_namespace, &self.objects(project_namespace), observed),
                problems,
            );
            let only_create = if acts {
                let within = self.create_lands_within;
                namespace::sends(project_namespace, observed, &mut decision, within)
            } else {
                None
            };
            let commit = namespace::record(project_namespace, &decision, &self.actor);
            let project_namespace = project_namespace.clone();
            let recorded = Recorded { project_namespace, decision, only_create };
            decided = Some((recorded, !commit.is_empty()));
            Ok(commit)
        };
        match self.context.stores.placement.decide_project_namespace(project, &mut rule).await {
            Ok(()) => {}
            Err(store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        }
        let Some((mut recorded, written)) = decided else {
            return Ok(None);
        };
        let Recorded { project_namespace, decision, .. } = &mut recorded;
        if written {
            if opens(project_namespace, decision) {
                self.context.stores.placement.project_namespace_wake(project).await?;
                self.context.wakes.wake();
            }
            let assignment = &mut project_namespace.assignment;
            assignment.revision = assignment.revision.next();
            assignment.namespace_phase = decision.phase;
            assignment.status = decision.status.clone();
        }
        Ok(Some(recorded))
    }
}

/// Whether something became ready that resources may wait for.
fn opens(before: &ProjectNamespace, decision: &PlacementDecision) -> bool {
    let was = &before.assignment;
    let opened = decision.phase == NamespacePhase::Ready && was.namespace_phase != decision.phase;
    let ready = |status: &NamespaceStatus| -> BTreeSet<(String, String)> {
        let ready = status.providers.iter().filter(|one| one.phase == ProviderPhase::Ready);
        ready.map(|one| (one.provider.clone(), one.config.clone())).collect()
    };
    opened || !ready(&decision.status).is_subset(&ready(&was.status))
}

/// The namespace is cleared and nothing is left to do.
fn is_done(project_namespace: &ProjectNamespace) -> bool {
    project_namespace.is_leaving()
        && project_namespace.assignment.namespace_phase == NamespacePhase::Deleted
}

fn providers(project_namespaces: &[ProjectNamespace]) -> BTreeSet<String> {
    let used = project_namespaces
        .iter()
        .flat_map(|project_namespace| &project_namespace.uses)
        .map(|used| &used.provider);
    let status = project_namespaces
        .iter()
        .flat_map(|project_namespace| &project_namespace.assignment.status.providers);
    used.chain(status.map(|status| &status.provider)).cloned().collect()
}

fn with(mut decision: PlacementDecision, problems: &[String]) -> PlacementDecision {
    for problem in problems {
        if !decision.status.problems.contains(problem) {
            decision.status.problems.push(problem.clone());
        }
    }
    decision
}

/// The answer to an action within its deadline.
async fn within<T>(
    lease: &dyn PassLease,
    action: impl Future<Output = Result<T, substrate::Error>>,
) -> Result<T, substrate::Error> {
    let limit = lease.deadline();
    tokio::time::timeout(limit, action).await.unwrap_or_else(|_| {
        let limit = limit.as_millis();
        Err(substrate::Error::Failed(format!("the cluster did not answer within {limit} ms")))
    })
}

const fn is_removal(action: &PlacementAction) -> bool {
    matches!(action, PlacementAction::Remove(_) | PlacementAction::RemoveIfEmpty(_))
}

async fn request(
    management: &dyn Management,
    objects: &BTreeMap<SharedKey, SharedObject>,
    action: &PlacementAction,
    observed: &mut SharedObjects,
) -> Result<(), substrate::Error> {
    match action {
        PlacementAction::Put(key) => {
            // Always present: the plan was made from the same objects.
            let Some(object) = objects.get(key) else {
                return Ok(());
            };
            let seen = management.put(object).await?;
            observed.objects.insert(key.clone(), seen);
        }
        PlacementAction::Prove(key) => match management.find(key).await? {
            Some(seen) => {
                observed.objects.insert(key.clone(), seen);
            }
            None => {
                observed.absent.insert(key.clone());
            }
        },
        PlacementAction::Remove(removal) | PlacementAction::RemoveIfEmpty(removal) => {
            management.remove(removal).await?;
            // A later observation shows when the object is gone.
            if let Some(seen) = observed.objects.get_mut(&removal.key) {
                seen.terminating = true;
            }
        }
    }
    Ok(())
}
