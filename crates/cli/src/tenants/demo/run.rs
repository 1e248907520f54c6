//! Runs the demo of tenants: writes the files of its profiles, runs the story, and says what
//! a story that broke off left behind.

use serde_json::json;

use super::arguments::TenantDemoArguments;
use super::site::Site;
use super::story::{self, Outcome};
use crate::arguments::Output;
use crate::demo::{Screen, Setting, Stage};
use crate::error::Error;
use crate::renderers::Renderers;
use crate::terminal::Terminal;

pub(crate) async fn run(
    arguments: &TenantDemoArguments,
    output: Output,
    renderers: Renderers,
    terminal: &mut Terminal,
) -> Result<(), Error> {
    let mut screen = Screen::new(terminal, output == Output::Json);
    let mut stage = Stage::open(Setting::default(), "sqlite", &mut screen)?;
    let name = stage.name().to_owned();
    let site =
        Site::new(stage.directory(), &name, arguments.database_url.as_ref(), renderers.query);
    let told = stage.play(arguments.timeout, &mut screen, async |client, screen| {
        site.write_files()?;
        story::tell(client, &name, &site, screen).await
    });
    let told = told.await;
    if told.is_err() && arguments.database_url.is_some() {
        let left = site.left().await.unwrap_or_else(|error| error.to_string());
        screen.line(&format!("what is left in the database of the tenants: {left}"));
    }
    let engine = site.engine();
    let summary = |outcome: Outcome, facts: usize, duration: std::time::Duration| {
        json!({
            "tenants": outcome.tenants,
            "ready": outcome.ready,
            "cleaned_up": outcome.cleaned_up,
            "migrated": outcome.migrated,
            "decommissioned": outcome.decommissioned,
            "restored": outcome.restored,
            "purged": outcome.purged,
            "facts": facts,
            "duration_ms": u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            "engine": engine,
        })
    };
    stage.close(told, &mut screen, summary).await
}
