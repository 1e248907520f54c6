//! Runs the demo of workspaces on a control plane of its own.

use std::time::Duration;

use serde_json::json;

use super::arguments::WorkspaceDemoArguments;
use super::provider::{self, Provider};
use super::story::{self, Machines, Outcome};
use crate::arguments::Output;
use crate::demo::{Screen, Setting, Stage};
use crate::error::Error;
use crate::terminal::Terminal;

pub(crate) async fn run(
    arguments: &WorkspaceDemoArguments,
    output: Output,
    terminal: &mut Terminal,
) -> Result<(), Error> {
    let provider = match (&arguments.hetzner, &arguments.token_file) {
        (Some(url), Some(file)) => Some(Provider::new(url, file)?),
        _ => None,
    };
    let mut screen = Screen::new(terminal, output == Output::Json);
    let provider_token = provider.as_ref().map(Provider::token);
    let setting = Setting { provider_token, ..Setting::default() };
    let mut stage = Stage::open(setting, "sqlite", &mut screen)?;
    let (name, processes) = (stage.name().to_owned(), stage.node_processes());
    let told = stage.play(arguments.timeout, &mut screen, async |client, screen| match &provider {
        None => story::tell(client, &name, Machines::Processes(&processes), screen).await,
        Some(provider) => {
            // Its local project has the local cluster.
            let project = format!("{name}-cloud");
            provider.prepare(client, &project, screen).await?;
            story::tell(client, &project, Machines::Provider(provider), screen).await
        }
    });
    let told = told.await;
    let is_left = told.is_err() && provider.is_some();
    let engine = if provider.is_some() { "hetzner" } else { "local" };
    let summary = |outcome: Outcome, facts: usize, duration: Duration| {
        json!({
            "engine": engine,
            "servers": outcome.servers,
            "ready": outcome.ready,
            "refused": outcome.refused,
            "scaled_down": outcome.scaled_down,
            "torn_down": outcome.torn_down,
            "facts": facts,
            "duration_ms": u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        })
    };
    let ended = stage.close(told, &mut screen, summary).await;
    if is_left {
        screen.line(provider::LEFT);
    }
    ended
}
