//! `slipway leaks …`.

use super::run::Session;
use crate::arguments::{
    LeakEndArguments, LeakListArguments, LeakRemoveArguments, LeakState, LeaksArguments,
    LeaksCommand,
};
use crate::error::Error;
use crate::render;

pub(super) async fn run(session: &mut Session<'_>, leaks: LeaksArguments) -> Result<(), Error> {
    match leaks.command.unwrap_or(LeaksCommand::List(leaks.list)) {
        LeaksCommand::List(arguments) => list(session, arguments).await,
        LeaksCommand::Get(arguments) => {
            let leak = session.client.leak_get(&arguments.id).await?;
            session.show(&leak, render::leak);
            Ok(())
        }
        LeaksCommand::Find => {
            let looks = session.client.leak_find().await?;
            session.show(&looks, |looks, width| render::looks(looks, width));
            Ok(())
        }
        LeaksCommand::Resolve(arguments) => resolve(session, arguments).await,
        LeaksCommand::Remove(arguments) => remove(session, arguments).await,
    }
}

async fn list(session: &mut Session<'_>, arguments: LeakListArguments) -> Result<(), Error> {
    let state = match arguments.state {
        LeakState::Open => "open",
        LeakState::Resolved => "resolved",
        LeakState::All => "all",
    };
    let limit = arguments.page.limit;
    let listed = session.client.leak_list(state, arguments.kind.as_deref(), limit).await?;
    session.show_list(&listed, render::leaks);
    Ok(())
}

async fn resolve(session: &mut Session<'_>, arguments: LeakEndArguments) -> Result<(), Error> {
    let leak = session.client.leak_resolve(&arguments.id, &arguments.reason).await?;
    session.show(&leak, render::leak);
    Ok(())
}

/// The object is shown before somebody is asked about it.
async fn remove(session: &mut Session<'_>, arguments: LeakRemoveArguments) -> Result<(), Error> {
    let LeakRemoveArguments { leak: LeakEndArguments { id, reason }, yes } = arguments;
    if !yes && !session.terminal.traits().asks {
        return Err(Error::Usage(
            "this wants --yes where nobody can be asked; nothing was done".to_owned(),
        ));
    }
    if !yes {
        let leak = session.client.leak_get(&id).await?;
        let question = format!("Remove {} of leak {id}?", render::leak_object(&leak));
        if !session.terminal.confirm(&question) {
            return Err(Error::Declined);
        }
    }
    let leak = session.client.leak_remove(&id, &reason).await?;
    session.show(&leak, render::leak);
    if leak.resolved_at.is_none() {
        session.terminal.say(&format!(
            "it takes its time to go and is looked after; `slipway leaks get {id}` shows when it is gone"
        ));
    }
    Ok(())
}
