//! `slipway freeze`, `unfreeze`, `resume`, `status` and `plan`: the mode of the
//! whole installation.

use std::time::{Duration, Instant};

use slipway_wire::api::{Control, PutFreeze};

use super::run::Session;
use crate::arguments::{FreezeArguments, PageArguments, ReasonArguments};
use crate::error::Error;
use crate::render;

/// Replicas say what they obey every two seconds.
const PACE: Duration = Duration::from_millis(500);

pub(super) async fn freeze(
    session: &mut Session<'_>,
    arguments: FreezeArguments,
) -> Result<(), Error> {
    if arguments.length.subsec_nanos() != 0 {
        return Err(Error::Usage("--for must be whole seconds, for instance 90s".to_owned()));
    }
    let body =
        PutFreeze { reason: arguments.reason, for_seconds: Some(arguments.length.as_secs()) };
    let mut control = session.client.freeze_put(&body).await?;
    if arguments.wait {
        control = settled(session, control, arguments.timeout).await?;
    }
    session.show(&control, render::control);
    Ok(())
}

async fn settled(
    session: &mut Session<'_>,
    mut control: Control,
    limit: Duration,
) -> Result<Control, Error> {
    let begun = Instant::now();
    let mut shown = usize::MAX;
    while !control.settled {
        let waiting =
            control.replicas.iter().filter(|replica| !replica.obeys && !replica.lapsed).count();
        if waiting != shown {
            session.terminal.say(&format!("waiting for {waiting} of the replicas to come to rest"));
            shown = waiting;
        }
        if begun.elapsed() >= limit {
            return Err(Error::Unsettled { waiting, waited: limit });
        }
        tokio::time::sleep(PACE).await;
        control = session.client.control_get().await?;
    }
    Ok(control)
}

pub(super) async fn unfreeze(
    session: &mut Session<'_>,
    arguments: ReasonArguments,
) -> Result<(), Error> {
    let control = session.client.freeze_delete(&arguments.reason).await?;
    session.show(&control, render::control);
    Ok(())
}

pub(super) async fn resume(
    session: &mut Session<'_>,
    arguments: ReasonArguments,
) -> Result<(), Error> {
    let control = session.client.resume(&arguments.reason).await?;
    session.show(&control, render::control);
    Ok(())
}

pub(super) async fn status(session: &mut Session<'_>) -> Result<(), Error> {
    let control = session.client.control_get().await?;
    session.show(&control, render::control);
    Ok(())
}

pub(super) async fn plan(session: &mut Session<'_>, page: PageArguments) -> Result<(), Error> {
    let listed = session.client.plan_list(page.limit).await?;
    session.show_list(&listed, render::plan);
    if listed.open > 0 {
        session.terminal.say(&format!(
            "{} resources were not looked at yet; ask again in a moment",
            listed.open
        ));
    }
    Ok(())
}
