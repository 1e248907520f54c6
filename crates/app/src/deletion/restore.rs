//! Restoring what was deleted.

use slipway_core::commit::Commit;
use slipway_core::deletion::restore::{self, Ask, Conflict, Renames, RestoreSnapshot, Returning};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::DeletionId;
use slipway_core::subject::SubjectKind;
use slipway_core::text::Reason;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::access::port::Owned;
use crate::access::reach::{not_found, reach};
use crate::deletion::request::wake;
use crate::kind::NO_REASON;
use crate::{Context, Error};

/// What a caller says about a restore.
#[derive(Debug, Clone, Default)]
pub struct RestoreOptions<'a> {
    pub reason: Option<&'a str>,
    pub renames: Renames,
    pub redeclare: bool,
    /// Only answers what would come back and what is in its way.
    pub dry_run: bool,
}

/// What came back, or would.
#[derive(Debug, Clone, Default)]
pub struct Restored {
    pub returning: Vec<Returning>,
    /// Of a dry run; otherwise they refuse the restore.
    pub conflicts: Vec<Conflict>,
}

/// Restores the members of a deletion, all or none. Repeated, it changes nothing.
pub async fn restore(
    context: &Context,
    caller: &Caller,
    id: DeletionId,
    options: RestoreOptions<'_>,
) -> Result<Restored, Error> {
    let actor = authorise(caller, Operation::DeletionRestore)?;
    let missing = || not_found(ErrorKind::DeletionNotFound, "deletion", id);
    reach(context, caller, Owned::Deletion(id), missing).await?;
    let RestoreOptions { reason, renames, redeclare, dry_run } = options;
    let reason = Reason::parse(reason.unwrap_or(NO_REASON)).map_err(Refusal::from)?;
    let ask = Ask { reason, renames, redeclare };
    let mut answer = Restored::default();
    let mut rule = |snapshot: &RestoreSnapshot| {
        authorise(caller, deleting(snapshot.deletion.target.kind))?;
        let found = restore::restore(snapshot, &ask, &actor)?;
        answer =
            Restored { returning: found.returning.clone(), conflicts: found.conflicts.clone() };
        if dry_run { Ok(Commit::default()) } else { found.agreed(&snapshot.deletion) }
    };
    context.stores.deletion.restore_decide(id, &ask.renames, &mut rule).await?;
    if !dry_run {
        wake(context).await;
    }
    Ok(answer)
}

/// Who may delete something may bring it back.
const fn deleting(kind: SubjectKind) -> Operation {
    match kind {
        SubjectKind::Project => Operation::ProjectDelete,
        SubjectKind::Cloud => Operation::CloudDelete,
        SubjectKind::Credential => Operation::CredentialDelete,
        SubjectKind::Cluster => Operation::ClusterDelete,
        SubjectKind::Blueprint => Operation::BlueprintDelete,
        SubjectKind::Label => Operation::LabelDelete,
        SubjectKind::Generator => Operation::FleetGeneratorDelete,
        SubjectKind::Stack => Operation::FleetStackDelete,
        SubjectKind::Template => Operation::FleetTemplateDelete,
        SubjectKind::Agent => Operation::FleetAgentDelete,
        SubjectKind::TenantProfile => Operation::TenantProfileDelete,
        SubjectKind::Tenant => Operation::TenantDelete,
        SubjectKind::Workspace => Operation::WorkspaceDelete,
        _ => Operation::ResourceDelete,
    }
}
