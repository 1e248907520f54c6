//! Runs all checks in order and shows the findings.

use slipway_app::ports::Clock as _;
use slipway_cli::{ClientOptions, Exit, Traits, present, wrap};
use slipway_core::text::counted;

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
        lines.push(format!("{word}  {check:<width$}  {}", beside(&detail, width, traits)));
        if let Some(remedy) = &finding.remedy {
            let remedy = beside(&format!("→ {remedy}"), width, traits);
            lines.push(format!("{:7}  {:width$}  {remedy}", "", ""));
        }
    }
    let count = |of| findings.iter().map(|finding| u64::from(finding.status == of)).sum::<u64>();
    lines.push(format!(
        "\n{} ok, {}, {}",
        count(Status::Ok),
        counted(count(Status::Warning), "warning"),
        counted(count(Status::Problem), "problem")
    ));
    lines.join("\n")
}

/// Wrapped into the room beside the status and a check of this width.
fn beside(text: &str, width: usize, traits: Traits) -> String {
    let used = 7 + 2 + width + 2;
    let room = traits.width.map(|all| all.saturating_sub(u16::try_from(used).unwrap_or(u16::MAX)));
    // On a very narrow terminal the terminal wraps better.
    let wrapped = wrap(text, room.filter(|room| *room >= 20));
    wrapped.replace('\n', &format!("\n{}", " ".repeat(used)))
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
                        1 ok, 1 warning, 0 problems";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_long_finding_is_wrapped_beside_its_check() {
        let text = lines(&findings(), Traits { width: Some(50), ..Traits::default() });
        assert_eq!(text, lines(&findings(), Traits::default()), "everything fits");
        let mut area = Area::new("disk");
        area.ok("space", "a long text about the disk that does not fit");
        let text = lines(&area.into_findings(), Traits { width: Some(44), ..Traits::default() });
        let expected = "ok       disk space  a long text about the\n\
                        \u{20}                    disk that does not fit\n\n";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn colours_are_only_for_a_terminal() {
        assert!(!lines(&findings(), Traits::default()).contains('\u{1b}'));
        let coloured = lines(&findings(), Traits { colours: true, ..Traits::default() });
        assert!(coloured.contains("\u{1b}[33mwarning\u{1b}[0m"), "{coloured}");
    }
}
