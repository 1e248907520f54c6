//! `slipway config`: shows the settings in force, and checks them.

use clap::{ArgMatches, CommandFactory};
use serde::Serialize;
use slipway_cli::{Exit, Output, present, rows, say};

use crate::arguments::{Arguments, ConfigCommand};
use crate::config::{Setting, keys, settings};
use crate::error::Error;
use crate::up::preflight;

#[derive(Debug, Serialize)]
struct Checked {
    valid: bool,
    warnings: Vec<String>,
}

/// `matches` are those of the whole command line.
pub(crate) fn run(
    command: ConfigCommand,
    matches: &ArgMatches,
    output: Output,
) -> Result<Exit, Error> {
    let environment = |name: &str| std::env::var(name).ok();
    let innermost = innermost(matches);
    let warnings = warnings();
    match command {
        ConfigCommand::Show(layer) => {
            let shown = settings(*layer, innermost, &environment)?;
            for warning in &warnings {
                say(&format!("warning: {warning}"));
            }
            present(&shown, output, |shown, traits| table(shown, traits.width))?;
        }
        ConfigCommand::Check(layer) => {
            preflight::check(&layer.resolve(&environment)?)?;
            let checked = Checked { valid: true, warnings };
            present(&checked, output, |checked, _| {
                let mut lines = vec!["the settings can be used".to_owned()];
                lines.extend(checked.warnings.iter().map(|warning| format!("warning: {warning}")));
                lines.join("\n")
            })?;
        }
    }
    Ok(Exit::Success)
}

/// Warnings about environment variables that begin like ours and that nothing
/// reads.
pub(crate) fn warnings() -> Vec<String> {
    let present = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    keys::unknown_variables(&Arguments::command(), present)
}

fn innermost(matches: &ArgMatches) -> &ArgMatches {
    match matches.subcommand() {
        Some((_, inner)) => innermost(inner),
        None => matches,
    }
}

fn table(settings: &[Setting], width: Option<u16>) -> String {
    let line = |setting: &Setting| {
        let source = match &setting.from {
            Some(from) => format!("{} {from}", setting.source),
            None => setting.source.to_owned(),
        };
        let value = setting.value.clone().unwrap_or_else(|| "-".to_owned());
        vec![setting.key.clone(), value, source]
    };
    rows(&["KEY", "VALUE", "SOURCE"], settings.iter().map(line).collect(), width)
}
