//! Writing and reading the audit.

use serde::Serialize;
use serde_json::Value;
use slipway_app::access::port::{AuditFilter, AuditLine, AuditOrder};
use slipway_app::ports::Listed;
use slipway_app::ports::store::Page;
use slipway_core::access::audit::AuditEntry;
use slipway_core::ids::{AuditEntryId, ProjectId, ProvisionedResourceId};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::json_values::JsonTime;
use super::page::{as_id, listed};
use super::{Connection, Db, Row, rows, writes};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::id_list::IdList;
use crate::micros::Micros;

#[derive(Serialize)]
struct AuditRow<'a> {
    id: Uuid,
    at: JsonTime,
    actor: &'a str,
    verb: &'static str,
    subject_kind: &'static str,
    subject_id: Uuid,
    project_id: Option<Uuid>,
    reason: Option<&'a str>,
    details: &'a Value,
    correlation_id: Option<&'a str>,
    changed_id: Option<Uuid>,
    changed_revision: Option<i64>,
    from_state: Option<&'static str>,
    to_state: Option<&'static str>,
    why: Option<&'a str>,
}

/// With the state change that an entry announces. Both have one time.
pub(crate) async fn insert(
    connection: &mut Connection,
    entries: &[&AuditEntry],
) -> Result<(), Failure> {
    let rows: Vec<_> = entries
        .iter()
        .map(|entry| {
            let change = entry.change.as_ref();
            AuditRow {
                id: entry.id.as_uuid(),
                at: entry.at.into(),
                actor: &entry.actor,
                verb: entry.verb,
                subject_kind: entry.subject.kind.as_str(),
                subject_id: entry.subject.id,
                project_id: entry.project_id.map(|id| id.as_uuid()),
                reason: entry.reason.as_deref(),
                details: &entry.details,
                correlation_id: entry.correlation_id.as_deref(),
                changed_id: change.map(|change| change.subject.id),
                changed_revision: change.map(|change| change.revision.0),
                from_state: change.and_then(|change| change.from),
                to_state: change.map(|change| change.to),
                why: change.map(|change| &*change.why),
            }
        })
        .collect();
    const INSERT: &str = concat!(
        "INSERT INTO audit_entries (id, at, actor, verb, subject_kind, subject_id, \
         project_id, reason, details, correlation_id, changed_id, changed_revision, \
         from_state, to_state, why) SELECT given.id, given.at, given.actor, given.verb, \
         given.subject_kind, given.subject_id, given.project_id, given.reason, \
         coalesce(given.details, 'null'), given.correlation_id, given.changed_id, \
         given.changed_revision, given.from_state, given.to_state, given.why FROM ",
        rows_from_json!(
            id: uuid,
            at: time,
            actor: text,
            verb: text,
            subject_kind: text,
            subject_id: uuid,
            project_id: uuid,
            reason: text,
            details: json,
            correlation_id: text,
            changed_id: uuid,
            changed_revision: bigint,
            from_state: text,
            to_state: text,
            why: text,
        ),
    );
    Ok(writes::write(connection, INSERT, &rows).await?)
}

/// Takes the entries out of the histories of these subjects and answers how many they
/// were. They stay in the audit.
pub(crate) async fn end_histories(
    connection: &mut Connection,
    subjects: IdList,
) -> Result<u64, Failure> {
    let ended = sqlx::query(sql!(
        "UPDATE audit_entries SET changed_id = NULL WHERE changed_id ",
        (one_of "$1")
    ))
    .bind(subjects)
    .execute(connection)
    .await?;
    Ok(ended.rows_affected())
}

/// The same for entries of one subject between these numbers, `limit` of them at most,
/// the oldest first.
pub(crate) async fn shorten_history(
    connection: &mut Connection,
    subject: ProvisionedResourceId,
    (low, high): (i64, i64),
    limit: u32,
) -> Result<u64, sqlx::Error> {
    let shortened = sqlx::query(
        "UPDATE audit_entries SET changed_id = NULL WHERE changed_id = $1 \
         AND changed_revision > $2 AND changed_revision < coalesce(\
         (SELECT changed_revision FROM audit_entries WHERE changed_id = $1 \
            AND changed_revision > $2 AND changed_revision < $3 \
            ORDER BY changed_revision LIMIT 1 OFFSET $4), $3)",
    )
    .bind(subject.as_uuid())
    .bind(low)
    .bind(high)
    .bind(i64::from(limit))
    .execute(connection)
    .await?;
    Ok(shortened.rows_affected())
}

pub(crate) async fn list(
    connection: &mut Connection,
    (filter, order, page): (&AuditFilter, AuditOrder, Page<AuditEntryId>),
) -> Result<Listed<AuditLine>, Failure> {
    let mut query: QueryBuilder<Db> = QueryBuilder::new(
        "SELECT id, at, actor, verb, subject_kind, subject_id, project_id, reason, details, \
         correlation_id, from_state, to_state FROM audit_entries WHERE 1 = 1",
    );
    let (beyond, direction) = match order {
        AuditOrder::OldestFirst => (" AND id > ", " ORDER BY id LIMIT "),
        AuditOrder::NewestFirst => (" AND id < ", " ORDER BY id DESC LIMIT "),
    };
    if let Some(after) = page.after {
        query.push(beyond).push_bind(after.as_uuid());
    }
    for (column, text) in [
        (" AND actor = ", &filter.actor),
        (" AND verb = ", &filter.verb),
        (" AND subject_kind = ", &filter.kind),
    ] {
        if let Some(text) = text {
            query.push(column).push_bind(text.clone());
        }
    }
    if let Some(subject) = filter.subject {
        query.push(" AND subject_id = ").push_bind(subject);
    }
    if let Some(project) = &filter.project {
        query
            .push(" AND project_id IN (SELECT id FROM projects WHERE (name = ")
            .push_bind(project.clone())
            .push(" AND deleted_at IS NULL) OR id = ")
            .push_bind(as_id(project))
            .push(")");
    }
    if let Some(within) = filter.within {
        query.push(" AND project_id = ").push_bind(within.as_uuid());
    }
    if let Some(since) = filter.since {
        query.push(" AND at >= ").push_bind(Micros::from(since));
    }
    if let Some(until) = filter.until {
        query.push(" AND at < ").push_bind(Micros::from(until));
    }
    query.push(direction).push_bind(i64::from(page.limit));
    let found = query.build().fetch_all(&mut *connection).await?;
    Ok(listed("audit entry", "id", &page, &found, line))
}

/// The state change is shown among the details.
fn line(row: &Row) -> Result<AuditLine, Fault> {
    let mut details: Value = rows::json(row, "details")?;
    for (name, column) in [("from", "from_state"), ("to", "to_state")] {
        let state: Option<String> = rows::get(row, column)?;
        if let (Some(state), Some(details)) = (state, details.as_object_mut()) {
            details.insert(name.to_owned(), state.into());
        }
    }
    Ok(AuditLine {
        id: AuditEntryId::new(rows::get(row, "id")?),
        at: rows::time(row, "at")?,
        actor: rows::get(row, "actor")?,
        verb: rows::get(row, "verb")?,
        subject_kind: rows::get(row, "subject_kind")?,
        subject_id: rows::get(row, "subject_id")?,
        project_id: rows::get::<Option<Uuid>>(row, "project_id")?.map(ProjectId::new),
        reason: rows::get(row, "reason")?,
        details,
        correlation_id: rows::get(row, "correlation_id")?,
    })
}
