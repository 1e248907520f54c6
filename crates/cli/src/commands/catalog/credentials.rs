//! `slipway credential …`.

use reqwest::Method;
use slipway_core::ids::CloudCredentialId;
use slipway_wire::catalog::{CreateCredential, Credential, UpdateCredential};

use crate::arguments::{CredentialArguments, CredentialCommand};
use crate::commands::run::Session;
use crate::error::Error;
use crate::render;

pub(in crate::commands) async fn run(
    session: &mut Session<'_>,
    command: CredentialCommand,
) -> Result<(), Error> {
    match command {
        CredentialCommand::Create(arguments) => {
            let body = CreateCredential {
                cloud: arguments.cloud,
                name: arguments.name,
                kv_mount: arguments.kv_mount,
                kv_path: arguments.kv_path,
            };
            let credential: Credential = session.client.create(&["credentials"], &body).await?;
            session.show(&credential, render::credential);
        }
        CredentialCommand::List(arguments) => {
            let (cloud, limit) = (arguments.cloud.as_deref(), arguments.list.page.limit);
            if let Some(project) = &arguments.project {
                let listed = session.client.assigned_list(project, limit).await?;
                session.show_list(&listed, render::assigned_credentials);
                return Ok(());
            }
            let deleted = arguments.list.show_deleted;
            let listed = session.client.credential_list(cloud, None, deleted, limit).await?;
            session.show_list(&listed, render::credentials);
        }
        CredentialCommand::Get(target) => {
            let credential = find(session, &target).await?;
            session.show(&credential, render::credential);
        }
        CredentialCommand::Update(arguments) => {
            let found = find(session, &arguments.target).await?;
            let body =
                UpdateCredential { kv_mount: arguments.kv_mount, kv_path: arguments.kv_path };
            let path = ["credentials", &found.id];
            let credential: Credential = session.client.update(&path, &body).await?;
            session.show(&credential, render::credential);
        }
        CredentialCommand::Delete(arguments) => {
            session.can_agree(arguments.yes)?;
            let found = find(session, &arguments.target).await?;
            let question = format!("Delete credential `{}` ({})?", found.name, found.id);
            session.agree(arguments.yes, &question)?;
            let reason = arguments.reason.as_deref();
            let deletion = session.client.delete(&["credentials", &found.id], reason).await?;
            session.show(&deletion, render::deletion);
        }
        CredentialCommand::Assign(arguments) => {
            let found = find(session, &arguments.target).await?;
            change(session, Method::PUT, &arguments.project, &found).await?;
        }
        CredentialCommand::Unassign(arguments) => {
            session.can_agree(arguments.yes)?;
            let found = find(session, &arguments.target).await?;
            let project = &arguments.project;
            let question = format!("Take credential `{}` from project `{project}`?", found.name);
            session.agree(arguments.yes, &question)?;
            change(session, Method::DELETE, project, &found).await?;
        }
    }
    Ok(())
}

/// Assigns or withdraws, and shows what the project may use then.
async fn change(
    session: &mut Session<'_>,
    method: Method,
    project: &str,
    credential: &Credential,
) -> Result<(), Error> {
    let path = ["projects", project, "credentials", &credential.id];
    session.client.silent(method, &path).await?;
    let listed = session.client.assigned_list(project, None).await?;
    session.show_list(&listed, render::assigned_credentials);
    Ok(())
}

/// An id is one; a name may be one in each cloud.
async fn find(session: &Session<'_>, target: &CredentialArguments) -> Result<Credential, Error> {
    let name = target.credential.as_str();
    if name.parse::<CloudCredentialId>().is_ok() {
        return session.client.fetch(&["credentials", name]).await;
    }
    let cloud = target.cloud.as_deref();
    let mut found = session.client.credential_list(cloud, Some(name), false, None).await?.items;
    if found.len() > 1 {
        return Err(Error::Usage(format!(
            "`{name}` names a credential in {} clouds; choose with --cloud",
            found.len()
        )));
    }
    found.pop().ok_or_else(|| Error::NotFound(format!("there is no credential `{name}`")))
}
