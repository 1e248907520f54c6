//! Runs the demo of workspaces on a control plane of its own.

use std::time::Duration;

use serde_json::json;

use super::arguments::WorkspaceDemoArguments;
use super::story::{self, Outcome};
use crate::arguments::Output;
use crate::demo::{Screen, Setting, Stage};
use crate::error::Error;
use crate::terminal::Terminal;

pub(crate) async fn run(
    arguments: &WorkspaceDemoArguments,
    output: Output,
    terminal: &mut Terminal,
) -> Result<(), Error> {
    let mut screen = Screen::new(terminal, output == Output::Json);
    let mut stage = Stage::open(Setting::default(), "sqlite", &mut screen)?;
    let (name, processes) = (stage.name().to_owned(), stage.node_processes());
    let told = stage.play(arguments.timeout, &mut screen, async |client, screen| {
        story::tell(client, &name, &processes, screen).await
    });
    let told = told.await;
    let summary = |outcome: Outcome, facts: usize, duration: Duration| {
        json!({
            "servers": outcome.servers,
            "ready": outcome.ready,
            "refused": outcome.refused,
            "scaled_down": outcome.scaled_down,
            "torn_down": outcome.torn_down,
            "facts": facts,
            "duration_ms": u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        })
    };
    stage.close(told, &mut screen, summary).await
}
