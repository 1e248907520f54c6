//! `slipway resource …`.

use slipway_wire::api::{DeclareResource, Resource};
use slipway_wire::catalog::Relabel;

use super::run::{Session, distinct};
use super::target::{Gone, find, find_whole};
use super::{explain, suggest};
use crate::arguments::{
    CreateArguments, DeleteArguments, ForceDrainArguments, ListArguments, ResourceCommand,
    RetryArguments, TargetArguments,
};
use crate::client::ResourceQuery;
use crate::error::Error;
use crate::render;
use crate::wait::{Goal, wait_for};

pub(super) async fn run(session: &mut Session<'_>, command: ResourceCommand) -> Result<(), Error> {
    match command {
        ResourceCommand::Create(arguments) => create(session, arguments).await,
        ResourceCommand::List(arguments) => list(session, arguments).await,
        ResourceCommand::Get(target) => {
            let detail = find_whole(&session.client, &target).await?;
            session.show(&detail, render::resource_detail);
            Ok(())
        }
        ResourceCommand::Explain(target) => explain::resource(session, &target).await,
        ResourceCommand::Relabel(arguments) => {
            let body = Relabel { labels: distinct("--label", arguments.labels)? };
            let resource = find(&session.client, &arguments.target, Gone::Refused).await?;
            let path = ["resources", &resource.id];
            let relabelled: Resource = session.client.update(&path, &body).await?;
            session.show(&relabelled, render::resource);
            Ok(())
        }
        ResourceCommand::Delete(arguments) => delete(session, arguments).await,
        ResourceCommand::Retry(arguments) => retry(session, arguments).await,
        ResourceCommand::ForceDrain(arguments) => force_drain(session, arguments).await,
    }
}

async fn create(session: &mut Session<'_>, arguments: CreateArguments) -> Result<(), Error> {
    let body = DeclareResource {
        project: arguments.project,
        handle: arguments.handle,
        blueprint: arguments.blueprint,
        version: arguments.blueprint_version,
        credential: arguments.credential,
        parameters: distinct("--parameter", arguments.parameters)?,
        labels: distinct("--label", arguments.labels)?,
    };
    let mut resource = match session.client.resource_declare(&body).await {
        Ok(resource) => resource,
        Err(error) => {
            let given = [
                ("blueprint_not_found", Some(body.blueprint.as_str())),
                ("project_not_found", body.project.as_deref()),
                ("credential_not_found", body.credential.as_deref()),
            ];
            return Err(suggest::name(&session.client, error, &given).await);
        }
    };
    if arguments.wait.wait {
        let timeout = arguments.wait.timeout;
        let waited = wait_for(&session.client, &resource, Goal::Ready, timeout, session.terminal);
        resource = waited.await?.unwrap_or(resource);
    }
    session.show(&resource, render::resource);
    Ok(())
}

async fn list(session: &mut Session<'_>, arguments: ListArguments) -> Result<(), Error> {
    let query = ResourceQuery {
        project: arguments.project,
        handle: None,
        phase: arguments.phase,
        labels: arguments.labels,
        blocked: arguments.blocked,
        show_deleted: arguments.show_deleted,
    };
    let listed = session.client.resource_list(&query, arguments.page.limit).await?;
    session.show_list(&listed, render::resources);
    Ok(())
}

async fn delete(session: &mut Session<'_>, arguments: DeleteArguments) -> Result<(), Error> {
    let resource = find_for_harm(session, &arguments.target, arguments.yes, "Delete").await?;
    let mut deletion =
        session.client.resource_delete(&resource.id, arguments.reason.as_deref()).await?;
    if arguments.wait.wait {
        let timeout = arguments.wait.timeout;
        wait_for(&session.client, &resource, Goal::Deleted, timeout, session.terminal).await?;
        deletion = session.client.deletion_get(&deletion.id).await?;
    }
    session.show(&deletion, render::deletion);
    Ok(())
}

async fn retry(session: &mut Session<'_>, arguments: RetryArguments) -> Result<(), Error> {
    let resource = find(&session.client, &arguments.target, Gone::Refused).await?;
    let mut retried = session.client.resource_retry(&resource.id, &arguments.reason).await?;
    if arguments.wait.wait {
        let timeout = arguments.wait.timeout;
        let goal = Goal::ReadyAfter(resource.attempt.number);
        let waited = wait_for(&session.client, &retried, goal, timeout, session.terminal);
        retried = waited.await?.unwrap_or(retried);
    }
    session.show(&retried, render::resource);
    Ok(())
}

async fn force_drain(
    session: &mut Session<'_>,
    arguments: ForceDrainArguments,
) -> Result<(), Error> {
    let harm = "Give up what the node is doing for";
    let resource = find_for_harm(session, &arguments.target, arguments.yes, harm).await?;
    let forced = session.client.resource_force_drain(&resource.id, &arguments.reason).await?;
    session.show(&forced, render::resource);
    Ok(())
}

/// The resource that something irrevocable is to be done to, once somebody
/// agreed: by the flag, or by an answer to a question that begins with `harm`.
async fn find_for_harm(
    session: &mut Session<'_>,
    target: &TargetArguments,
    agreed: bool,
    harm: &str,
) -> Result<Resource, Error> {
    session.can_agree(agreed)?;
    let resource = find(&session.client, target, Gone::Refused).await?;
    session.agree(agreed, &format!("{harm} `{}` ({})?", resource.handle, resource.id))?;
    Ok(resource)
}
