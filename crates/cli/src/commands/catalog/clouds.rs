//! `slipway cloud …`.

use serde_json::{Map, Value};
use slipway_wire::catalog::{Cloud, CreateCloud, UpdateCloud};

use crate::arguments::CloudCommand;
use crate::commands::run::{Session, distinct};
use crate::error::Error;
use crate::render;

pub(in crate::commands) async fn run(
    session: &mut Session<'_>,
    command: CloudCommand,
) -> Result<(), Error> {
    match command {
        CloudCommand::Create(arguments) => {
            let body = CreateCloud {
                name: arguments.name,
                provider: arguments.provider,
                endpoint: endpoint(arguments.endpoint)?,
            };
            let cloud: Cloud = session.client.create(&["clouds"], &body).await?;
            session.show(&cloud, render::cloud);
        }
        CloudCommand::List(arguments) => {
            let (deleted, limit) = (arguments.show_deleted, arguments.page.limit);
            let listed = session.client.list_all(&["clouds"], deleted, limit).await?;
            session.show_list(&listed, render::clouds);
        }
        CloudCommand::Get(arguments) => {
            let cloud: Cloud = session.client.fetch(&["clouds", &arguments.reference]).await?;
            session.show(&cloud, render::cloud);
        }
        CloudCommand::Update(arguments) => {
            let body = UpdateCloud { endpoint: endpoint(arguments.endpoint)? };
            let path = ["clouds", &arguments.reference];
            let cloud: Cloud = session.client.update(&path, &body).await?;
            session.show(&cloud, render::cloud);
        }
        CloudCommand::Delete(arguments) => {
            let name = &arguments.reference;
            session.agree(arguments.yes, &format!("Delete cloud `{name}`?"))?;
            let reason = arguments.reason.as_deref();
            let deletion = session.client.delete(&["clouds", name], reason).await?;
            session.show(&deletion, render::deletion);
        }
    }
    Ok(())
}

fn endpoint(pairs: Vec<(String, Value)>) -> Result<Map<String, Value>, Error> {
    Ok(distinct("--endpoint", pairs)?.into_iter().collect())
}
