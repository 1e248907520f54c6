//! `slipway token …`.

use slipway_wire::access::{IssueToken, IssuedToken, Token};
use slipway_wire::api::Resource;

use super::keys::whole;
use super::run::Session;
use super::target::{Gone, find};
use crate::arguments::{TokenCommand, TokenDelivery, TokenIssueArguments};
use crate::error::Error;
use crate::render;
use crate::renderers::DaemonSet;

pub(super) async fn run(session: &mut Session<'_>, command: TokenCommand) -> Result<(), Error> {
    match command {
        TokenCommand::Issue(arguments) => {
            let ttl_seconds = arguments.ttl.map(|ttl| whole("--ttl", ttl)).transpose()?;
            let resource = find(&session.client, &arguments.target, Gone::Refused).await?;
            let body = IssueToken { kind: "node".to_owned(), ttl_seconds };
            let path = ["resources", &resource.id, "tokens"];
            let token: IssuedToken = session.client.create(&path, &body).await?;
            match arguments.daemon_set {
                None => session.show(&token, render::issued_token),
                Some(delivery) => {
                    let manifests = manifests(session, &arguments, delivery, &resource, &token)?;
                    session.terminal.print(&manifests);
                }
            }
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

/// The documents that bring up an agent with this token.
fn manifests(
    session: &mut Session<'_>,
    arguments: &TokenIssueArguments,
    delivery: TokenDelivery,
    resource: &Resource,
    issued: &IssuedToken,
) -> Result<String, Error> {
    let failed = |reason: &str| Error::Unreadable {
        server: session.server.clone(),
        reason: format!("token {} cannot be written out: {reason}", issued.about.token_id),
    };
    let token = issued.token.as_deref().ok_or_else(|| failed("it was shown before"))?;
    let rendered = (session.renderers.daemon_set)(&DaemonSet {
        api_url: arguments.api_url.as_deref().unwrap_or(&session.server),
        project_id: &resource.project_id,
        resource_handle: &resource.handle,
        hostname: arguments.machine.as_deref().unwrap_or(&resource.handle),
        namespace: &arguments.namespace,
        image: arguments.image.as_deref().unwrap_or_default(),
        by_environment: delivery == TokenDelivery::Env,
        token,
    });
    let rendered = rendered.map_err(|reason| failed(&reason))?;
    session.terminal.say("These hold the token, which enrols one machine once.");
    Ok(rendered.trim_end().to_owned())
}
