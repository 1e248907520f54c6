//! `slipway deletion report`: prints the lines as they arrive, however many there are.

use slipway_wire::deletion::{Deletion, ReportLine};

use crate::arguments::Output;
use crate::client::Listing;
use crate::error::Error;
use crate::kind::Kind as _;
use crate::output::{render, to_yaml};
use crate::session::Session;
use crate::suggest;
use crate::terminal::clean;

pub(super) async fn show(session: &mut Session<'_>, reference: &str) -> Result<(), Error> {
    let path = [Deletion::PATH, reference, "report"];
    let mut stream = match session.client.stream(&path, Listing::default()).await {
        Ok(stream) => stream,
        Err(error) => return Err(suggest::reference(&session.client, error, reference).await),
    };
    let mut pending = Vec::new();
    let mut complete = false;
    while let Some(bytes) = session.client.next_piece(&mut stream).await? {
        pending.extend_from_slice(bytes.as_ref());
        while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = pending.drain(..=end).collect();
            complete = print(session, &String::from_utf8_lossy(&line))?;
        }
    }
    match complete {
        true => Ok(()),
        false => Err(session
            .client
            .unreadable("the report ended before its digest; ask again".to_owned())),
    }
}

/// Whether this was the last line of a complete report.
fn print(session: &mut Session<'_>, text: &str) -> Result<bool, Error> {
    let line: ReportLine =
        serde_json::from_str(text).map_err(|error| session.client.unreadable(error.to_string()))?;
    let shown = match session.output {
        Output::Table | Output::Wide | Output::Name => {
            sentence(&line).lines().map(clean).collect::<Vec<_>>().join("\n")
        }
        // The bytes that the digest is over.
        Output::Json => text.trim_end().to_owned(),
        Output::Yaml => format!("---\n{}", to_yaml(&line)),
        Output::JsonPath(_) => render(&line, session.output, sentence),
    };
    session.terminal.print(&shown);
    Ok(matches!(line, ReportLine::End { .. }))
}

fn sentence(line: &ReportLine) -> String {
    match line {
        ReportLine::Deletion { kind, target, state, requested_by, requested_at, .. } => format!(
            "deletion of {kind} {target}, {state}, requested by {requested_by} at {requested_at}"
        ),
        ReportLine::Made { kind, name, proof, how, at, by, leaks, .. } => {
            let proof = proof.replace('_', " ");
            let at = at.as_ref().map(|at| format!(", {at}")).unwrap_or_default();
            let by = by.as_ref().map(|by| format!(", by {by}")).unwrap_or_default();
            let leaks = match leaks.is_empty() {
                true => String::new(),
                false => format!("\n  leak {}", leaks.join(", ")),
            };
            format!("{proof:<16}{kind} {name}\n  {how}{at}{by}{leaks}")
        }
        ReportLine::End { lines, gone, not_yet, abandoned, leak_open, kept_on_purpose, digest } => {
            let left = match not_yet + abandoned + leak_open + kept_on_purpose {
                0 => "everything is proven gone".to_owned(),
                _ => format!(
                    "{not_yet} not yet proven gone, {abandoned} abandoned, {leak_open} with an open leak, {kept_on_purpose} kept on purpose"
                ),
            };
            format!("{lines} lines, {gone} gone; {left}\n{digest}")
        }
    }
}
