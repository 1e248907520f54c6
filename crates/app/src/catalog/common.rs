//! Helpers of the catalog use-cases.

use slipway_core::catalog::rules::Removal;
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::DeletionId;
use slipway_core::precondition::Expected;
use slipway_core::text::{Reason, check_reference};

use crate::{Context, Error};

/// The reason if a request gives none.
const NO_REASON: &str = "none given";

pub(crate) fn removal(
    context: &Context,
    reason: Option<&str>,
    expected: Expected,
) -> Result<Removal, Refusal> {
    Ok(Removal {
        deletion_id: DeletionId::new(context.entropy.uuid()),
        reason: Reason::parse(reason.unwrap_or(NO_REASON))?,
        expected,
    })
}

/// A name or id from the path of a request.
pub(crate) fn check(kind: &'static str, reference: &str) -> Result<(), Refusal> {
    Ok(check_reference(kind, reference)?)
}

/// Refuses if nothing was found. Names no field: the reference is in the path.
pub(crate) fn missing<T>(
    found: Option<T>,
    error: ErrorKind,
    kind: &str,
    reference: impl std::fmt::Display,
) -> Result<T, Error> {
    found.ok_or_else(|| {
        Refusal::new(error, format!("there is no {kind} `{reference}`; check its name or id"))
            .into()
    })
}
