//! `slipway token …`.

use slipway_wire::access::{IssueToken, IssuedToken, Token};

use super::keys::whole;
use super::run::Session;
use super::target::{Gone, find};
use crate::arguments::TokenCommand;
use crate::error::Error;
use crate::render;

pub(super) async fn run(session: &mut Session<'_>, command: TokenCommand) -> Result<(), Error> {
    match command {
        TokenCommand::Issue(arguments) => {
            let ttl_seconds = arguments.ttl.map(|ttl| whole("--ttl", ttl)).transpose()?;
            let resource = find(&session.client, &arguments.target, Gone::Refused).await?;
            let body = IssueToken { kind: "node".to_owned(), ttl_seconds };
            let path = ["resources", &resource.id, "tokens"];
            let token: IssuedToken = session.client.create(&path, &body).await?;
            session.show(&token, render::issued_token);
        }
        TokenCommand::List(arguments) => {
            let resource = find(&session.client, &arguments.target, Gone::Allowed).await?;
            let listed = session.client.token_list(&resource.id, arguments.page.limit).await?;
            session.show_list(&listed, render::tokens);
        }
        TokenCommand::Show(arguments) => {
            let token: Token = session.client.fetch(&["tokens", &arguments.id]).await?;
            session.show(&token, render::token);
        }
        TokenCommand::Revoke(arguments) => {
            let question = "Revoke this token? Nobody can enrol with it any more.";
            session.agree(arguments.yes, question)?;
            let path = ["tokens", &arguments.id];
            session.client.revoke(&path, arguments.reason.as_deref()).await?;
        }
    }
    Ok(())
}
