//! Reading the audit.

use async_trait::async_trait;
use slipway_app::ports::AuditStore;
use slipway_app::ports::audit::{AuditFilter, AuditLine, AuditOrder};
use slipway_app::ports::store::{Error, Page};
use slipway_core::ids::{AuditEntryId, ProjectId};
use sqlx::types::Json;
use sqlx::{QueryBuilder, Row as _};
use uuid::Uuid;

use super::declare::as_id;
use super::{Backend, Db, Row};
use crate::failure::Failure;
use crate::micros::Micros;
use crate::retry::retried;

#[async_trait]
impl AuditStore for Backend {
    async fn audit_list(
        &self,
        filter: &AuditFilter,
        order: AuditOrder,
        page: Page<AuditEntryId>,
    ) -> Result<Vec<AuditLine>, Error> {
        Ok(retried!(list(self, filter, order, page))?)
    }
}

async fn list(
    backend: &Backend,
    filter: &AuditFilter,
    order: AuditOrder,
    page: Page<AuditEntryId>,
) -> Result<Vec<AuditLine>, Failure> {
    let mut query: QueryBuilder<Db> = QueryBuilder::new(
        "SELECT id, at, actor, verb, subject_kind, subject_id, project_id, reason, details, \
         correlation_id FROM audit_entries WHERE 1 = 1",
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
    let mut connection = backend.reader().await?;
    let found = query.build().fetch_all(&mut *connection).await?;
    Ok(found.iter().map(line).collect::<Result<_, _>>()?)
}

fn line(row: &Row) -> Result<AuditLine, sqlx::Error> {
    Ok(AuditLine {
        id: AuditEntryId::new(row.try_get("id")?),
        at: row.try_get::<Micros, _>("at")?.into(),
        actor: row.try_get("actor")?,
        verb: row.try_get("verb")?,
        subject_kind: row.try_get("subject_kind")?,
        subject_id: row.try_get("subject_id")?,
        project_id: row.try_get::<Option<Uuid>, _>("project_id")?.map(ProjectId::new),
        reason: row.try_get("reason")?,
        details: row.try_get::<Json<serde_json::Value>, _>("details")?.0,
        correlation_id: row.try_get("correlation_id")?,
    })
}
