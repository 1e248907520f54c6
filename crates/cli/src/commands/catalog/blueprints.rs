//! `slipway blueprint …`.

use slipway_wire::catalog::{Blueprint, BlueprintVersion, CreateBlueprint};

use super::bundle::{self, Bundle};
use super::import;
use crate::arguments::BlueprintCommand;
use crate::commands::run::Session;
use crate::error::Error;
use crate::render;

pub(in crate::commands) async fn run(
    session: &mut Session<'_>,
    command: BlueprintCommand,
) -> Result<(), Error> {
    match command {
        BlueprintCommand::Create(arguments) => {
            let body = CreateBlueprint {
                slug: arguments.slug,
                display_name: arguments.display_name,
                description: arguments.description,
                engine: arguments.engine,
            };
            let blueprint: Blueprint = session.client.create(&["blueprints"], &body).await?;
            session.show(&blueprint, render::blueprint);
        }
        BlueprintCommand::Publish(arguments) => {
            let Bundle { slug, mut body, .. } = bundle::read(&arguments.folder)?;
            body.deliver = arguments.deliver;
            let path = ["blueprints", &slug, "versions"];
            let version: BlueprintVersion = session.client.create(&path, &body).await?;
            session.show(&version, render::version);
        }
        BlueprintCommand::Import(arguments) => {
            import::run(session, &arguments.folder, arguments.deliver).await?;
        }
        BlueprintCommand::List(page) => {
            let listed = session.client.list_all(&["blueprints"], false, page.limit).await?;
            session.show_list(&listed, render::blueprints);
        }
        BlueprintCommand::Get(arguments) => {
            let path = ["blueprints", &arguments.reference];
            let blueprint: Blueprint = session.client.fetch(&path).await?;
            session.show(&blueprint, render::blueprint);
        }
        BlueprintCommand::Versions(arguments) => {
            let path = ["blueprints", &arguments.blueprint, "versions"];
            let listed = session.client.list_all(&path, false, arguments.page.limit).await?;
            session.show_list(&listed, render::versions);
        }
        BlueprintCommand::Deliveries(arguments) => {
            let path = ["blueprints", &arguments.blueprint, "deliveries"];
            let listed = session.client.list_all(&path, false, arguments.page.limit).await?;
            session.show_list(&listed, render::deliveries);
        }
        BlueprintCommand::Rbac(arguments) => {
            let path = ["blueprints", &arguments.reference, "versions"];
            let listed: Vec<BlueprintVersion> =
                session.client.list_all(&path, false, None).await?.items;
            let role = role(session, &arguments.reference, &listed)?;
            session.terminal.print(&role);
        }
        BlueprintCommand::Retire(arguments) => {
            let (slug, version) = (&arguments.blueprint, &arguments.retired);
            let question = format!("Take no new declarations from `{slug}` version `{version}`?");
            session.agree(arguments.yes, &question)?;
            let path = ["blueprints", slug, "versions", version, "retire"];
            let retired: BlueprintVersion = session.client.invoke(&path).await?;
            session.show(&retired, render::version);
        }
    }
    Ok(())
}

/// Of the newest version that something can be declared from, or was.
fn role(session: &Session<'_>, slug: &str, versions: &[BlueprintVersion]) -> Result<String, Error> {
    let mut newest: Vec<_> =
        versions.iter().filter(|version| version.composite.is_some()).collect();
    newest.sort_by_key(|version| (version.retired_at.is_none(), &version.published_at));
    let Some((version, composite)) =
        newest.last().and_then(|version| Some((version, version.composite.as_ref()?)))
    else {
        return Err(Error::Usage(format!(
            "blueprint `{slug}` has no version with composites; only engine crossplane makes any"
        )));
    };
    (session.renderers.role)(&version.blueprint, composite).map_err(|reason| Error::Unreadable {
        server: session.server.clone(),
        reason: format!("the role for `{slug}` cannot be written out: {reason}"),
    })
}
