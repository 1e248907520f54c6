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
            let Bundle { slug, body, .. } = bundle::read(&arguments.folder)?;
            let path = ["blueprints", &slug, "versions"];
            let version: BlueprintVersion = session.client.create(&path, &body).await?;
            session.show(&version, render::version);
        }
        BlueprintCommand::Import(arguments) => import::run(session, &arguments.folder).await?,
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
