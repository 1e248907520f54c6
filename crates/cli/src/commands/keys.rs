//! `slipway key …`.

use std::time::Duration;

use slipway_wire::access::{ApiKey, ApiKeyWithText, CreateKey, RotateKey};

use super::run::Session;
use crate::arguments::KeyCommand;
use crate::error::Error;
use crate::render;

pub(super) async fn run(session: &mut Session<'_>, command: KeyCommand) -> Result<(), Error> {
    match command {
        KeyCommand::Create(arguments) => {
            let body = CreateKey {
                name: arguments.name,
                role: arguments.role.as_str().to_owned(),
                project: arguments.project,
                ttl_seconds: arguments.ttl.map(|ttl| whole("--ttl", ttl)).transpose()?,
            };
            let key: ApiKeyWithText = session.client.create(&["keys"], &body).await?;
            session.show(&key, render::key_with_text);
        }
        KeyCommand::List(page) => {
            let listed = session.client.list_all(&["keys"], false, page.limit).await?;
            session.show_list(&listed, render::keys);
        }
        KeyCommand::Show(arguments) => {
            let key: ApiKey = session.client.fetch(&["keys", &arguments.id]).await?;
            session.show(&key, render::key);
        }
        KeyCommand::Rotate(arguments) => {
            let overlap_seconds = whole("--overlap", arguments.overlap)?;
            let path = ["keys", &arguments.id, "rotate"];
            let body = RotateKey { overlap_seconds };
            let key: ApiKeyWithText = session.client.create(&path, &body).await?;
            session.show(&key, render::key_with_text);
        }
        KeyCommand::Revoke(arguments) => {
            session.can_agree(arguments.yes)?;
            let path = ["keys", &arguments.id];
            let key: ApiKey = session.client.fetch(&path).await?;
            let question =
                format!("Revoke key `{}`? Whoever uses it is refused at once.", key.name);
            session.agree(arguments.yes, &question)?;
            session.client.revoke(&path, arguments.reason.as_deref()).await?;
        }
        KeyCommand::Whoami => {
            let key: ApiKey = session.client.fetch(&["whoami"]).await?;
            session.show(&key, render::key);
        }
    }
    Ok(())
}

/// A time as the API takes it.
pub(super) fn whole(flag: &str, time: Duration) -> Result<u64, Error> {
    if time.subsec_nanos() != 0 {
        return Err(Error::Usage(format!("{flag} must be whole seconds, for instance 90s")));
    }
    Ok(time.as_secs())
}
