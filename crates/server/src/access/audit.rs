//! The audit: as pages, newest first, or as one export, oldest first.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName};
use axum::response::IntoResponse;
use futures::{Stream, stream};
use slipway_app::Context;
use slipway_app::access::authorise::Caller;
use slipway_app::access::port::{AuditFilter, AuditLine, AuditOrder};
use slipway_app::access::{audit, authenticate, reference};
use slipway_app::ports::Listed;
use slipway_app::ports::store::PAGE_MAX;
use slipway_app::ports::store::{self, Page};
use slipway_core::error::Refusal;
use slipway_core::ids::AuditEntryId;
use slipway_core::operations::reference::without_prefix;
use slipway_core::secret::Secret;
use slipway_core::time::{Timestamp, parse_duration};
use slipway_wire::access::AuditEntry;
use uuid::Uuid;

use crate::error::Rejection;
use crate::request::{Answered, Call, Parameters, Referring, add_names, bearer, text};

pub(super) async fn list(call: Call) -> Answered {
    let page = call.query.page()?;
    let filter = filter(&call).await?;
    let order = AuditOrder::NewestFirst;
    let found = audit::list(&call.context, &call.caller, &filter, order, page).await?;
    call.named_page(found.map(document), page.limit).await
}

/// Writes one document per line. Only one page is in memory; the next is read
/// when the reader has taken it. Each page authenticates the key again, because
/// an export may take long: a key revoked meanwhile reads no further. If
/// anything fails, the connection breaks off, so that nobody takes a partial
/// export for a complete one.
pub(super) async fn export(call: Call, headers: HeaderMap) -> Answered {
    let reader = Reader {
        key: Secret::new(bearer(&headers).unwrap_or_default()),
        correlation_id: call.caller.correlation_id.clone(),
        filter: filter(&call).await?,
        context: call.context,
    };
    // Errors in the request are answered before the first line.
    let first = reader.page(&call.caller, None).await?;
    let lines = Body::from_stream(follow(reader, first));
    let headers = [
        (CONTENT_TYPE, "application/x-ndjson"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, lines).into_response())
}

/// Who reads an export, and with which filter.
struct Reader {
    context: Context,
    key: Secret,
    correlation_id: String,
    filter: AuditFilter,
}

impl Reader {
    async fn page(
        &self,
        caller: &Caller,
        after: Option<AuditEntryId>,
    ) -> Result<Listed<AuditLine>, slipway_app::Error> {
        let page = Page { after, limit: PAGE_MAX };
        let order = AuditOrder::OldestFirst;
        Ok(complete(audit::list(&self.context, caller, &self.filter, order, page).await?)?)
    }

    async fn next(&self, after: AuditEntryId) -> Result<Listed<AuditLine>, slipway_app::Error> {
        let key = self.key.expose();
        let caller = authenticate::api_key(&self.context, key, &self.correlation_id).await?;
        self.page(&caller, Some(after)).await
    }
}

/// How far an export has come.
enum ExportCursor {
    Read(Listed<AuditLine>),
    After(AuditEntryId),
}

fn follow(
    reader: Reader,
    first: Listed<AuditLine>,
) -> impl Stream<Item = Result<Bytes, slipway_app::Error>> {
    let reader = Arc::new(reader);
    stream::try_unfold(Some(ExportCursor::Read(first)), move |cursor| {
        let reader = Arc::clone(&reader);
        async move {
            let found = match cursor {
                None => return Ok(None),
                Some(ExportCursor::Read(found)) => found,
                Some(ExportCursor::After(after)) => {
                    reader.next(after).await.inspect_err(|error| {
                        if !error.is_logged() {
                            tracing::warn!(%error, "an export of the audit breaks off");
                        }
                    })?
                }
            };
            if found.is_empty() {
                return Ok(None);
            }
            let mut entries: Vec<_> = found.iter().map(document).collect();
            add_names(&reader.context, &mut entries).await?;
            let text: String = entries.iter().map(line).collect();
            let next = found.next.map(|last| ExportCursor::After(AuditEntryId::new(last)));
            Ok(Some((Bytes::from(text), next)))
        }
    })
}

/// A list names the rows that it cannot show; an export cannot, so it fails.
fn complete(found: Listed<AuditLine>) -> Result<Listed<AuditLine>, store::Error> {
    match found.quarantined.first() {
        None => Ok(found),
        Some(id) => {
            let reason = "this entry of the audit cannot be read".to_owned();
            Err(store::Error::Corrupt { id: *id, reason })
        }
    }
}

fn line(entry: &AuditEntry) -> String {
    // Only map keys that are not text could fail here; there are none.
    let mut text = serde_json::to_string(entry).unwrap_or_default();
    text.push('\n');
    text
}

async fn filter(call: &Call) -> Result<AuditFilter, Rejection> {
    let (query, now) = (&call.query, call.now());
    Ok(AuditFilter {
        actor: query.text("actor"),
        verb: query.text("verb"),
        kind: query.text("kind"),
        subject: subject(call).await?,
        project: query.text("project"),
        within: None,
        since: moment("since", query, now)?,
        until: moment("until", query, now)?,
    })
}

/// What the entries are about: by its id, the beginning of it, or its name.
async fn subject(call: &Call) -> Result<Option<Uuid>, Rejection> {
    let Some(text) = call.query.get("id") else { return Ok(None) };
    // A whole id may be that of something that is no more.
    if let Ok(id) = Uuid::try_parse(without_prefix(text)) {
        return Ok(Some(id));
    }
    let kind = call.query.get("kind");
    Ok(Some(reference::find_any(&call.context, &call.caller, kind, text).await?))
}

/// A time, or how long ago.
fn moment(field: &str, query: &Parameters, now: Timestamp) -> Result<Option<Timestamp>, Refusal> {
    let problem = "must be a time such as 2026-01-31T12:00:00Z, or how long ago, such as 8d or 1h";
    let parse = |text: &str| {
        let age = || parse_duration(text).map(|age| now.minus(age));
        text.parse().or_else(|_| age()).map_err(|_| Refusal::invalid(field, problem))
    };
    query.get(field).map(parse).transpose()
}

impl Referring for AuditEntry {
    fn references(&mut self) -> Vec<(Option<&str>, &mut Option<String>)> {
        vec![
            (self.actor.strip_prefix("node:"), &mut self.actor_name),
            (Some(&self.subject_id), &mut self.subject),
            (self.project_id.as_deref(), &mut self.project),
        ]
    }
}

fn document(line: &AuditLine) -> AuditEntry {
    AuditEntry {
        id: line.id.to_string(),
        at: line.at.to_string(),
        actor: line.actor.clone(),
        actor_name: None,
        verb: line.verb.clone(),
        kind: line.subject_kind.clone(),
        subject: None,
        subject_id: line.subject_id.to_string(),
        project: None,
        project_id: text(line.project_id),
        reason: line.reason.clone(),
        details: line.details.clone(),
        correlation_id: line.correlation_id.clone(),
    }
}
