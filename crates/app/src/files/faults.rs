//! What the last apply of a source could not apply.

use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::files::document::check_source;
use slipway_core::files::fault::{Fault, Faults};

use crate::access::authorise::{Caller, Operation, authorise};
use crate::{Context, Error};

/// Records the faults of an apply instead of those of the one before it. What is recorded
/// already is not written again.
pub async fn record(
    context: &Context,
    caller: &Caller,
    source: &str,
    faults: &Faults,
) -> Result<(), Error> {
    authorise(caller, Operation::FilesApply)?;
    check_source(source)?;
    let files = &context.stores.files;
    if faults.is_empty() && files.faults_of(source, caller.project).await?.is_empty() {
        return Ok(());
    }
    Ok(files.faults_put(source, caller.project, faults).await?)
}

/// The faults of a source; refused if there is no such source.
pub async fn faults(context: &Context, caller: &Caller, source: &str) -> Result<Vec<Fault>, Error> {
    authorise(caller, Operation::SourceRead)?;
    check_source(source)?;
    let files = &context.stores.files;
    let found = files.faults_of(source, caller.project).await?;
    if found.is_empty() && !files.source_exists(source, caller.project).await? {
        return Err(unknown(source).into());
    }
    Ok(found.kept)
}

pub(super) fn unknown(source: &str) -> Refusal {
    let message = format!("source `{source}` declared nothing; see `slipway source list`");
    Refusal::new(ErrorKind::SourceNotFound, message)
}
