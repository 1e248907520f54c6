//! The report of a deletion, streamed as lines of JSON. The same rows give the same bytes,
//! and the last line has their digest.

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName};
use axum::response::IntoResponse as _;
use data_encoding::HEXLOWER;
use futures::stream;
use sha2::{Digest as _, Sha256};
use slipway_app::access::authenticate;
use slipway_app::deletion::report::{self, Report};
use slipway_core::deletion::record::Deletion;
use slipway_core::deletion::report::{Line, Proof};
use slipway_core::ids::DeletionId;
use slipway_core::secret::Secret;
use slipway_wire::deletion::ReportLine;

use crate::request::{Answered, Call, Id, bearer, text};

/// As an export of the audit: only one page is in memory, each authenticates the key again,
/// and if anything fails, the connection breaks off. The last line shows that it is complete.
pub(super) async fn stream(call: Call, headers: HeaderMap, Id(id): Id<DeletionId>) -> Answered {
    let writer = Writer {
        report: report::report(&call.context, &call.caller, id).await?,
        key: Secret::new(bearer(&headers).unwrap_or_default()),
        correlation_id: call.caller.correlation_id.clone(),
        call,
        digest: Sha256::new(),
        lines: 0,
        counts: [0; Proof::ALL.len()],
        state: State::Begin,
    };
    let pieces = stream::try_unfold(writer, async |mut writer| {
        let piece = writer.next().await.inspect_err(|error| {
            let deletion_id = writer.report.deletion.id;
            if !error.is_logged() {
                tracing::warn!(%error, %deletion_id, "the report of a deletion breaks off");
            }
        })?;
        Ok::<_, slipway_app::Error>(piece.map(|piece| (Bytes::from(piece), writer)))
    });
    let headers = [
        (CONTENT_TYPE, "application/x-ndjson"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, Body::from_stream(pieces)).into_response())
}

struct Writer {
    call: Call,
    key: Secret,
    correlation_id: String,
    report: Report,
    digest: Sha256,
    lines: u64,
    /// By proof, in the order of the set.
    counts: [u64; Proof::ALL.len()],
    state: State,
}

enum State {
    Begin,
    Lines,
    Ended,
}

impl Writer {
    /// The next lines; `None` at the end.
    async fn next(&mut self) -> Result<Option<String>, slipway_app::Error> {
        let lines = match self.state {
            State::Ended => return Ok(None),
            State::Begin => {
                self.state = State::Lines;
                vec![first(&self.report.deletion)]
            }
            State::Lines => {
                let context = &self.call.context;
                authenticate::api_key(context, self.key.expose(), &self.correlation_id).await?;
                match self.report.next().await? {
                    Some(lines) => lines.iter().map(|line| self.made(line)).collect(),
                    None => {
                        self.state = State::Ended;
                        return Ok(Some(written(&self.end())));
                    }
                }
            }
        };
        let text: String = lines.iter().map(written).collect();
        self.lines += lines.len() as u64;
        self.digest.update(text.as_bytes());
        Ok(Some(text))
    }

    fn made(&mut self, line: &Line) -> ReportLine {
        let counted = Proof::ALL.iter().position(|proof| *proof == line.proof);
        if let Some(count) = counted.and_then(|at| self.counts.get_mut(at)) {
            *count += 1;
        }
        ReportLine::Made {
            kind: line.kind.to_string(),
            id: line.id.to_string(),
            name: line.name.clone(),
            made_at: line.made_at.to_string(),
            proof: line.proof.to_string(),
            how: line.how.clone(),
            at: text(line.at),
            by: line.by.clone(),
            leaks: line.leaks.iter().map(ToString::to_string).collect(),
        }
    }

    fn end(&self) -> ReportLine {
        let [gone, not_yet, abandoned, leak_open, kept_on_purpose] = self.counts;
        let digest = HEXLOWER.encode(&self.digest.clone().finalize());
        ReportLine::End {
            lines: self.lines,
            gone,
            not_yet,
            abandoned,
            leak_open,
            kept_on_purpose,
            digest: format!("sha256:{digest}"),
        }
    }
}

fn first(deletion: &Deletion) -> ReportLine {
    ReportLine::Deletion {
        id: deletion.id.to_string(),
        kind: deletion.target.kind.to_string(),
        target: deletion.name.clone(),
        target_id: deletion.target.id.to_string(),
        state: deletion.state.to_string(),
        requested_by: deletion.requested_by.clone(),
        requested_at: deletion.requested_at.to_string(),
        reason: deletion.reason.clone(),
        done_at: text(deletion.done_at),
    }
}

/// Only map keys that are not text could fail here; there are none.
fn written(line: &ReportLine) -> String {
    let mut text = serde_json::to_string(line).unwrap_or_default();
    text.push('\n');
    text
}
