//! Releasing brakes.

use std::time::Duration;

use slipway_core::deletion::brake::{self, Brake, BrakeSnapshot};
use slipway_core::error::{ErrorKind, Refusal};
use slipway_core::ids::ApiKeyId;
use slipway_core::text::Reason;

use crate::access::authorise::{Caller, Operation, authorise};
use crate::ports::Listed;
use crate::ports::store::{Error as StoreError, Page};
use crate::{Context, Error};

/// How long a key deletes uncounted after a release, if nobody says how long.
pub const RELEASED_FOR: Duration = Duration::from_secs(600);

/// Brakes that are on.
pub async fn list(
    context: &Context,
    caller: &Caller,
    page: Page<ApiKeyId>,
) -> Result<Listed<Brake, ApiKeyId>, Error> {
    authorise(caller, Operation::BrakeRead)?;
    let items = context.stores.deletion.brake_list(page).await?;
    Ok(Listed::complete(items, page.limit, |last| last.api_key_id))
}

/// Lets the key delete again, uncounted for this long.
pub async fn release(
    context: &Context,
    caller: &Caller,
    key: ApiKeyId,
    duration: Option<Duration>,
    reason: &str,
) -> Result<Brake, Error> {
    let actor = authorise(caller, Operation::BrakeRelease)?;
    let reason = Reason::parse(reason).map_err(Refusal::from)?;
    let duration = duration.unwrap_or(RELEASED_FOR);
    let mut released = None;
    let mut rule = |snapshot: &BrakeSnapshot| {
        let (brake, commit) = brake::release(snapshot, duration, &reason, &actor)?;
        released = Some(brake);
        Ok(commit)
    };
    match context.stores.deletion.brake_decide(key, &mut rule).await {
        // A key that never deleted anything has no brake.
        Ok(()) | Err(StoreError::NotFound { .. }) => Ok(released.ok_or_else(nothing)?),
        Err(error) => Err(error.into()),
    }
}

fn nothing() -> Refusal {
    let problem = "the brake of this key is not on; there is nothing to release";
    Refusal::new(ErrorKind::NothingToLift, problem)
}
