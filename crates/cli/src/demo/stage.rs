//! What every demo has around its story: a control plane of its own, a time limit,
//! an end in order whatever happens, and a last line for programs.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use serde_json::Value;
use slipway_core::secret::Secret;
use tokio::signal::unix::{SignalKind, signal};

use super::agents::Agents;
use super::plane::{Plane, Run, draw_key, draw_name};
use super::screen::{Fact, Screen};
use crate::client::Client;
use crate::error::Error;

/// What the control plane of a demo runs on, beside a directory of its own.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Setting<'a> {
    /// SQLite in that directory if there is none.
    pub(crate) database_url: Option<&'a Secret>,
    pub(crate) kubeconfig: Option<&'a Secret>,
    pub(crate) provider_token: Option<&'a Secret>,
}

/// A control plane that was started for a demo.
pub(crate) struct Stage {
    plane: Plane,
    key: Secret,
    name: String,
    /// Taken when the story begins.
    interrupted: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Stage {
    /// Starts the control plane; `database` is the word for what it runs on.
    pub(crate) fn open(
        setting: Setting<'_>,
        database: &str,
        screen: &mut Screen<'_>,
    ) -> Result<Self, Error> {
        let (key, name) = (draw_key()?, draw_name()?);
        // Install the handlers before anything starts, so that an interruption
        // never leaves a process behind.
        let interrupted = interruption()
            .map_err(|error| Error::Demo(format!("cannot listen for signals: {error}")))?;
        let plane = Plane::start(Run {
            name: &name,
            key: &key,
            database_url: setting.database_url,
            kubeconfig: setting.kubeconfig,
            provider_token: setting.provider_token,
        })?;
        screen.heading("A control plane of its own");
        screen.now("slipway", &format!("`slipway up` on {database}"));
        screen.now("slipway", &format!("in {}", plane.directory().display()));
        Ok(Self { plane, key, name, interrupted: Some(Box::pin(interrupted)) })
    }

    /// The name of its project, and the beginning of other names of this run.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The directory of this run, which ends with it.
    pub(crate) fn directory(&self) -> &std::path::Path {
        self.plane.directory()
    }

    /// Counts the node agents of this run, however long the stage is borrowed otherwise.
    pub(crate) fn node_processes(&self) -> impl Fn() -> usize + use<> {
        let agents = self.plane.agents.clone();
        move || agents.all().len()
    }

    pub(super) fn agents(&self) -> Agents {
        self.plane.agents.clone()
    }

    /// Runs the story once the control plane serves. It ends early after the limit or
    /// at a signal, and is then dropped wherever it is.
    pub(crate) async fn play<T>(
        &mut self,
        limit: Duration,
        screen: &mut Screen<'_>,
        story: impl AsyncFnOnce(&Client, &mut Screen<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let Self { plane, key, interrupted, .. } = self;
        let story = async {
            let client = plane.connect(key).await?;
            screen.now("slipway", "it serves");
            story(&client, screen).await
        };
        let interrupted = interrupted.take().unwrap_or_else(|| Box::pin(std::future::pending()));
        tokio::select! {
            told = tokio::time::timeout(limit, story) => told.unwrap_or_else(|_| {
                Err(Error::Demo(format!("the story did not end within {limit:?}")))
            }),
            () = interrupted => Err(Error::Interrupted),
        }
    }

    /// Ends everything. After a story that was told to its end that is checked, too,
    /// and the summary is the last line; it gets the number of facts and the time.
    pub(crate) async fn close<T>(
        self,
        told: Result<T, Error>,
        screen: &mut Screen<'_>,
        summary: impl FnOnce(T, usize, Duration) -> Value,
    ) -> Result<(), Error> {
        match told {
            Ok(outcome) => {
                finish(self.plane, screen, |facts, time| summary(outcome, facts, time)).await
            }
            Err(error) => {
                clear_up(self.plane, screen).await;
                Err(error)
            }
        }
    }
}

/// Stops everything in order and checks that too.
async fn finish(
    mut plane: Plane,
    screen: &mut Screen<'_>,
    summary: impl FnOnce(usize, Duration) -> Value,
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
    let summary = summary(facts, screen.begun().elapsed());
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
