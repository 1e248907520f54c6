//! `slipway label …`.

use reqwest::Method;
use slipway_wire::catalog::{DefineLabel, LabelDefinition};

use crate::arguments::LabelCommand;
use crate::commands::run::Session;
use crate::error::Error;
use crate::render;

pub(in crate::commands) async fn run(
    session: &mut Session<'_>,
    command: LabelCommand,
) -> Result<(), Error> {
    match command {
        LabelCommand::Define(arguments) => {
            let body = DefineLabel {
                key: arguments.label,
                description: arguments.description,
                propagate: arguments.propagate,
            };
            let label: LabelDefinition = session.client.create(&["labels"], &body).await?;
            session.show(&label, render::label);
        }
        LabelCommand::List(page) => {
            let listed = session.client.list_all(&["labels"], false, page.limit).await?;
            session.show_list(&listed, render::labels);
        }
        LabelCommand::Get(arguments) => {
            let path = ["labels", &arguments.reference];
            let label: LabelDefinition = session.client.fetch(&path).await?;
            session.show(&label, render::label);
        }
        LabelCommand::Delete(arguments) => {
            let key = &arguments.label;
            session.agree(arguments.yes, &format!("Forget what label `{key}` means?"))?;
            session.client.silent(Method::DELETE, &["labels", key]).await?;
        }
    }
    Ok(())
}
