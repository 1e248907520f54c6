//! Runs the demo: starts the control plane, runs the story, and cleans up
//! however that ended.

use std::io;

use slipway_core::secret::Secret;
use tokio::signal::unix::{SignalKind, signal};

use super::arguments::{DemoArguments, DemoSubstrate};
use super::plane::{Plane, Run, draw_key, draw_name};
use super::records::{self, Outcome};
use super::screen::{Fact, Screen};
use super::{cluster, story};
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
    let (key, name) = (draw_key()?, draw_name()?);
    // Install the handlers before anything starts, so that an interruption
    // never leaves a process behind.
    let interrupted = interruption()
        .map_err(|error| Error::Demo(format!("cannot listen for signals: {error}")))?;
    if kubeconfig.is_some() {
        screen.line(cluster::NEEDS);
    }
    let mut plane = Plane::start(Run {
        name: &name,
        key: &key,
        database_url: arguments.database_url.as_ref(),
        kubeconfig: kubeconfig.as_ref(),
    })?;
    screen.heading("A control plane of its own");
    screen
        .now("slipway", &format!("`slipway up` on {database}, in {}", plane.directory().display()));

    let agents = plane.agents.clone();
    let told = {
        let story = async {
            let client = plane.connect(&key).await?;
            screen.now("slipway", "it serves");
            match arguments.substrate {
                DemoSubstrate::Local => story::tell(&client, &agents, &name, &mut screen).await,
                DemoSubstrate::Crossplane => {
                    cluster::tell(&client, &agents, &name, &mut screen).await
                }
            }
        };
        tokio::select! {
            told = tokio::time::timeout(arguments.timeout, story) => told.unwrap_or_else(|_| {
                Err(Error::Demo(format!("the story did not end within {:?}", arguments.timeout)))
            }),
            () = interrupted => Err(Error::Interrupted),
        }
    };
    match told {
        Ok(outcome) => {
            let substrate = arguments.substrate.as_str();
            finish(plane, &outcome, [substrate, database], &mut screen).await
        }
        Err(error) => {
            clear_up(plane, &mut screen).await;
            if kubeconfig.is_some() {
                screen.line(cluster::LEFT);
            }
            Err(error)
        }
    }
}

/// Stops everything in order and checks that too.
async fn finish(
    mut plane: Plane,
    outcome: &Outcome,
    ran_on: [&str; 2],
    screen: &mut Screen<'_>,
) -> Result<(), Error> {
    let agents = plane.agents.clone();
    let ended = plane.stop().await;
    let seen = ended.map_or("it had to be killed".to_owned(), |status| status.to_string());
    screen.check(Fact::new(
        "the control plane ended when it was asked to (SIGTERM)",
        ended.is_some_and(|status| status.success()),
        "exit status: 0",
        seen,
    ));
    let log = plane.log_tail();
    agents.kill_all();
    let removed = plane.remove_directory();
    let left = removed.as_ref().is_ok_and(|path| path.exists());
    screen.check(Fact::new(
        "the temporary directory is gone",
        removed.is_ok() && !left,
        "nothing left",
        removed.map_or_else(|error| error.to_string(), |path| path.display().to_string()),
    ));

    let failed = screen.failed().len();
    if failed > 0 {
        show_log(&log, screen);
    }
    let facts = screen.facts();
    screen.heading(&format!("{} of {facts} facts hold", facts - failed));
    let summary = records::summary(outcome, facts, screen.begun().elapsed(), ran_on);
    screen.result(&summary.to_string());
    if failed > 0 {
        return Err(Error::Demo(format!("not so: {}", screen.failed().join("; "))));
    }
    Ok(())
}

/// Ends everything that was started, whatever its state.
async fn clear_up(mut plane: Plane, screen: &mut Screen<'_>) {
    plane.stop().await;
    plane.agents.kill_all();
    show_log(&plane.log_tail(), screen);
    if let Err(error) = plane.remove_directory() {
        screen.line(&error.to_string());
    }
}

fn show_log(lines: &[String], screen: &mut Screen<'_>) {
    screen.heading("The last lines of the control plane's log");
    for line in lines {
        screen.line(&format!("  {line}"));
    }
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

/// Resolves on the first SIGINT, SIGTERM or SIGHUP.
fn interruption() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
    })
}
