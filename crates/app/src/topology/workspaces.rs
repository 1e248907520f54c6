//! Workspaces: shown, paused, resumed, deleted, taken down.

use slipway_core::blocker::Blocker;
use slipway_core::commit::Commit;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::{DeletionId, WorkspaceId};
use slipway_core::subject::SubjectKind;
use slipway_core::text::{Reason, check_confirmation};
use slipway_core::topology::group::Group;
use slipway_core::topology::next::Observed;
use slipway_core::topology::server::Server;
use slipway_core::topology::workspace::{self, Workspace, WorkspaceSnapshot};

use super::port::{WorkspaceFilter, WorkspaceKey};
use super::run;
use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::reference;
use crate::deletion::request::{self, DeletableKind, DeleteOptions};
use crate::kind::{NO_REASON, StoredKind, missing};
use crate::ports::KindStore;
use crate::ports::store::Stores;
use crate::{Context, Error};

/// Its name is unique within its project only, so its id refers to it.
impl StoredKind for Workspace {
    type Key = WorkspaceKey;
    type Snapshot = WorkspaceSnapshot;
    type Filter = WorkspaceFilter;
    const READ: Operation = Operation::WorkspaceRead;

    fn store(stores: &Stores) -> &dyn KindStore<Self> {
        &*stores.topology
    }

    fn seen_by(self, caller: &Caller) -> Option<Self> {
        caller.reaches(self.project_id).then_some(self)
    }
}

impl DeletableKind for Workspace {
    const OPERATION: Operation = Operation::WorkspaceDelete;
}

/// The workspace that a caller names within its reach.
pub async fn find(context: &Context, caller: &Caller, text: &str) -> Result<WorkspaceId, Error> {
    authorise(caller, Operation::WorkspaceRead)?;
    let found = reference::find(context, caller, SubjectKind::Workspace, text).await?;
    let unknown = || missing(ErrorKind::WorkspaceNotFound, "workspace", text);
    let id = found.ok_or_else(unknown)?.to_string();
    // A name may lead to one that is deleted.
    let live = context.stores.kind::<Workspace>().fetch(&id, false).await?;
    Ok(live.ok_or_else(unknown)?.id)
}

/// The project that a filter names.
pub async fn filter(
    context: &Context,
    caller: &Caller,
    project: Option<&str>,
    show_deleted: bool,
) -> Result<WorkspaceFilter, Error> {
    let Some(text) = project else {
        return Ok(WorkspaceFilter { project: caller.project, show_deleted });
    };
    let found = reference::find(context, caller, SubjectKind::Project, text).await?;
    let unknown = || missing(ErrorKind::ProjectNotFound, "project", text).at("project");
    let project = slipway_core::ids::ProjectId::new(found.ok_or_else(unknown)?);
    Ok(WorkspaceFilter { project: Some(project), show_deleted })
}

/// Deletes one without servers.
pub async fn delete(
    context: &Context,
    caller: &Caller,
    id: WorkspaceId,
    options: DeleteOptions<'_>,
) -> Result<DeletionId, Error> {
    let options = DeleteOptions { cascade: false, ..options };
    request::delete::<Workspace>(context, caller, &WorkspaceKey::Existing(id), options).await
}

/// Takes one down with its servers, in order. Whoever asks types its name once more.
pub async fn teardown(
    context: &Context,
    caller: &Caller,
    id: WorkspaceId,
    confirm: &str,
    options: DeleteOptions<'_>,
) -> Result<DeletionId, Error> {
    authorise(caller, Operation::WorkspaceTeardown)?;
    let workspace =
        crate::kind::fetch::<Workspace>(context, caller, &id.to_string(), false).await?;
    let name = workspace.name.as_str();
    let expected = format!("the name of the workspace, `{name}`");
    check_confirmation(confirm, &[name], &expected).map_err(Refusal::from)?;
    let options = DeleteOptions { cascade: true, ..options };
    request::delete::<Workspace>(context, caller, &WorkspaceKey::Existing(id), options).await
}

/// Pauses what the loop does about a workspace, a teardown included.
pub async fn pause(
    context: &Context,
    caller: &Caller,
    id: WorkspaceId,
    reason: Option<&str>,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::WorkspacePause)?;
    let reason = Reason::parse(reason.unwrap_or(NO_REASON)).map_err(Refusal::from)?;
    let mut rule = |snapshot: &WorkspaceSnapshot| {
        in_reach(snapshot, caller)?;
        workspace::pause(snapshot, &reason, &actor)
    };
    decide(context, id, &mut rule).await
}

/// Lets it go on.
pub async fn resume(
    context: &Context,
    caller: &Caller,
    id: WorkspaceId,
    reason: Option<&str>,
) -> Result<(), Error> {
    let actor = authorise(caller, Operation::WorkspaceResume)?;
    let reason = Reason::parse(reason.unwrap_or(NO_REASON)).map_err(Refusal::from)?;
    let mut rule = |snapshot: &WorkspaceSnapshot| {
        in_reach(snapshot, caller)?;
        workspace::resume(snapshot, &reason, &actor)
    };
    decide(context, id, &mut rule).await?;
    run::wake(context).await;
    request::wake(context).await;
    Ok(())
}

async fn decide(
    context: &Context,
    id: WorkspaceId,
    rule: &mut (dyn FnMut(&WorkspaceSnapshot) -> Result<Commit, Refusal> + Send),
) -> Result<(), Error> {
    let store = context.stores.kind::<Workspace>();
    Ok(store.decide(&WorkspaceKey::Existing(id), rule).await?)
}

/// A workspace as it is; the caller has found it within its reach.
pub async fn observed(context: &Context, id: WorkspaceId) -> Result<Observed, Error> {
    let found = context.stores.topology.workspace_observed(id).await?;
    Ok(found.ok_or_else(|| missing(ErrorKind::WorkspaceNotFound, "workspace", &id.to_string()))?)
}

/// What a workspace consists of, to be shown. Of a deleted one there are only its groups.
#[derive(Debug, Clone)]
pub struct Parts {
    pub groups: Vec<Group>,
    pub servers: Vec<Server>,
    pub blockers: Vec<Blocker>,
}

pub async fn groups(context: &Context, workspace: &Workspace) -> Result<Parts, Error> {
    let store = &context.stores.topology;
    let blockers = store.workspace_blockers(workspace.id).await?;
    Ok(match store.workspace_observed(workspace.id).await? {
        Some(Observed { groups, servers, .. }) => Parts { groups, servers, blockers },
        None => {
            let groups = store.workspace_groups(&[workspace.id]).await?;
            Parts { groups, servers: Vec::new(), blockers }
        }
    })
}

/// What a cancelled teardown leaves, by the names of servers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Left {
    pub workspace: String,
    pub gone: Vec<String>,
    pub leaving: Vec<String>,
    pub staying: Vec<String>,
}

/// Stops a teardown before its next server goes, or one whose grace is not over.
pub async fn cancel(
    context: &Context,
    caller: &Caller,
    id: WorkspaceId,
    reason: Option<&str>,
) -> Result<Left, Error> {
    authorise(caller, Operation::WorkspaceCancel)?;
    let before = observed(context, id).await?.workspace;
    let Some(deletion) = before.deletion_id else {
        let message = format!("workspace `{}` is not being taken down", before.name);
        return Err(Refusal::new(ErrorKind::NotCancellable, message).into());
    };
    // Read before: the cancellation leaves the deletions of the servers to themselves.
    let members = context.stores.topology.teardown_members(deletion).await?;
    request::cancel(context, caller, deletion, reason).await?;
    let after = observed(context, id).await?;
    let names = |stays: bool| {
        let of = after.servers.iter().filter(move |server| server.stays() == stays);
        of.map(|server| server.name.clone()).collect::<Vec<_>>()
    };
    let (leaving, staying) = (names(false), names(true));
    let gone = members.into_iter().filter(|name| !leaving.contains(name));
    Ok(Left { workspace: before.name.to_string(), gone: gone.collect(), leaving, staying })
}

/// One out of the caller's reach is as unknown as one that is not there.
pub(super) fn in_reach(snapshot: &WorkspaceSnapshot, caller: &Caller) -> Result<(), Refusal> {
    match &snapshot.workspace {
        Some(workspace) if caller.reaches(workspace.project_id) => Ok(()),
        _ => {
            let message = "there is no such workspace; check its name or id";
            Err(Refusal::new(ErrorKind::WorkspaceNotFound, message))
        }
    }
}
