//! What explanations of workspaces read.

use slipway_core::error::Refusal;
use slipway_core::operations::explain::{self, WorkspaceFacts};
use slipway_core::operations::explanation::{ExplainedKind, Explanation};
use slipway_core::operations::reference;
use slipway_core::subject::SubjectKind;
use slipway_core::topology::workspace::Workspace;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::topology::workspaces;
use crate::{Context, Error, kind};

pub(super) async fn workspace(
    context: &Context,
    caller: &Caller,
    text: &str,
) -> Result<Explanation, Error> {
    authorise(caller, Operation::WorkspaceRead)?;
    let found =
        crate::access::reference::find(context, caller, SubjectKind::Workspace, text).await?;
    let missing = || -> Refusal { reference::missing(ExplainedKind::Workspace, text) };
    let id = found.ok_or_else(missing)?.to_string();
    let workspace = kind::fetch::<Workspace>(context, caller, &id, true).await?;
    let parts = workspaces::groups(context, &workspace).await?;
    let deletion = match workspace.deletion_id {
        Some(id) => context.stores.deletion.deletion_fetch(id).await?,
        None => None,
    };
    let project = workspace.project_id.as_uuid();
    let names = context.stores.access.names(&[project]).await?;
    let control = context.stores.operations.control_fetch().await?;
    Ok(explain::workspace(&WorkspaceFacts {
        mode: control.mode(),
        workspace: &workspace,
        project: names.get(&project).map_or("?", String::as_str),
        groups: &parts.groups,
        servers: &parts.servers,
        deletion: deletion.as_ref(),
        blockers: parts.blockers,
    }))
}
