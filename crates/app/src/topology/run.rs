//! What the loop over workspaces does: declares servers that are missing, takes down those that
//! are too many, forgets groups that are empty, and wakes servers whose dependencies are there.
//! Each action is decided again under lock, so a pass that dies or runs twice does no harm.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;
use slipway_core::access::audit::Actor;
use slipway_core::access::role::Role;
use slipway_core::blocker::{Blocker, BlockerCode};
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::broker::transition::transitions;
use slipway_core::deletion::door::Doored;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{GroupId, ProvisionedResourceId, ResourceId, Revision, WorkspaceId};
use slipway_core::topology::gates::Door;
use slipway_core::topology::next::{Action, Observed, next, released};
use slipway_core::topology::scale::{self, Asked, GroupSnapshot, NewServer, OfServer};

use super::inventory::Gathered;
use super::port::DeclareServer;
use crate::Context;
use crate::access::authorise::Caller;
use crate::broker::port::DeclareKey;
use crate::deletion::request::DeleteOptions;
use crate::permits::Permits;
use crate::ports::store::Error;

/// Workspaces in one statement.
const PAGE: u32 = 100;

/// How long the loop leaves a group alone whose list refused.
const RELISTED: Duration = Duration::from_secs(10);

/// Why the loop takes a server down.
const REASON: &str = "its group has more servers than are wanted";

/// See the module.
#[derive(Debug, Clone)]
pub struct Runner {
    context: Context,
    permits: Arc<Permits>,
    actor: Actor,
    /// Groups whose list did not agree with our rows, or could not be read, and when.
    refused: Arc<Mutex<HashMap<GroupId, (Instant, Refusal)>>>,
}

/// How a pass ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Servers that were declared or taken down, and groups that were forgotten.
    pub advanced: usize,
    /// Servers that waited for a dependency which is there now.
    pub woken: usize,
    /// Something could not be done; it is tried again.
    pub refused: usize,
    /// A freeze or observe-only withholds everything.
    pub withheld: bool,
    /// Servers come or wait.
    pub waiting: bool,
}

impl Runner {
    /// The name of the loop, and of its periodic task.
    pub const TASK: &'static str = "workspaces";

    pub fn new(context: Context, permits: Arc<Permits>) -> Self {
        let actor = Actor::new(format!("loop:{}", Self::TASK));
        Self { context, permits, actor, refused: Arc::default() }
    }

    pub const fn context(&self) -> &Context {
        &self.context
    }

    pub async fn pass(&self) -> Result<Passed, Error> {
        let mut passed = Passed::default();
        let mut after = None;
        loop {
            let moving = self.context.stores.topology.workspace_moving(after, PAGE).await?;
            for id in &moving {
                match self.advance(*id, &mut passed).await {
                    Ok(()) => {}
                    Err(error) if error.is_logged() => return Err(error),
                    // One that cannot be read holds no other.
                    Err(error) => {
                        tracing::warn!(workspace_id = %id, %error, "a workspace does not go on");
                        passed.refused += 1;
                    }
                }
            }
            after = moving.last().copied();
            if moving.len() < PAGE as usize {
                break;
            }
        }
        if passed.advanced + passed.woken > 0 {
            self.context.wakes.wake();
        }
        Ok(passed)
    }

    async fn advance(&self, id: WorkspaceId, passed: &mut Passed) -> Result<(), Error> {
        let Some(observed) = self.context.stores.topology.workspace_observed(id).await? else {
            return Ok(());
        };
        passed.waiting = true;
        let mut refusals: Vec<(Action, Refusal)> = Vec::new();
        let mut inventories = HashMap::new();
        for action in next(&observed) {
            // What one server of a group is refused for, the next one is, too.
            if let Action::ScaleDown { group, .. } = &action
                && refusals.iter().any(|(refused, _)| refused.takes_down_of(*group))
            {
                continue;
            }
            // While nothing may be changed, nothing is begun.
            let Ok(permit) = self.permits.enter(&self.context.stores).await? else {
                passed.withheld = true;
                return Ok(());
            };
            let mode = permit.revision();
            let lately = match &action {
                Action::ScaleDown { group, .. } => self.lately(*group),
                Action::Declare { .. } | Action::Forget { .. } => None,
            };
            let done = match &action {
                _ if lately.is_some() => lately.map_or(Ok(false), |found| Err(found.into())),
                Action::Declare { group, name } => self.declare(&observed, *group, name).await,
                Action::ScaleDown { group, server } => {
                    // One list a pass: listing costs the provider more than a decision.
                    let inventory = match inventories.entry(*group) {
                        Entry::Occupied(listed) => listed.into_mut(),
                        Entry::Vacant(missing) => missing.insert(self.listed(*group).await?),
                    };
                    self.scale_down(*server, inventory, mode).await
                }
                Action::Forget { group } => self.forget(*group).await,
            };
            match done {
                Ok(true) => passed.advanced += 1,
                Ok(false) => {}
                Err(Error::Refused(refusal)) => {
                    passed.refused += 1;
                    self.refused(&action, &refusal);
                    refusals.push((action, refusal));
                }
                Err(error) => return Err(error),
            }
        }
        self.show(&observed, &refusals).await?;
        self.wake_released(&observed, passed).await
    }

    /// Why the list of a group refused a moment ago, if it did: the provider is not asked again
    /// as often as other workspaces go on.
    fn lately(&self, group: GroupId) -> Option<Refusal> {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.retain(|_, (at, _)| at.elapsed() < RELISTED);
        refused.get(&group).map(|(_, refusal)| refusal.clone())
    }

    fn refused(&self, action: &Action, refusal: &Refusal) {
        use ErrorKind::{InventoryMismatch, InventoryUnavailable};
        let Action::ScaleDown { group, .. } = action else { return };
        if matches!(refusal.kind, InventoryMismatch | InventoryUnavailable) {
            let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            refused.entry(*group).or_insert_with(|| (Instant::now(), refusal.clone()));
        }
    }

    /// Whether a server was declared.
    async fn declare(
        &self,
        observed: &Observed,
        group: GroupId,
        name: &str,
    ) -> Result<bool, Error> {
        let Some(found) = observed.groups.iter().find(|one| one.id == group) else {
            return Ok(false);
        };
        let spec = &found.spec;
        let key = DeclareKey {
            project: observed.workspace.project_id.to_string(),
            handle: name.to_owned(),
            blueprint: spec.blueprint.clone(),
            version: spec.version.clone(),
            credential: spec.credential.clone(),
        };
        let new = NewServer {
            id: ResourceId::new(self.context.entropy.uuid()),
            attempt_id: ProvisionedResourceId::new(self.context.entropy.uuid()),
            name: name.to_owned(),
        };
        let mut transitioned = Vec::new();
        let mut rule = |snapshot: &DeclareServer| {
            let DeclareServer { group, declared } = snapshot;
            let commit = scale::declare(group, declared, &new, &self.actor)?;
            transitioned = transitions(&commit, None);
            Ok(commit)
        };
        self.context.stores.topology.server_declare(group, &key, &mut rule).await?;
        self.context.meter.transitioned(&transitioned);
        Ok(!transitioned.is_empty())
    }

    async fn listed(&self, group: GroupId) -> Result<Gathered, Error> {
        self.context.inventories.of_group(&self.context.stores, group).await
    }

    /// Whether its teardown began.
    async fn scale_down(
        &self,
        server: ResourceId,
        inventory: &Gathered,
        mode: Revision,
    ) -> Result<bool, Error> {
        let caller = Caller::trusted(&self.actor.name);
        let options = DeleteOptions { reason: Some(REASON), ..DeleteOptions::default() };
        let ask = options.ask(&self.context, &caller)?;
        let mut transitioned = Vec::new();
        let mut rule = |snapshot: &Doored<OfServer<ResourceSnapshot>>| {
            let surplus = snapshot.of.owner.as_ref().is_some_and(is_surplus);
            if !surplus {
                return Ok(slipway_core::commit::Commit::default());
            }
            let (door, inventory) = (Door::Apply, inventory.now());
            let asked = Asked { door, caller: Role::Operator, inventory: &inventory, ask: &ask };
            let requested = scale::leave(&snapshot.of, &snapshot.door, &asked, &self.actor)?;
            transitioned = transitions(&requested.commit, Some(&snapshot.of.of));
            requested.commit.permitted(Some(mode))
        };
        let input = ask.input(self.context.settings.deletion);
        self.context.stores.topology.server_decide_deletion(server, input, &mut rule).await?;
        self.context.meter.transitioned(&transitioned);
        Ok(!transitioned.is_empty())
    }

    async fn forget(&self, group: GroupId) -> Result<bool, Error> {
        let mut done = false;
        let mut rule = |snapshot: &GroupSnapshot| {
            let commit = scale::forget(snapshot, &self.actor);
            done = !commit.is_empty();
            Ok(commit)
        };
        self.context.stores.topology.group_decide(group, &mut rule).await?;
        Ok(done)
    }

    /// Wakes the servers that waited for a dependency which is there now.
    async fn wake_released(&self, observed: &Observed, passed: &mut Passed) -> Result<(), Error> {
        let stores = &self.context.stores;
        let waiting = stores.topology.workspace_pending(observed.workspace.id).await?;
        let released = released(observed, &waiting);
        if !released.is_empty() {
            stores.broker.attempt_wake(&released).await?;
            passed.woken += released.len();
        }
        Ok(())
    }

    /// Shows what a person has to make way for; with no refusal, that nothing is in the way.
    async fn show(&self, observed: &Observed, refusals: &[(Action, Refusal)]) -> Result<(), Error> {
        let store = &self.context.stores.topology;
        let id = observed.workspace.id;
        let before = store.workspace_blockers(id).await?;
        let since = before.first().map_or_else(|| self.context.clock.now(), |one| one.since);
        let blockers: Vec<Blocker> = refusals
            .first()
            .map(|(action, refusal)| Blocker {
                code: BlockerCode::WorkspaceBlocked,
                message: format!("{}: {}", describe(observed, action), refusal.message),
                since,
                evidence: json!({ "code": refusal.kind.code(), "details": refusal.details }),
                next_retry_at: None,
            })
            .into_iter()
            .collect();
        let same = |(one, other): (&Blocker, &Blocker)| one.message == other.message;
        if before.len() == blockers.len() && before.iter().zip(&blockers).all(same) {
            return Ok(());
        }
        if let Some(blocker) = blockers.first() {
            tracing::warn!(workspace_id = %id, message = blocker.message, "a workspace waits");
        }
        store.workspace_block(id, &blockers).await
    }
}

/// Whether the group has more servers than it should have, with the one in question.
fn is_surplus(owner: &GroupSnapshot) -> bool {
    owner.counts.others >= owner.group.target()
}

fn describe(observed: &Observed, action: &Action) -> String {
    let group = |id: &GroupId| {
        let found = observed.groups.iter().find(|one| one.id == *id);
        found.map_or_else(String::new, |one| one.spec.name.to_string())
    };
    match action {
        Action::Declare { group: id, name } => {
            format!("server `{name}` of group `{}` cannot be declared", group(id))
        }
        Action::ScaleDown { group: id, server } => {
            let found = observed.servers.iter().find(|one| one.id == *server);
            let name = found.map_or("", |one| one.name.as_str());
            format!("server `{name}` of group `{}` cannot be scaled down", group(id))
        }
        Action::Forget { group: id } => format!("group `{}` cannot be forgotten", group(id)),
    }
}

/// After something was decided about a workspace: its loop goes on now, in whatever replica.
/// The change is committed, so a failure here is no answer to it.
pub(crate) async fn wake(context: &Context) {
    if let Err(error) = context.stores.operations.task_wake(Runner::TASK).await {
        tracing::warn!(%error, "the loop over workspaces was not woken; it comes later by itself");
    }
    context.wakes.workspaces.notify_one();
}
