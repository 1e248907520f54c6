//! Runs the demo: chooses the story, and says what it ran on.

use slipway_core::secret::Secret;

use super::arguments::{DemoArguments, DemoSubstrate};
use super::screen::Screen;
use super::stage::{Setting, Stage};
use super::{cluster, records, story};
use crate::arguments::Output;
use crate::error::Error;
use crate::terminal::Terminal;

pub(crate) async fn run(
    arguments: &DemoArguments,
    output: Output,
    terminal: &mut Terminal,
) -> Result<(), Error> {
    let database = database_kind(arguments)?;
    let kubeconfig = kubeconfig(arguments)?;
    let mut screen = Screen::new(terminal, output == Output::Json);
    if kubeconfig.is_some() {
        screen.line(cluster::NEEDS);
    }
    let setting = Setting {
        database_url: arguments.database_url.as_ref(),
        kubeconfig: kubeconfig.as_ref(),
        ..Setting::default()
    };
    let mut stage = Stage::open(setting, database, &mut screen)?;
    let (agents, name) = (stage.agents(), stage.name().to_owned());
    let told = stage.play(arguments.timeout, &mut screen, async |client, screen| {
        match arguments.substrate {
            DemoSubstrate::Local => story::tell(client, &agents, &name, screen).await,
            DemoSubstrate::Crossplane => cluster::tell(client, &agents, &name, screen).await,
        }
    });
    let told = told.await;
    let is_left = told.is_err() && kubeconfig.is_some();
    let ran_on = [arguments.substrate.as_str(), database];
    let summary = |outcome, facts, duration| records::summary(&outcome, facts, duration, ran_on);
    let ended = stage.close(told, &mut screen, summary).await;
    if is_left {
        screen.line(cluster::LEFT);
    }
    ended
}

/// The content of the file, if the demo runs on a cluster.
fn kubeconfig(arguments: &DemoArguments) -> Result<Option<Secret>, Error> {
    match (arguments.substrate, &arguments.kubeconfig) {
        (DemoSubstrate::Local, None) => Ok(None),
        (DemoSubstrate::Crossplane, Some(path)) => cluster::read_kubeconfig(path).map(Some),
        (DemoSubstrate::Local, Some(_)) => {
            Err(Error::Usage("--kubeconfig goes with --substrate crossplane".to_owned()))
        }
        (DemoSubstrate::Crossplane, None) => {
            Err(Error::Usage("--substrate crossplane needs --kubeconfig FILE".to_owned()))
        }
    }
}

fn database_kind(arguments: &DemoArguments) -> Result<&'static str, Error> {
    match &arguments.database_url {
        None => Ok("sqlite"),
        Some(url) => match url.expose().split_once(':') {
            Some(("postgres" | "postgresql", _)) => Ok("postgres"),
            Some(("sqlite", _)) => Ok("sqlite"),
            _ => Err(Error::Usage(
                "--database-url must begin with postgres:// or sqlite:".to_owned(),
            )),
        },
    }
}
