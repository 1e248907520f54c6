//! Runs all checks in order and shows the findings.

use slipway_app::ports::Clock as _;
use slipway_cli::{ClientOptions, Exit, Traits, present};

use super::finding::{Finding, Status};
use super::{clock, clusters, database, disk, server, settings, tls};
use crate::adapters::SystemClock;
use crate::config::Layer;
use crate::error::Error;

/// Runs every check once. An invalid setting is a finding like any other; the
/// checks that need no settings still run.
pub(crate) async fn run(layer: Layer, client: &ClientOptions) -> Result<Exit, Error> {
    let mut findings = Vec::new();
    let resolved = layer.resolve(&|name| std::env::var(name).ok());
    findings.extend(settings::inspect(resolved.as_ref().err()));
    let mut times = clock::Times::default();
    let mut held = false;
    if let Ok(config) = &resolved {
        let (found, now) = database::inspect(config).await;
        findings.extend(found);
        times.database = now.map(|now| (now, SystemClock.now()));
        findings.extend(disk::inspect(config));
        findings.extend(tls::inspect(config, SystemClock.now()));
        held = disk::is_held(config);
    }
    let (found, date, seen) = server::inspect(client, resolved.as_ref().ok(), held).await;
    findings.extend(found);
    if let Ok(config) = &resolved {
        findings.extend(clusters::inspect(&seen, config).await);
    }
    times.server = date.map(|date| (date, SystemClock.now()));
    findings.extend(clock::inspect(&times));

    let unwell = findings.iter().any(|finding| finding.status == Status::Problem);
    present(&findings, client.output, |findings, traits| lines(findings, traits))?;
    Ok(if unwell { Exit::Unwell } else { Exit::Success })
}

/// One line per finding, with its remedy below it.
fn lines(findings: &[Finding], traits: Traits) -> String {
    let checks = findings.iter().map(|finding| finding.area.len() + finding.check.len() + 1);
    let width = checks.max().unwrap_or(0);
    let mut lines = Vec::new();
    for finding in findings {
        let (word, colour) = match finding.status {
            Status::Ok => ("ok", "32"),
            Status::Warning => ("warning", "33"),
            Status::Problem => ("problem", "31"),
        };
        let word = format!("{word:<7}");
        let word = if traits.colours { format!("\u{1b}[{colour}m{word}\u{1b}[0m") } else { word };
        let check = format!("{} {}", finding.area, finding.check);
        // Control characters from databases and servers must not reach the
        // terminal.
        let detail: String =
            finding.detail.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        lines.push(format!("{word}  {check:<width$}  {detail}"));
        if let Some(remedy) = &finding.remedy {
            lines.push(format!("{:7}  {:width$}  → {remedy}", "", ""));
        }
    }
    let count = |status| findings.iter().filter(|finding| finding.status == status).count();
    lines.push(format!(
        "\n{} ok, {} warnings, {} problems",
        count(Status::Ok),
        count(Status::Warning),
        count(Status::Problem)
    ));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::finding::Area;
    use super::*;

    fn findings() -> Vec<Finding> {
        let mut area = Area::new("disk");
        area.ok("space", "12 GiB free");
        area.warning("permissions", "others can read\n it", "chmod 700 data");
        area.into_findings()
    }

    #[test]
    fn a_finding_is_a_line_with_its_remedy_below() {
        let text = lines(&findings(), Traits::default());
        let expected = "ok       disk space        12 GiB free\n\
                        warning  disk permissions  others can read  it\n\
                        \u{20}                          → chmod 700 data\n\n\
                        1 ok, 1 warnings, 0 problems";
        assert_eq!(text, expected);
    }

    #[test]
    fn colours_are_only_for_a_terminal() {
        assert!(!lines(&findings(), Traits::default()).contains('\u{1b}'));
        let coloured = lines(&findings(), Traits { colours: true, ..Traits::default() });
        assert!(coloured.contains("\u{1b}[33mwarning\u{1b}[0m"), "{coloured}");
    }
}
