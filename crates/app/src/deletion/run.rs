//! What the loop over deletions does: begins those whose grace is over, and takes the
//! deletions of containers further. Both are writes of ours; what happens outside is the
//! work of the loops over resources and placements.

use std::sync::Arc;

use serde_json::{Value, json};
use slipway_core::access::audit::Actor;
use slipway_core::blocker::{Blocker, BlockerCode};
use slipway_core::broker::decide::Outcome;
use slipway_core::broker::delete;
use slipway_core::broker::snapshot::ResourceSnapshot;
use slipway_core::broker::transition::transitions;
use slipway_core::catalog::blueprint::Blueprint;
use slipway_core::catalog::cloud::Cloud;
use slipway_core::catalog::credential::Credential;
use slipway_core::catalog::label::LabelDefinition;
use slipway_core::catalog::project::Project;
use slipway_core::deletion::door::Doored;
use slipway_core::deletion::record::Deletion;
use slipway_core::deletion::request::{self, DeletionSnapshot};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::fleet::agent::Agent;
use slipway_core::fleet::generator::Generator;
use slipway_core::fleet::stack::Stack;
use slipway_core::fleet::template::Template;
use slipway_core::ids::{
    AgentId, CloudCredentialId, DeletionId, GeneratorId, ProjectId, ResourceId, Revision, StackId,
    TemplateId, TenantId, WorkspaceId,
};
use slipway_core::operations::control::Mode;
use slipway_core::placement::cluster::Cluster;
use slipway_core::subject::SubjectKind;
use slipway_core::tenants::profile::TenantProfile;
use slipway_core::tenants::tenant::Tenant;
use slipway_core::topology::workspace::Workspace;

use crate::Context;
use crate::catalog::port::{BlueprintKey, CredentialKey};
use crate::deletion::request::{DeletableKind, subject, wake_loops};
use crate::fleet::port::{AgentKey, GeneratorKey, StackKey, TemplateKey};
use crate::kind::StoredKind;
use crate::permits::Permits;
use crate::ports::store::{Error, Page};
use crate::tenants::port::TenantKey;
use crate::topology::port::WorkspaceKey;
use crate::topology::teardown;

/// Deletions in one statement, and attempts in one transaction.
const BATCH: u32 = 50;
/// Batches of one container in one pass: the others wait no longer than that.
const BATCHES: usize = 20;

/// See the module.
#[derive(Debug, Clone)]
pub struct Runner {
    context: Context,
    permits: Arc<Permits>,
    actor: Actor,
}

/// How a pass ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// How many deletions began, members were taken down, or deletions ended.
    pub advanced: usize,
    /// Something is due and could not be done; it is tried again.
    pub refused: usize,
    /// How many batches of purges were removed.
    pub purged: usize,
    /// A freeze or observe-only withholds everything.
    pub withheld: bool,
    /// Containers wait for their members.
    pub waiting: bool,
    /// One of them is a workspace, and servers of it are on their way out.
    pub servers: bool,
}

impl Runner {
    /// The name of the loop, and of its periodic task.
    pub const TASK: &'static str = "deletions";

    pub fn new(context: Context, permits: Arc<Permits>) -> Self {
        Self { context, permits, actor: Actor::new(format!("loop:{}", Self::TASK)) }
    }

    pub(super) const fn actor(&self) -> &Actor {
        &self.actor
    }

    pub const fn context(&self) -> &Context {
        &self.context
    }

    /// Begins what is due, and goes through the running containers.
    pub async fn pass(&self) -> Result<Passed, Error> {
        let mut passed = Passed::default();
        let mut page = Page { after: None, limit: BATCH };
        loop {
            let due = self.context.stores.deletion.deletion_due(page).await?;
            for deletion in &due {
                self.begin(deletion, &mut passed).await?;
            }
            match due.last() {
                Some(last) if due.len() >= BATCH as usize => page.after = Some(last.id),
                _ => break,
            }
        }
        page.after = None;
        loop {
            let containers = self.context.stores.deletion.deletion_containers(page).await?;
            for deletion in &containers {
                self.advance(deletion, &mut passed).await?;
            }
            match containers.last() {
                Some(last) if containers.len() >= BATCH as usize => page.after = Some(last.id),
                _ => break,
            }
        }
        self.purge(&mut passed).await?;
        if passed.advanced > 0 {
            wake_loops(&self.context);
        }
        Ok(passed)
    }

    /// Begins a scheduled deletion, or shows why it cannot.
    async fn begin(&self, deletion: &Deletion, passed: &mut Passed) -> Result<(), Error> {
        // The start of a teardown revokes a token, which is a write to the registry.
        let permit = match self.permits.enter(&self.context.stores).await? {
            Ok(permit) => permit,
            Err(mode) => {
                passed.withheld = true;
                return self.show_withheld(deletion.id, &mode).await;
            }
        };
        let mode = permit.revision();
        let target = deletion.target.id;
        let begun = match deletion.target.kind {
            SubjectKind::Resource => self.begin_resource(ResourceId::new(target), mode).await,
            SubjectKind::Project => self.begin_row::<Project>(&target.to_string()).await,
            SubjectKind::Cloud => self.begin_row::<Cloud>(&target.to_string()).await,
            SubjectKind::Credential => {
                let key = CredentialKey::Existing(CloudCredentialId::new(target));
                self.begin_row::<Credential>(&key).await
            }
            SubjectKind::Cluster => self.begin_row::<Cluster>(&target.to_string()).await,
            SubjectKind::Label => self.begin_row::<LabelDefinition>(&target.to_string()).await,
            SubjectKind::Generator => {
                self.begin_row::<Generator>(&GeneratorKey::Existing(GeneratorId::new(target))).await
            }
            SubjectKind::Stack => {
                self.begin_row::<Stack>(&StackKey::Existing(StackId::new(target))).await
            }
            SubjectKind::Template => {
                self.begin_row::<Template>(&TemplateKey::Existing(TemplateId::new(target))).await
            }
            SubjectKind::Agent => {
                self.begin_row::<Agent>(&AgentKey::Leaving(AgentId::new(target))).await
            }
            SubjectKind::TenantProfile => {
                self.begin_row::<TenantProfile>(&target.to_string()).await
            }
            SubjectKind::Tenant => {
                self.begin_row::<Tenant>(&TenantKey::Existing(TenantId::new(target))).await
            }
            SubjectKind::Workspace => {
                self.begin_row::<Workspace>(&WorkspaceKey::Existing(WorkspaceId::new(target))).await
            }
            SubjectKind::Blueprint => {
                let key = BlueprintKey { blueprint: target.to_string(), version: None };
                self.begin_row::<Blueprint>(&key).await
            }
            // Nothing else is ever scheduled.
            _ => Ok(()),
        };
        match begun {
            Ok(()) => {
                passed.advanced += 1;
                self.show(deletion.id, None).await
            }
            Err(Error::Refused(refusal)) => {
                passed.refused += 1;
                self.show(deletion.id, Some(&refusal)).await
            }
            Err(error) if error.is_logged() => Err(error),
            // A row that cannot be read holds its own deletion and no other.
            Err(error) => {
                passed.refused += 1;
                let refusal = Refusal::new(ErrorKind::RowInvalid, error.to_string());
                self.show(deletion.id, Some(&refusal)).await
            }
        }
    }

    async fn begin_row<K: DeletableKind>(&self, key: &<K as StoredKind>::Key) -> Result<(), Error> {
        let mut rule =
            |snapshot: &Doored<_>| request::start::<K>(&snapshot.of, &snapshot.door, &self.actor);
        let defaults = self.context.settings.deletion.into();
        let store = self.context.stores.kind::<K>();
        store.decide_deletion(key, subject::<K>, defaults, &mut rule).await
    }

    async fn begin_resource(&self, id: ResourceId, mode: Revision) -> Result<(), Error> {
        let mut transitioned = Vec::new();
        let mut rule = |snapshot: &Doored<ResourceSnapshot>| {
            let commit = delete::start(&snapshot.of, &snapshot.door, &self.actor)?;
            transitioned = transitions(&commit, Some(&snapshot.of));
            commit.permitted(Some(mode))
        };
        let defaults = self.context.settings.deletion.into();
        self.context.stores.broker.decide_deletion(id, defaults, &mut rule).await?;
        self.context.meter.transitioned(&transitioned);
        Ok(())
    }

    /// Takes members down, `BATCH` at a time, and the container when they are gone.
    async fn advance(&self, deletion: &Deletion, passed: &mut Passed) -> Result<(), Error> {
        if deletion.target.kind == SubjectKind::Workspace {
            let servers = teardown::advance(&self.context, &self.permits, &self.actor, deletion);
            let begun = match servers.await {
                Ok(Some(begun)) => begun,
                Ok(None) => {
                    passed.withheld = true;
                    return Ok(());
                }
                Err(error) if error.is_logged() => return Err(error),
                // A row that cannot be read holds up this teardown, and no other deletion.
                Err(error) => {
                    tracing::warn!(deletion_id = %deletion.id, %error, "a teardown does not go on");
                    passed.refused += 1;
                    let refusal = Refusal::new(ErrorKind::RowInvalid, error.to_string());
                    return self.show(deletion.id, Some(&refusal)).await;
                }
            };
            passed.advanced += begun.begun;
            passed.servers |= begun.leaving;
            self.show(deletion.id, begun.refusal.as_ref()).await?;
        }
        let project = ProjectId::new(deletion.target.id);
        let broker = &self.context.stores.broker;
        // A tenant has no members; it waits for the task that closes it.
        let has_members = deletion.target.kind == SubjectKind::Project;
        for _ in 0..if has_members { BATCHES } else { 0 } {
            let staying = broker.attempt_staying(project, BATCH).await?;
            if staying.is_empty() {
                break;
            }
            let Ok(permit) = self.permits.enter(&self.context.stores).await? else {
                passed.withheld = true;
                return Ok(());
            };
            let mode = permit.revision();
            let mut transitioned = Vec::new();
            let mut rule = |snapshot: &ResourceSnapshot| {
                let commit = delete::start_member(snapshot, deletion, &self.actor);
                transitioned.extend(transitions(&commit, Some(snapshot)));
                commit.permitted(Some(mode))
            };
            let mut taken = 0;
            for (id, decided) in broker.decide_many(&staying, &mut rule).await? {
                match decided {
                    Ok(()) => taken += 1,
                    Err(error) => {
                        tracing::warn!(attempt_id = %id, %error, "a member could not be taken down");
                        passed.refused += 1;
                    }
                }
            }
            self.context.meter.transitioned(&transitioned);
            passed.advanced += taken;
            if taken == 0 {
                break;
            }
        }
        let mut done = false;
        let mut rule = |snapshot: &DeletionSnapshot| {
            let commit = request::advance(snapshot, &self.actor);
            done = !commit.events.is_empty();
            Ok(commit)
        };
        match self.context.stores.deletion.deletion_decide(deletion.id, &mut rule).await {
            Ok(()) => {}
            Err(error) if error.is_logged() => return Err(error),
            Err(error) => {
                tracing::warn!(deletion_id = %deletion.id, %error, "a deletion does not go on");
                passed.refused += 1;
                return Ok(());
            }
        }
        if done {
            passed.advanced += 1;
        } else {
            passed.waiting = true;
        }
        Ok(())
    }

    /// Shows why a deletion does not begin; with no refusal, that nothing is in its way.
    async fn show(&self, id: DeletionId, refusal: Option<&Refusal>) -> Result<(), Error> {
        self.show_as(BlockerCode::DeletionRefused, id, refusal).await
    }

    /// The same as a blocker with this code.
    pub(super) async fn show_as(
        &self,
        code: BlockerCode,
        id: DeletionId,
        refusal: Option<&Refusal>,
    ) -> Result<(), Error> {
        let shown = refusal.map(|refusal| {
            let evidence = json!({ "code": refusal.kind.code(), "details": refusal.details });
            (code, refusal.message.clone(), evidence)
        });
        self.show_blocker(id, shown).await
    }

    /// Shows that the mode withholds the beginning.
    async fn show_withheld(&self, id: DeletionId, mode: &Mode) -> Result<(), Error> {
        let Some(Outcome::Withheld { code, message, evidence }) = mode.withholds("delete") else {
            return Ok(());
        };
        self.show_blocker(id, Some((code, message, evidence))).await
    }

    async fn show_blocker(
        &self,
        id: DeletionId,
        shown: Option<(BlockerCode, String, Value)>,
    ) -> Result<(), Error> {
        let store = &self.context.stores.deletion;
        let before = store.deletion_blockers(id).await?;
        let since = before.first().map_or_else(|| self.context.clock.now(), |one| one.since);
        let blockers: Vec<Blocker> = shown
            .into_iter()
            .map(|(code, message, evidence)| Blocker {
                code,
                message,
                since,
                evidence,
                next_retry_at: None,
            })
            .collect();
        let same = |(one, other): (&Blocker, &Blocker)| one.message == other.message;
        let unchanged = before.len() == blockers.len() && before.iter().zip(&blockers).all(same);
        if unchanged {
            return Ok(());
        }
        if let Some(blocker) = blockers.first() {
            tracing::warn!(deletion_id = %id, message = blocker.message, "a deletion is due and waits");
        }
        store.deletion_block(id, &blockers).await
    }
}
